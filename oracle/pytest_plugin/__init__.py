"""The pytest plugin: manifests are collected as tests, and the fixture `bankshot` runs kernels.

Registered as the entry point `bankshot`.
"""

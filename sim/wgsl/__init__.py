"""From WGSL text to a typed module: preprocess, parse, check, analyse.

Imports `scalar`, for const-expressions. What it returns is in `typed`.
"""

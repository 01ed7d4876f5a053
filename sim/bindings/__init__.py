"""Bindings: values from Python as bytes that the machine can index, and back in the form in which they were given.

`buffers` binds everything to the variables of an entry point; textures and samplers have files of their own.
"""

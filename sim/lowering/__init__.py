"""Lowering from a typed module to ir: calls are inlined, composites become scalars, views become addresses.

`lower.lower` is the entry point; each file lowers a part of the language. See it with `bankshot run … --dump ir`.
"""

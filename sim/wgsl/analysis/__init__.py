"""Analyses of a typed module: call graph, behavior, aliasing, uniformity, portability. One file each.

Each reads the typed tree and raises `WgslError` or returns diagnostics; `call_graph` fills in static accesses.
Imports `builtins`, and `syntax` for portability.
"""

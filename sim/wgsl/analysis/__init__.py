"""Facts about a whole typed module: uniformity, aliasing, behavior, static accesses, portability.

Each analysis is one file that reads the typed tree and reports diagnostics.
"""

"""The intermediate program: scalar values in a tree of regions, its verifier, and local simplification.

Knows nothing of how it was lowered or how it will be encoded.
"""

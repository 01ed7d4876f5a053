"""From a syntax tree to a typed module: names, types, overloads, const-evaluation, pipeline creation.

Raises `WgslError` for what the WGSL spec calls a shader-creation or pipeline-creation error.
"""

"""From WGSL text to a typed module (`typed.Module`): preprocess, parse, check, analyse.

Everything wrong with a shader is a `WgslError` with a code, a span and a message. Imports `scalar` for
const-evaluation. `bankshot run … --dump syntax` and `--dump typed` show both ends.
"""

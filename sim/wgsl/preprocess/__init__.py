"""Text with `#` lines to plain WGSL: `preprocessor.preprocess`, and `external_preprocessor.filtered` for a command.

The `Source` that comes out maps every line to its original file and line.
Imports `syntax`, for the pattern of an identifier.
"""

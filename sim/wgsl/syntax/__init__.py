"""Text to syntax tree and back: `parser.parse(source)` and `printer.to_wgsl(tree)`.

The tree says what was written and decides nothing. A text outside the grammar is a `WgslError`.
Imports no other folder of `wgsl`.
"""

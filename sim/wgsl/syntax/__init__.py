"""From text to a syntax tree and back: lexer, recursive-descent parser, printer.

Decides nothing about names or types. Errors are `WgslError`s with a span.
"""

"""The intermediate program: scalar values in a tree of regions, with its builder, verifier, simplifier and printer.

It depends neither on how it was lowered nor on how it will be encoded. See it with `bankshot run … --dump ir`.
"""

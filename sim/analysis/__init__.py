"""Facts about ir: uses, lane uniformity, workgroup equivalence, dead FLOPs, spin loops.

Analyses read a program and change nothing.
"""

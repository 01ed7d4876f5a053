"""Facts about ir: uses, lane uniformity, workgroup equivalence, dead FLOPs, spin loops.

Analyses change nothing about what a program computes. `lane_uniformity` marks values and variables as uniform,
`dead_flops` adds a count and `tabulate` makes a new program; the others only read.
"""

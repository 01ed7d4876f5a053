"""How much of what a dispatch issues does useful work.

`steps` notes what a workgroup executed, `slices` finds what its results depend on, and `utilization` has the
definitions.
"""

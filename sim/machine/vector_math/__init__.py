"""Functions of float64 over rows of lanes: vectorized approximations, and an exact fallback where rounding is in doubt.

Results equal those of `scalar`, bit for bit.
"""

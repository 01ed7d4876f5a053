"""Everything that knows the internals of Numba or LLVM: an optimization, with a plain path beside it.

No other folder imports more of `numba.core` than `cgutils`.
"""

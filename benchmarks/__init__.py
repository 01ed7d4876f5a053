"""Compare the speed of Bankshot with that of a software GPU on the same WGSL, and with BLAS. See `__main__`."""

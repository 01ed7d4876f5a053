"""How fast Bankshot is against running the same WGSL on a software GPU, and against BLAS. See `__main__`."""

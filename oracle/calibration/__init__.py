"""WGSL micro-benchmarks whose times give the constants of a GPU."""

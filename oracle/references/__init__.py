"""What kernels are to compute, in NumPy float64, with the largest error that float32 arithmetic may make of it.

References know nothing of WGSL and never ask the simulator. `registry` says what one is, and how manifests name it.
"""

from . import matmul, quantized  # they register theirs
from .reference_registry import Arrays, Expected, Reference, find, reference, registered

__all__ = ["Arrays", "Expected", "Reference", "find", "matmul", "quantized", "reference", "registered"]

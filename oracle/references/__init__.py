"""The expected results of kernels, in NumPy float64, with bounds for the errors of float32 arithmetic.

References are independent of WGSL and the simulator. `reference_registry` defines them, and how manifests name them.
"""

from . import matmul, quantized  # they register theirs
from .reference_registry import Arrays, Expected, Reference, expected_names, find, reference, registered

__all__ = [
    "Arrays",
    "Expected",
    "Reference",
    "expected_names",
    "find",
    "matmul",
    "quantized",
    "reference",
    "registered",
]

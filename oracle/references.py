"""What kernels are to compute, in NumPy float64, with the largest error that float32 arithmetic may make of it.

A reference takes the arrays of a manifest by name, and the dims, and gives per output an `Expected`. It knows nothing
of WGSL and never asks the simulator.

    @reference("scale")
    def scale(arrays, dims):
        product = arrays["X"].astype(np.float64) * 2
        return {"Y": Expected(product, np.zeros_like(product))}
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .errors import UsageError

F32_ROUNDOFF = 2.0**-24  # largest relative error of one float32 rounding


@dataclass(frozen=True, slots=True)
class Expected:
    """Float64 truth, and per element the largest |error| that an honest float32 kernel can make (None: not derived)."""

    value: np.ndarray
    bound: np.ndarray | None = None


Arrays = Mapping[str, np.ndarray]
Reference = Callable[[Arrays, Mapping[str, int]], dict[str, Expected]]

_references: dict[str, Reference] = {}


def reference(name: str) -> Callable[[Reference], Reference]:
    """Register a reference under the name that manifests use."""

    def register(function: Reference) -> Reference:
        _references[name] = function
        return function

    return register


def find(name: str) -> Reference:
    """The reference of that name. Raises `UsageError`."""
    if name not in _references:
        close = difflib.get_close_matches(name, _references, n=1)
        hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(sorted(_references))}"
        raise UsageError(f"no reference is named {name}; {hint}")
    return _references[name]


def gamma(n: int, roundoff: float = F32_ROUNDOFF) -> float:
    """Largest relative error that `n` roundings in a row accumulate to: n u / (1 - n u).

    Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1.
    """
    return n * roundoff / (1 - n * roundoff)


@reference("matmul")
def matmul(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W. A sum of K products, added in whatever order, fused or not, rounds each product at most K times.

    So |error| <= gamma(K) * (|X| @ |W|), Higham section 3.5. The truth rounds too: gamma(K) of float64 on top.
    """
    x, w = arrays["X"].astype(np.float64), arrays["W"].astype(np.float64)
    relative = gamma(dims["K"]) + gamma(dims["K"], np.finfo(np.float64).eps / 2)
    return {"Y": Expected(x @ w, relative * (np.abs(x) @ np.abs(w)))}

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
F32_SMALLEST_NORMAL = 2.0**-126
F64_ROUNDOFF = 2.0**-53


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


def every_reference() -> Mapping[str, Reference]:
    """All references by name."""
    from . import quant_references  # noqa: F401 - registers its own

    return _references


def find(name: str) -> Reference:
    """The reference of this name. Raises `UsageError`, with the names there are."""
    every_reference()
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


def sum_of_products(
    a: np.ndarray, b: np.ndarray, addend: np.ndarray | None = None, a_error: np.ndarray | None = None
) -> Expected:
    """a @ b + addend, by a kernel that keeps sums in float32 and may hold each a[i, k] wrong by `a_error` already.

    A sum of n terms, added in whatever order, fused or not, rounds each term at most n times: |error| <= gamma(n) times
    the sum of the terms' magnitudes, Higham section 3.5. The truth rounds too: gamma(n) of float64 on top.
    """
    x, y = a.astype(np.float64), b.astype(np.float64)
    extra = np.zeros(()) if addend is None else addend.astype(np.float64)
    terms = x.shape[1] + (addend is not None)
    relative = gamma(terms) + gamma(terms, F64_ROUNDOFF)
    bound = relative * (np.abs(x) @ np.abs(y) + np.abs(extra))
    if a_error is not None:
        bound += (1 + relative) * (a_error @ np.abs(y))
    return Expected(x @ y + extra, bound)


def silu_times(gate: np.ndarray, up: np.ndarray) -> Expected:
    """gate / (1 + exp(-gate)) * up, with the errors that WGSL allows (section "Floating Point Accuracy").

    exp(x) may be off by 3 + 2 |x| ULP, the division by 2.5, addition and multiplication by a rounding each. An ULP is
    two roundings at most, and exp's share in the denominator is exp(-gate) / (1 + exp(-gate)). What is smaller than
    normal numbers may be flushed to zero.
    """
    g, u = gate.astype(np.float64), up.astype(np.float64)
    e = np.exp(-g)
    relative = 2 * F32_ROUNDOFF * (3 + 2 * np.abs(g)) * e / (1 + e)
    relative += F32_ROUNDOFF * (1 + 2 * 2.5 + 1) + 8 * F64_ROUNDOFF
    value = g / (1 + e) * u
    return Expected(value, relative / (1 - relative) * np.abs(value) + F32_SMALLEST_NORMAL * (1 + np.abs(u)))


@reference("matmul")
def matmul(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"])}


@reference("product")
def product(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """C = A @ B."""
    return {"C": sum_of_products(arrays["A"], arrays["B"])}


@reference("matmul_residual")
def matmul_residual(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W + R."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"], arrays["R"])}


@reference("matmul_residual_swiglu_a")
def matmul_residual_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = (silu(GATE) * UP) @ W + R."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value, arrays["W"], arrays["R"], hidden.bound)}


@reference("swiglu")
def swiglu(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """H = silu(GATE) * UP."""
    return {"H": silu_times(arrays["GATE"], arrays["UP"])}


@reference("matmul_t")
def matmul_t(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W^T: the gradient of a linear layer's input, where X is that of its output."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"].T)}


@reference("matmul_t_acc")
def matmul_t_acc(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += X @ W^T."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"].T, arrays["Y"])}


@reference("matmul_at")
def matmul_at(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X^T @ B: the gradient of a linear layer's weights, where B is that of its output."""
    return {"Y": sum_of_products(arrays["X"].T, arrays["B"])}


@reference("matmul_at_acc")
def matmul_at_acc(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += X^T @ B."""
    return {"Y": sum_of_products(arrays["X"].T, arrays["B"], arrays["Y"])}


@reference("matmul_at_swiglu_a")
def matmul_at_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = (silu(GATE) * UP)^T @ B."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value.T, arrays["B"], a_error=_bound(hidden).T)}


@reference("matmul_at_acc_swiglu_a")
def matmul_at_acc_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += (silu(GATE) * UP)^T @ B."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value.T, arrays["B"], arrays["Y"], _bound(hidden).T)}


def _bound(expected: Expected) -> np.ndarray:
    assert expected.bound is not None
    return expected.bound

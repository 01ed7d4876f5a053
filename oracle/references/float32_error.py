"""Sums of products and SiLU in NumPy float64, with the largest errors of float32 arithmetic."""

from __future__ import annotations

import numpy as np

from ..comparison.bits import Array
from .reference_registry import Expected

F32_ROUNDOFF = 2.0**-24  # largest relative error of one float32 rounding
F32_SMALLEST_NORMAL = float(np.finfo(np.float32).smallest_normal)
F64_ROUNDOFF = 2.0**-53
_BLOCK = 1 << 22  # elements of a matrix that are converted at once


def gamma(n: int, roundoff: float = F32_ROUNDOFF) -> float:
    """Return the largest relative error of `n` successive roundings: n u / (1 - n u).

    Higham, Accuracy and Stability of Numerical Algorithms, lemma 3.1.
    """
    return n * roundoff / (1 - n * roundoff)


def sum_of_products(a: Array, b: Array, addend: Array | None = None, a_error: Array | None = None) -> Expected:
    """Compute a @ b + addend, for a kernel that sums in float32 and whose a[i, k] may be off by `a_error` already.

    A sum of n terms, in any order, fused or not, rounds each term at most n times: |error| <= gamma(n) times the sum of
    the terms' magnitudes (Higham, section 3.5). The float64 value is rounded too, which adds gamma(n) of float64.
    """
    x = a.astype(np.float64)
    terms = x.shape[1] + (addend is not None)
    relative = gamma(terms) + gamma(terms, F64_ROUNDOFF)
    value, bound = (np.empty((x.shape[0], b.shape[1])) for _ in range(2))
    magnitudes = relative * np.abs(x) if a_error is None else relative * np.abs(x) + (1 + relative) * a_error
    step = max(1, _BLOCK // b.shape[0])
    for start in range(0, b.shape[1], step):  # float64 copies stay small compared with the arrays
        columns = slice(start, start + step)
        y = b[:, columns].astype(np.float64)
        np.matmul(x, y, out=value[:, columns])
        np.matmul(magnitudes, np.abs(y, out=y), out=bound[:, columns])
    if addend is not None:
        value += addend
        bound += relative * np.abs(addend.astype(np.float64))
    return Expected(value, bound)


def silu_times(gate: Array, up: Array) -> Expected:
    """Compute gate / (1 + exp(-gate)) * up, with the errors that WGSL allows (section "Floating Point Accuracy").

    exp(x) may be off by 3 + 2 |x| ULP, the division by 2.5 ULP, and addition and multiplication by one rounding each.
    An ULP is at most two roundings, and the share of exp in the denominator is exp(-gate) / (1 + exp(-gate)). Subnormal
    numbers may be flushed to zero.
    """
    g, u = gate.astype(np.float64), up.astype(np.float64)
    e = np.exp(-g)
    relative = 2 * F32_ROUNDOFF * (3 + 2 * np.abs(g)) * e / (1 + e)
    relative += F32_ROUNDOFF * (1 + 2 * 2.5 + 1) + 8 * F64_ROUNDOFF
    value = g / (1 + e) * u
    return Expected(value, relative / (1 - relative) * np.abs(value) + F32_SMALLEST_NORMAL * (1 + np.abs(u)))

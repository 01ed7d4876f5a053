"""Functions computed in float64 and rounded once to their kind. One row is one function for three kinds.

Spec: WGSL, "Numeric Built-in Functions" and "Concrete Floating Point Accuracy".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .f16 import round_double_to_f16
from .registry import define

Double = Callable[..., Any]


def _inverse_sqrt(a: np.float64) -> np.float64:
    return np.float64(1.0) / np.sqrt(a)


def _power(a: np.float64, b: np.float64) -> np.float64:
    """Compute `exp2(b * log2(a))`: -0 counts as 0, and a negative base gives a NaN, unlike in C and NumPy."""
    return np.float64(np.nan) if a < 0.0 else np.power(a + np.float64(0.0), b)


UNARY: Mapping[str, Double] = {
    "acos": np.arccos,
    "acosh": np.arccosh,
    "asin": np.arcsin,
    "asinh": np.arcsinh,
    "atan": np.arctan,
    "atanh": np.arctanh,
    "cos": np.cos,
    "cosh": np.cosh,
    "degrees": np.degrees,
    "exp": np.exp,
    "exp2": np.exp2,
    "inverseSqrt": _inverse_sqrt,
    "log": np.log,
    "log2": np.log2,
    "radians": np.radians,
    "sin": np.sin,
    "sinh": np.sinh,
    "tan": np.tan,
    "tanh": np.tanh,
}
BINARY: Mapping[str, Double] = {"atan2": np.arctan2, "pow": _power}


def _to_f32(a: np.float64) -> np.float32:
    return np.float32(a)


def _rounded_unary(fn: Double, rounding: Double) -> Double:
    def apply(a: np.float32) -> np.float32:
        return rounding(fn(np.float64(a)))

    return apply


def _rounded_binary(fn: Double, rounding: Double) -> Double:
    def apply(a: np.float32, b: np.float32) -> np.float32:
        return rounding(fn(np.float64(a), np.float64(b)))

    return apply


for _table, _lift, _signature in ((UNARY, _rounded_unary, "T -> T"), (BINARY, _rounded_binary, "T T -> T")):
    for _stem, _fn in _table.items():
        define(_stem, _lift(_fn, _to_f32), _signature, "f32", flops=1)
        define(_stem, _lift(_fn, round_double_to_f16), _signature, "f16", flops=1)
        define(_stem, _fn, _signature, "af", flops=1)

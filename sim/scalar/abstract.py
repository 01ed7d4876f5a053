"""Abstract-int (Python int) and abstract-float (float64): for const-evaluation only, never compiled.

Out of range or undefined, the result is an infinity, a NaN, an integer beyond 64 bits or an exception of Python's
arithmetic; const-evaluation makes an error of each. Spec: WGSL, "Abstract Types", "Floating Point Conversion".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .f16 import round_double_to_f16
from .registry import define


def _int_quotient(a: int, b: int) -> int:
    """Toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _int_remainder(a: int, b: int) -> int:
    return a - b * _int_quotient(a, b)


def _shifted_left(a: int, amount: int) -> int:
    # By 64 everything but zero is out of range already.
    return a << min(int(amount), 64)


def _shifted_right(a: int, amount: int) -> int:
    return a >> int(amount)


def _sign(a: float) -> int:
    return (a > 0) - (a < 0)


def _negated(a: float) -> float:
    # The least abstract-int has no opposite in 64 bits and stays as it is.
    return a if a == -(2**63) and isinstance(a, int) else -a


def _absolute(a: float) -> float:
    return _negated(a) if a < 0 else abs(a)


def _ldexp(a: float, exponent: int) -> float:
    return math.ldexp(a, max(-5000, min(exponent, 5000)))


def _truncating(low: int, high: int, word: Any) -> Callable[..., Any]:
    def truncate(a: float) -> Any:
        return word(0 if math.isnan(a) else int(max(low, min(a, high))))

    return truncate


def _saturated(a: float) -> float:
    return max(0.0, min(a, 1.0))


_I32, _U32 = (-(2**31), 2**31 - 1, np.int32), (0, 2**32 - 1, np.uint32)

_BOTH: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("add", operator.add, "T T -> T"),
    ("sub", operator.sub, "T T -> T"),
    ("mul", operator.mul, "T T -> T"),
    ("neg", _negated, "T -> T"),
    ("abs", _absolute, "T -> T"),
)
_INT: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("div", _int_quotient, "T T -> T"),
    ("rem", _int_remainder, "T T -> T"),
    ("and", operator.and_, "T T -> T"),
    ("or", operator.or_, "T T -> T"),
    ("xor", operator.xor, "T T -> T"),
    ("not", operator.invert, "T -> T"),
    ("shl", _shifted_left, "T u32 -> T"),
    ("shr", _shifted_right, "T u32 -> T"),
    ("sign", _sign, "T -> T"),
    ("convert_ai_af", float, "ai -> af"),
    ("convert_ai_f32", lambda a: np.float32(np.int64(a)), "ai -> f32"),
    ("convert_ai_f16", lambda a: round_double_to_f16(np.float64(a)), "ai -> f16"),
    ("convert_ai_i32", _truncating(*_I32), "ai -> i32"),
    ("convert_ai_u32", _truncating(*_U32), "ai -> u32"),
    ("convert_ai_bool", lambda a: np.uint32(a != 0), "ai -> bool"),
)
_FLOAT: tuple[tuple[str, Callable[..., Any], str], ...] = (
    ("div", operator.truediv, "T T -> T"),
    ("rem", math.fmod, "T T -> T"),
    ("sqrt", math.sqrt, "T -> T"),
    ("fma", lambda a, b, c: a * b + c, "T T T -> T"),
    ("floor", np.floor, "T -> T"),
    ("ceil", np.ceil, "T -> T"),
    ("trunc", np.trunc, "T -> T"),
    ("round", np.rint, "T -> T"),
    ("fract", lambda a: a - np.floor(a), "T -> T"),
    ("modf_whole", np.trunc, "T -> T"),
    ("modf_fract", lambda a: a - np.trunc(a), "T -> T"),
    ("frexp_fract", lambda a: math.frexp(a)[0], "T -> T"),
    ("frexp_exp", lambda a: math.frexp(a)[1], "T -> ai"),
    ("ldexp", _ldexp, "T ai -> T"),
    ("sign", lambda a: float(_sign(a)), "T -> T"),
    ("step", lambda edge, x: float(edge <= x), "T T -> T"),
    ("saturate", _saturated, "T -> T"),
    ("length", _absolute, "T -> T"),
    ("convert_af_f32", np.float32, "af -> f32"),
    ("convert_af_f16", lambda a: round_double_to_f16(np.float64(a)), "af -> f16"),
    ("convert_af_i32", _truncating(*_I32), "af -> i32"),
    ("convert_af_u32", _truncating(*_U32), "af -> u32"),
    ("convert_af_bool", lambda a: np.uint32(a != 0), "af -> bool"),
)

for _rows, _kinds in ((_BOTH, "ai af"), (_INT, "ai"), (_FLOAT, "af")):
    for _stem, _fn, _signature in _rows:
        define(_stem, _fn, _signature, "" if _stem.startswith("convert") else _kinds)

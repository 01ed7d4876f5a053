"""Abstract-int (Python int) and abstract-float (float64): for const-evaluation only, never compiled.

A result that is out of range or undefined is an infinity, a NaN, an integer beyond 64 bits, or an exception of Python's
arithmetic; const-evaluation reports each as an error. Spec: WGSL, "Abstract Types", "Floating Point Conversion".
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from .f16 import round_double_to_f16
from .registry import Plain, define


def _int_quotient(a: int, b: int) -> int:
    """Divide, rounding toward zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _int_remainder(a: int, b: int) -> int:
    return a - b * _int_quotient(a, b)


def _shifted_left(a: int, amount: int) -> int:
    # A shift by 64 puts everything but zero out of range.
    return a << min(int(amount), 64)


def _shifted_right(a: int, amount: int) -> int:
    return a >> int(amount)


def _and(a: int, b: int) -> int:
    return a & b


def _or(a: int, b: int) -> int:
    return a | b


def _xor(a: int, b: int) -> int:
    return a ^ b


def _float_quotient(a: float, b: float) -> float:
    return a / b


def _sign(a: float) -> int:
    return (a > 0) - (a < 0)


def _negated(a: float) -> float:
    # The least abstract-int has no opposite in 64 bits and stays unchanged.
    return a if a == -(2**63) and isinstance(a, int) else -a


def _absolute(a: float) -> float:
    return _negated(a) if a < 0 else abs(a)


def _ldexp(a: float, exponent: int) -> float:
    return math.ldexp(a, max(-5000, min(exponent, 5000)))


def _truncating(low: int, high: int, word: type[np.int32] | type[np.uint32]) -> Plain:
    def truncate(a: float) -> np.integer[Any]:
        return word(int(max(low, min(a, high))))

    return truncate


def _saturated(a: float) -> float:
    return max(0.0, min(a, 1.0))


_I32, _U32 = (-(2**31), 2**31 - 1, np.int32), (0, 2**32 - 1, np.uint32)


def _fma(a: float, b: float, c: float) -> float:
    return a * b + c


def _fract(a: float) -> float:
    return a - np.floor(a)


def _modf_fract(a: float) -> float:
    return a - np.trunc(a)


def _step(edge: float, x: float) -> float:
    return float(edge <= x)


def _float_sign(a: float) -> float:
    return float(_sign(a))


def _frexp_fract(a: float) -> float:
    return math.frexp(a)[0]


def _frexp_exp(a: float) -> int:
    return math.frexp(a)[1]


def _int_to_f32(a: int) -> np.float32:
    return np.float32(np.int64(a))


def _int_to_f16(a: int) -> np.float32:
    return round_double_to_f16(np.float64(a))


def _float_to_f16(a: float) -> np.float32:
    return round_double_to_f16(np.float64(a))


def _to_bool(a: float) -> np.uint32:
    return np.uint32(a != 0)


Rows = tuple[tuple[str, Plain, str], ...]

_BOTH: Rows = (
    ("add", operator.add, "T T -> T"),
    ("sub", operator.sub, "T T -> T"),
    ("mul", operator.mul, "T T -> T"),
    ("neg", _negated, "T -> T"),
    ("abs", _absolute, "T -> T"),
)
_INT: Rows = (
    ("div", _int_quotient, "T T -> T"),
    ("rem", _int_remainder, "T T -> T"),
    ("and", _and, "T T -> T"),
    ("or", _or, "T T -> T"),
    ("xor", _xor, "T T -> T"),
    ("not", operator.invert, "T -> T"),
    ("shl", _shifted_left, "T u32 -> T"),
    ("shr", _shifted_right, "T u32 -> T"),
    ("sign", _sign, "T -> T"),
    ("convert_ai_af", float, "ai -> af"),
    ("convert_ai_f32", _int_to_f32, "ai -> f32"),
    ("convert_ai_f16", _int_to_f16, "ai -> f16"),
    ("convert_ai_i32", _truncating(*_I32), "ai -> i32"),
    ("convert_ai_u32", _truncating(*_U32), "ai -> u32"),
    ("convert_ai_bool", _to_bool, "ai -> bool"),
)
_FLOAT: Rows = (
    ("div", _float_quotient, "T T -> T"),
    ("rem", math.fmod, "T T -> T"),
    ("sqrt", math.sqrt, "T -> T"),
    ("fma", _fma, "T T T -> T"),
    ("floor", np.floor, "T -> T"),
    ("ceil", np.ceil, "T -> T"),
    ("trunc", np.trunc, "T -> T"),
    ("round", np.rint, "T -> T"),
    ("fract", _fract, "T -> T"),
    ("modf_whole", np.trunc, "T -> T"),
    ("modf_fract", _modf_fract, "T -> T"),
    ("frexp_fract", _frexp_fract, "T -> T"),
    ("frexp_exp", _frexp_exp, "T -> ai"),
    ("ldexp", _ldexp, "T ai -> T"),
    ("sign", _float_sign, "T -> T"),
    ("step", _step, "T T -> T"),
    ("saturate", _saturated, "T -> T"),
    ("length", _absolute, "T -> T"),
    ("convert_af_f32", np.float32, "af -> f32"),
    ("convert_af_f16", _float_to_f16, "af -> f16"),
    ("convert_af_i32", _truncating(*_I32), "af -> i32"),
    ("convert_af_u32", _truncating(*_U32), "af -> u32"),
    ("convert_af_bool", _to_bool, "af -> bool"),
)

_TABLES: tuple[tuple[Rows, str], ...] = ((_BOTH, "ai af"), (_INT, "ai"), (_FLOAT, "af"))
for _rows, _kinds in _TABLES:
    for _stem, _fn, _signature in _rows:
        define(_stem, _fn, _signature, "" if _stem.startswith("convert") else _kinds)

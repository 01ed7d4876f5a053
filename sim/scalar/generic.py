"""Operations with one definition for several kinds: comparison, selection, minimum and maximum, logic.

Spec: WGSL, "Comparison Expressions", "Logical Expressions", `select`, `min`, `max`, `clamp`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .registry import define, op

_NUMBERS = "f32 f16 i32 u32 af ai"
_ALL = _NUMBERS + " bool"


@op("T T -> bool", _ALL)
def eq(a: Any, b: Any) -> np.uint32:
    return np.uint32(a == b)


@op("T T -> bool", _ALL)
def ne(a: Any, b: Any) -> np.uint32:
    return np.uint32(a != b)


@op("T T -> bool", _NUMBERS)
def lt(a: Any, b: Any) -> np.uint32:
    return np.uint32(a < b)


@op("T T -> bool", _NUMBERS)
def le(a: Any, b: Any) -> np.uint32:
    return np.uint32(a <= b)


@op("T T -> bool", _NUMBERS)
def gt(a: Any, b: Any) -> np.uint32:
    return np.uint32(a > b)


@op("T T -> bool", _NUMBERS)
def ge(a: Any, b: Any) -> np.uint32:
    return np.uint32(a >= b)


@op("T T bool -> T", _ALL)
def select(if_false: Any, if_true: Any, condition: Any) -> Any:
    return if_true if condition != 0 else if_false


def minimum(a: Any, b: Any) -> Any:
    """Return the smaller; for floats, IEEE-754 minNum. As in Mesa, a NaN gives the other, two zeros the first."""
    return a if (a <= b) | (b != b) else b


def maximum(a: Any, b: Any) -> Any:
    """Return the larger; for floats, IEEE-754 maxNum, as in `minimum`."""
    return a if (a >= b) | (b != b) else b


define("min", minimum, "T T -> T", _NUMBERS)
define("max", maximum, "T T -> T", _NUMBERS)


@op("T T T -> T", _NUMBERS)
def clamp(e: Any, low: Any, high: Any) -> Any:
    return minimum(maximum(e, low), high)


@op("bool bool -> bool", "bool")
def and_(a: np.uint32, b: np.uint32) -> np.uint32:
    return np.uint32(a & b)


@op("bool bool -> bool", "bool")
def or_(a: np.uint32, b: np.uint32) -> np.uint32:
    return np.uint32(a | b)


@op("bool bool -> bool", "bool")
def xor(a: np.uint32, b: np.uint32) -> np.uint32:
    return np.uint32(a ^ b)


@op("bool -> bool", "bool")
def lnot(a: np.uint32) -> np.uint32:
    return np.uint32(a == 0)

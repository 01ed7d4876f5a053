"""Conversions between kinds: `convert_{from}_{to}`.

Float to integer truncates, then saturates to the integers that the float type represents, too (so the largest u32 that
f32 converts to is 4294967040); a NaN gives 0. Spec: WGSL, "Floating Point Conversion".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .bits import to_signed, to_unsigned
from .f16 import round_double_to_f16, round_to_f16
from .generic import maximum, minimum
from .registry import define


def to_f32(a: Any) -> np.float32:
    return np.float32(a)


def to_f16(a: Any) -> np.float32:
    return round_double_to_f16(np.float64(a))


def unchanged(a: np.float32) -> np.float32:
    return a


def to_bool(a: Any) -> np.uint32:
    return np.uint32(a != 0)


def _saturating(low: float, high: float, word: Any) -> Callable[..., Any]:
    least, most, zero = np.float32(low), np.float32(high), np.float32(0)

    def truncate(a: np.float32) -> Any:
        return word(minimum(maximum(a if a == a else zero, least), most))

    return truncate


_ROWS: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("f32", "f16", round_to_f16),
    ("f16", "f32", unchanged),
    ("f32", "i32", _saturating(-(2.0**31), 2.0**31 - 2.0**7, np.int32)),
    ("f32", "u32", _saturating(0.0, 2.0**32 - 2.0**8, np.uint32)),
    ("f16", "i32", _saturating(-65504.0, 65504.0, np.int32)),
    ("f16", "u32", _saturating(0.0, 65504.0, np.uint32)),
    ("i32", "u32", to_unsigned),
    ("u32", "i32", to_signed),
    ("bool", "i32", to_signed),
    ("bool", "u32", to_unsigned),
    *((kind, "f32", to_f32) for kind in ("i32", "u32", "bool")),
    *((kind, "f16", to_f16) for kind in ("i32", "u32", "bool")),
    *((kind, "bool", to_bool) for kind in ("f32", "f16", "i32", "u32")),
)

for _source, _target, _fn in _ROWS:
    define(f"convert_{_source}_{_target}", _fn, f"{_source} -> {_target}")

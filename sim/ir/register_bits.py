"""Conversion between Python numbers and the 32 bits of a register.

A register holds f32 and f16 as the bits of a float32, i32 and u32 as they are, bool as 0 or 1.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

import numpy as np

_TYPES = {"f32": np.float32, "f16": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}
_F32, _BITS = Struct("<f"), Struct("<I")
_MOST = float(np.finfo(np.float32).max)


def to_bits(kind: str, value: Any) -> int:
    """Return the register bits of a number of this kind."""
    if kind in ("i32", "u32", "bool"):
        return int(value) & 0xFFFFFFFF
    if isinstance(value, (int, float)) and -_MOST <= value <= _MOST:  # the usual numbers, without NumPy's scalars
        return _BITS.unpack(_F32.pack(value))[0]
    with np.errstate(all="ignore"):
        return int(np.float32(value).view(np.uint32))


def from_bits(kind: str, bits: int) -> Any:
    """Return the NumPy scalar of this kind that these register bits represent."""
    return np.uint32(bits).view(_TYPES[kind])

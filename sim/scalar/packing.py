"""Several numbers in one u32, the first in the lowest bits. Unpacking returns one: `unpack4x8snorm(word, index)`.

Spec: WGSL, "Data Packing" and "Data Unpacking Built-in Functions", `dot4U8Packed`, `dot4I8Packed`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .f16 import f16_from_bits, f16_to_bits, round_to_f16
from .generic import maximum, minimum
from .registry import define, op

# ---- components as integers ----------------------------------------------------------------------------


def _normalized(low: float, scale: float) -> Callable[..., np.uint32]:
    """Compute floor(0.5 + scale * clamp(e, low, 1)); float64 is exact enough that no other rounding is needed."""
    least, most, factor = np.float32(low), np.float32(1), np.float64(scale)

    def integer(e: np.float32) -> np.uint32:
        return np.uint32(np.int32(np.floor(np.float64(minimum(maximum(e, least), most)) * factor + 0.5)))

    return integer


def _clamped(low: int, high: int, word: Any) -> Callable[..., np.uint32]:
    least, most = word(low), word(high)

    def integer(e: Any) -> np.uint32:
        return np.uint32(minimum(maximum(e, least), most))

    return integer


def _half(e: np.float32) -> np.uint32:
    return f16_to_bits(round_to_f16(e))


def _low_bits(e: Any) -> np.uint32:
    return np.uint32(e)


# ---- packing -------------------------------------------------------------------------------------------


def _four(integer: Callable[..., np.uint32]) -> Callable[..., np.uint32]:
    def pack(a: Any, b: Any, c: Any, d: Any) -> np.uint32:
        low = (integer(a) & 0xFF) | ((integer(b) & 0xFF) << 8)
        return low | ((integer(c) & 0xFF) << 16) | (integer(d) << 24)

    return pack


def _two(integer: Callable[..., np.uint32]) -> Callable[..., np.uint32]:
    def pack(a: np.float32, b: np.float32) -> np.uint32:
        return (integer(a) & 0xFFFF) | (integer(b) << 16)

    return pack


define("pack4x8snorm", _four(_normalized(-1, 127)), "T T T T -> u32", "f32")
define("pack4x8unorm", _four(_normalized(0, 255)), "T T T T -> u32", "f32")
define("pack2x16snorm", _two(_normalized(-1, 32767)), "T T -> u32", "f32")
define("pack2x16unorm", _two(_normalized(0, 65535)), "T T -> u32", "f32")
define("pack2x16float", _two(_half), "T T -> u32", "f32")
define("pack4xI8", _four(_low_bits), "T T T T -> u32", "i32")
define("pack4xU8", _four(_low_bits), "T T T T -> u32", "u32")
define("pack4xI8Clamp", _four(_clamped(-128, 127, np.int32)), "T T T T -> u32", "i32")
define("pack4xU8Clamp", _four(_clamped(0, 255, np.uint32)), "T T T T -> u32", "u32")


# ---- unpacking -----------------------------------------------------------------------------------------


def _unsigned_field(word: np.uint32, index: np.uint32, width: int) -> np.uint32:
    mask = (1 << width) - 1
    return (word >> ((index * width) & 31)) & mask


def _signed_field(word: np.uint32, index: np.uint32, width: int) -> np.int32:
    unused = 32 - width
    return np.int32(_unsigned_field(word, index, width) << unused) >> unused


def _unorm(width: int) -> Callable[..., np.float32]:
    scale = np.float32(2**width - 1)

    def unpack(word: np.uint32, index: np.uint32) -> np.float32:
        return np.float32(_unsigned_field(word, index, width)) / scale

    return unpack


def _snorm(width: int) -> Callable[..., np.float32]:
    scale, least = np.float32(2 ** (width - 1) - 1), np.float32(-1)

    def unpack(word: np.uint32, index: np.uint32) -> np.float32:
        return maximum(np.float32(_signed_field(word, index, width)) / scale, least)

    return unpack


define("unpack4x8snorm", _snorm(8), "u32 u32 -> f32", "u32")
define("unpack4x8unorm", _unorm(8), "u32 u32 -> f32", "u32")
define("unpack2x16snorm", _snorm(16), "u32 u32 -> f32", "u32")
define("unpack2x16unorm", _unorm(16), "u32 u32 -> f32", "u32")


@op("u32 u32 -> f32", "u32")
def unpack2x16float(word: np.uint32, index: np.uint32) -> np.float32:
    return f16_from_bits(_unsigned_field(word, index, 16))


@op("u32 u32 -> i32", "u32")
def unpack4xI8(word: np.uint32, index: np.uint32) -> np.int32:
    return _signed_field(word, index, 8)


@op("u32 u32 -> u32", "u32")
def unpack4xU8(word: np.uint32, index: np.uint32) -> np.uint32:
    return _unsigned_field(word, index, 8)


# ---- dot products of packed bytes ----------------------------------------------------------------------


def _unsigned_product(a: np.uint32, b: np.uint32, index: np.uint32) -> np.uint32:
    return _unsigned_field(a, index, 8) * _unsigned_field(b, index, 8)


def _signed_product(a: np.uint32, b: np.uint32, index: np.uint32) -> np.int32:
    return _signed_field(a, index, 8) * _signed_field(b, index, 8)


@op("u32 u32 -> u32", "u32")
def dot4U8Packed(a: np.uint32, b: np.uint32) -> np.uint32:
    low = _unsigned_product(a, b, np.uint32(0)) + _unsigned_product(a, b, np.uint32(1))
    return low + _unsigned_product(a, b, np.uint32(2)) + _unsigned_product(a, b, np.uint32(3))


@op("u32 u32 -> i32", "u32")
def dot4I8Packed(a: np.uint32, b: np.uint32) -> np.int32:
    low = _signed_product(a, b, np.uint32(0)) + _signed_product(a, b, np.uint32(1))
    return low + _signed_product(a, b, np.uint32(2)) + _signed_product(a, b, np.uint32(3))

"""Arithmetic and bit operations of i32 and u32, both modulo 2**32.

Spec: WGSL, "Arithmetic Expressions", "Bit Expressions", and the integer builtins.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .generic import minimum
from .registry import define, op

_INT_MIN, _MINUS_ONE, _WIDTH = np.int32(-(2**31)), np.int32(-1), np.uint32(32)


# ---- one text for i32 and u32: `word` casts back to the kind ---------------------------------------------


def _define_arithmetic(kind: str, word: Any) -> None:
    @op("T T -> T", kind)
    def add(a: Any, b: Any) -> Any:
        return a + b

    @op("T T -> T", kind)
    def sub(a: Any, b: Any) -> Any:
        return a - b

    @op("T T -> T", kind)
    def mul(a: Any, b: Any) -> Any:
        return a * b

    @op("T T -> T", kind)
    def div(a: Any, b: Any) -> Any:
        return _quotient(a, _divisor(a, b), word)

    @op("T T -> T", kind)
    def rem(a: Any, b: Any) -> Any:
        d = _divisor(a, b)
        return a - d * _quotient(a, d, word)


def _define_bitwise(kind: str, word: Any) -> None:
    @op("T T -> T", kind)
    def and_(a: Any, b: Any) -> Any:
        return a & b

    @op("T T -> T", kind)
    def or_(a: Any, b: Any) -> Any:
        return a | b

    @op("T T -> T", kind)
    def xor(a: Any, b: Any) -> Any:
        return a ^ b

    @op("T -> T", kind)
    def not_(a: Any) -> Any:
        return ~a

    @op("T u32 -> T", kind)
    def shl(a: Any, amount: np.uint32) -> Any:
        return word(np.uint32(a) << (amount & 31))

    @op("T u32 -> T", kind)
    def shr(a: Any, amount: np.uint32) -> Any:
        return word(a >> word(amount & 31))


def _define_searches(kind: str, word: Any) -> None:
    """Those that count, find or move bits."""

    @op("T -> T", kind)
    def countOneBits(a: Any) -> Any:
        return word(_ones(np.uint32(a)))

    @op("T -> T", kind)
    def countLeadingZeros(a: Any) -> Any:
        return word(_leading_zeros(np.uint32(a)))

    @op("T -> T", kind)
    def countTrailingZeros(a: Any) -> Any:
        return word(_trailing_zeros(np.uint32(a)))

    @op("T -> T", kind)
    def firstTrailingBit(a: Any) -> Any:
        """Return -1 for zero."""
        return word(_trailing_zeros(np.uint32(a))) if a != 0 else ~word(0)

    @op("T -> T", kind)
    def reverseBits(a: Any) -> Any:
        return word(_reversed(np.uint32(a)))

    @op("T T u32 u32 -> T", kind)
    def insertBits(e: Any, newbits: Any, offset: np.uint32, count: np.uint32) -> Any:
        o = minimum(offset, _WIDTH)
        mask = _low_mask(o, count) << np.uint64(o)
        kept = np.uint64(np.uint32(e)) & ~mask
        return word(np.uint32(kept | ((np.uint64(np.uint32(newbits)) << np.uint64(o)) & mask)))


# ---- division ------------------------------------------------------------------------------------------


def _divisor(a: Any, b: Any) -> Any:
    """Return b, or 1 where a / b or a % b has no result: for x / 0 and for INT_MIN / -1."""
    return b * 0 + 1 if (b == 0) | ((a == _INT_MIN) & (b == _MINUS_ONE)) else b


def _quotient(a: Any, b: Any, word: Any) -> Any:
    """Divide, rounding toward zero. float64 is exact enough for 32 bits, and its division vectorizes."""
    return word(np.float64(a) / np.float64(b))


# ---- bits of u32 ---------------------------------------------------------------------------------------


def _swapped(a: np.uint32, mask: int, by: int) -> np.uint32:
    """Exchange neighbouring fields of `by` bits; `mask` selects the lower ones."""
    return ((a & mask) << by) | ((a >> by) & mask)


def _ones(a: np.uint32) -> np.uint32:
    pairs = a - ((a >> 1) & 0x55555555)
    fours = (pairs & 0x33333333) + ((pairs >> 2) & 0x33333333)
    bytes_ = (fours + (fours >> 4)) & 0x0F0F0F0F
    return (bytes_ * 0x01010101) >> 24


def _leading_zeros(a: np.uint32) -> np.uint32:
    a = a | (a >> 1)
    a = a | (a >> 2)
    a = a | (a >> 4)
    a = a | (a >> 8)
    a = a | (a >> 16)
    return _WIDTH - _ones(a)


def _trailing_zeros(a: np.uint32) -> np.uint32:
    return _ones(~a & (a - 1))


def _reversed(a: np.uint32) -> np.uint32:
    a = _swapped(a, 0x55555555, 1)
    a = _swapped(a, 0x33333333, 2)
    a = _swapped(a, 0x0F0F0F0F, 4)
    a = _swapped(a, 0x00FF00FF, 8)
    return _swapped(a, 0x0000FFFF, 16)


def _low_mask(offset: np.uint32, count: np.uint32) -> np.uint64:
    """Set the low `count` bits, at most the 32 - `offset` that there are."""
    width = minimum(count, _WIDTH - offset)
    return (np.uint64(1) << np.uint64(width)) - np.uint64(1)


for _kind, _word in (("i32", np.int32), ("u32", np.uint32)):
    _define_arithmetic(_kind, _word)
    _define_bitwise(_kind, _word)
    _define_searches(_kind, _word)


# ---- operations that differ ----------------------------------------------------------------------------


@op("T -> T", "i32")
def neg(a: np.int32) -> np.int32:
    return -a


@op("T -> T", "i32")
def abs_(a: np.int32) -> np.int32:
    """Return |a|; INT_MIN is unchanged."""
    return -a if a < 0 else a


def _itself(a: np.uint32) -> np.uint32:
    return a


define("abs", _itself, "T -> T", "u32")


@op("T -> T", "i32")
def sign(a: np.int32) -> np.int32:
    return np.int32(a > 0) - np.int32(a < 0)


def _first_leading_bit(a: np.uint32) -> np.uint32:
    """Find the highest bit set; all ones for zero."""
    return np.uint32(31) - _leading_zeros(a)


@op("T -> T", "u32")
def firstLeadingBit(a: np.uint32) -> np.uint32:
    return _first_leading_bit(a)


@op("T -> T", "i32")
def firstLeadingBit_(a: np.int32) -> np.int32:
    """Find the highest bit that differs from the sign."""
    return np.int32(_first_leading_bit(np.uint32(a ^ (a >> 31))))


@op("T u32 u32 -> T", "u32")
def extractBits(e: np.uint32, offset: np.uint32, count: np.uint32) -> np.uint32:
    o = minimum(offset, _WIDTH)
    return np.uint32((np.uint64(e) >> np.uint64(o)) & _low_mask(o, count))


@op("T u32 u32 -> T", "i32")
def extractBits_(e: np.int32, offset: np.uint32, count: np.uint32) -> np.int32:
    """Extract bits, sign-extended from the highest of them."""
    o = minimum(offset, _WIDTH)
    mask = _low_mask(o, count)
    field = np.int64((np.uint64(np.uint32(e)) >> np.uint64(o)) & mask)
    top = np.int64((mask + 1) >> 1)
    return np.int32((field ^ top) - top)

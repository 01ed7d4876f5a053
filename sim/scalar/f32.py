"""Arithmetic of f32: every result is correctly rounded, and denormals are kept.

`f16` is defined by the functions here; `transcendental` has the transcendental ones. Spec: WGSL, "Arithmetic
Expressions", "Numeric Built-in Functions", "Floating Point Evaluation".
"""

from __future__ import annotations

import numpy as np

from .bits import bits_of, bits_of_double, double_of, float_of
from .generic import maximum, minimum
from .registry import op

ZERO, ONE, MINUS_ONE = np.float32(0), np.float32(1), np.float32(-1)
_SIGN, _ODD = np.uint32(0x80000000), np.int64(1)


@op("T T -> T", "f32", flops=1)
def add(a: np.float32, b: np.float32) -> np.float32:
    return a + b


@op("T T -> T", "f32", flops=1)
def sub(a: np.float32, b: np.float32) -> np.float32:
    return a - b


@op("T T -> T", "f32", flops=1)
def mul(a: np.float32, b: np.float32) -> np.float32:
    return a * b


@op("T T -> T", "f32", flops=1)
def div(a: np.float32, b: np.float32) -> np.float32:
    return a / b


@op("T T -> T", "f32", flops=1)
def rem(a: np.float32, b: np.float32) -> np.float32:
    """Compute a - b * trunc(a / b) without intermediate rounding: exact."""
    return np.fmod(a, b)


@op("T -> T", "f32")
def neg(a: np.float32) -> np.float32:
    return float_of(bits_of(a) ^ _SIGN)


@op("T -> T", "f32")
def abs_(a: np.float32) -> np.float32:
    return float_of(bits_of(a) & ~_SIGN)


@op("T -> T", "f32")
def length(a: np.float32) -> np.float32:
    """Return |a|. An implementation may compute sqrt(a * a), which overflows or underflows where this does not."""
    return float_of(bits_of(a) & ~_SIGN)


@op("T T T -> T", "f32", flops=2)
def fma(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Compute a * b + c, rounded once.

    The product is exact in float64. The sum is rounded to odd there (its last bit records whether anything was lost),
    which makes the second rounding, to f32, correct. Compiled code uses the hardware's instruction.
    """
    product, addend = np.float64(a) * np.float64(b), np.float64(c)
    total = product + addend
    part = total - product
    lost = (product - (total - part)) + (addend - part)
    bits = bits_of_double(total)
    # Not `lost != 0`: it is a NaN where the sum is infinite.
    inexact = (lost > 0.0) | (lost < 0.0)
    toward = _ODD if (lost > 0.0) == (total > 0.0) else -_ODD
    nudge = toward if inexact & ((bits & _ODD) == 0) else np.int64(0)
    return np.float32(double_of(bits + nudge))


@op("T T T -> T", "f32", flops=2)
def mad(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Compute a * b + c, rounding the product and the sum: two operations in one instruction."""
    return np.float32(a * b) + c


@op("T -> T", "f32", flops=1)
def sqrt(a: np.float32) -> np.float32:
    return np.sqrt(a)


@op("T -> T", "f32")
def floor(a: np.float32) -> np.float32:
    return np.floor(a)


@op("T -> T", "f32")
def ceil(a: np.float32) -> np.float32:
    return np.ceil(a)


@op("T -> T", "f32")
def trunc(a: np.float32) -> np.float32:
    return np.trunc(a)


@op("T -> T", "f32")
def round_(a: np.float32) -> np.float32:
    """Round to the nearest integer, ties to even."""
    return np.rint(a)


@op("T -> T", "f32", flops=1)
def fract(a: np.float32) -> np.float32:
    return a - np.floor(a)


@op("T -> T", "f32")
def modf_whole(a: np.float32) -> np.float32:
    return np.trunc(a)


@op("T -> T", "f32")
def modf_fract(a: np.float32) -> np.float32:
    return a - np.trunc(a)


@op("T -> T", "f32")
def sign(a: np.float32) -> np.float32:
    """Return 0 for a NaN."""
    return ONE if a > ZERO else (MINUS_ONE if a < ZERO else ZERO)


@op("T T -> T", "f32")
def step(edge: np.float32, x: np.float32) -> np.float32:
    return ONE if edge <= x else ZERO


@op("T -> T", "f32")
def saturate(a: np.float32) -> np.float32:
    """Return 0 for a NaN."""
    return minimum(maximum(a, ZERO), ONE)


# ---- fractions and exponents, computed in float64, where every f32 is zero or a normal number ----------

_BIAS = np.int64(1022)
_MANTISSA = np.int64(0x800FFFFFFFFFFFFF - 2**64)
_HALF = np.int64(1022 << 52)


def scaled(a: np.float32, exponent: np.int32) -> np.float64:
    """Compute a * 2**exponent, exact for every exponent that matters."""
    e = minimum(maximum(np.int64(exponent), np.int64(-400)), np.int64(400))
    return np.float64(a) * double_of((e + 1023) << 52)


@op("T i32 -> T", "f32")
def ldexp(a: np.float32, exponent: np.int32) -> np.float32:
    return np.float32(scaled(a, exponent))


def has_exponent(a: np.float32) -> bool:
    """Whether a number is finite and not zero."""
    return (a != ZERO) & (a - a == ZERO)


@op("T -> T", "f32")
def frexp_fract(a: np.float32) -> np.float32:
    """Return the fraction, in [0.5, 1) with the sign of a; a itself where a is zero, infinite or a NaN."""
    fract = np.float32(double_of((bits_of_double(np.float64(a)) & _MANTISSA) | _HALF))
    return fract if has_exponent(a) else a


@op("T -> i32", "f32")
def frexp_exp(a: np.float32) -> np.int32:
    """Return the exponent; 0 where a is zero, infinite or a NaN."""
    exponent = ((bits_of_double(np.float64(a)) >> 52) & 0x7FF) - _BIAS
    return np.int32(exponent if has_exponent(a) else np.int64(0))

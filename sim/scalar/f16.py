"""f16, held in an f32 that f16 can represent: the f32 operation, then one rounding to f16.

For +, -, *, / and the square root, rounding twice gives the same result as once, because f32 has at least 2p + 2 bits
of precision for the p of f16. Results computed in float64 are rounded to f16 directly.

Spec: WGSL, "Floating Point Types"; IEEE-754 binary16.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import f32
from .bits import bits_of, bits_of_double, double_of, float_of
from .registry import OPS, Plain, define, op

_SIGN, _EXPONENT = np.uint32(0x80000000), np.uint32(0x7F800000)
_SIGN64, _EXPONENT64 = np.int64(-(2**63)), np.int64(0x7FF0000000000000)
_LEAST_EXPONENT, _LEAST_EXPONENT64 = np.uint32((127 - 14) << 23), np.int64((1023 - 14) << 52)
_EXCESS, _EXCESS64 = np.uint32((23 - 10) << 23), np.int64((52 - 10) << 52)
_OVERFLOW, _INFINITY = np.float32(65520), np.float32(np.inf)


def round_to_f16(a: np.float32) -> np.float32:
    """Round an f32 to the nearest f16, ties to even; from the midpoint of 65504 and 65536 on, to infinity.

    Adding and subtracting 2**13 times the power of two in `a` (or in the least normal f16) leaves exactly the bits that
    f16 has; the addition rounds.
    """
    bits = bits_of(a)
    magnitude = float_of(bits & ~_SIGN)
    exponent = bits & _EXPONENT
    exponent = exponent if exponent > _LEAST_EXPONENT else _LEAST_EXPONENT
    magic = float_of(exponent + _EXCESS)
    rounded = (magnitude + magic) - magic
    rounded = _INFINITY if magnitude >= _OVERFLOW else rounded
    return float_of(bits_of(rounded) | (bits & _SIGN))


def round_double_to_f16(a: np.float64) -> np.float32:
    """Round a float64 to the nearest f16, as `round_to_f16` does."""
    bits = bits_of_double(a)
    magnitude = double_of(bits & ~_SIGN64)
    exponent = bits & _EXPONENT64
    exponent = exponent if exponent > _LEAST_EXPONENT64 else _LEAST_EXPONENT64
    # The sum of exponents would overflow for large numbers.
    magic = double_of(exponent + _EXCESS64) if magnitude < 65520.0 else magnitude
    rounded = (magnitude + magic) - magic
    rounded = np.float64(np.inf) if magnitude >= 65520.0 else rounded
    return float_of(bits_of(np.float32(rounded)) | (_SIGN if bits < 0 else np.uint32(0)))


# ---- operations ----------------------------------------------------------------------------------------

_EXACT = "neg abs length floor ceil trunc round modf_whole modf_fract sign step saturate frexp_fract frexp_exp"
_ROUNDED_UNARY = "sqrt fract"
_ROUNDED_BINARY = "add sub mul div rem"


def _unary(fn: Callable[..., np.float32]) -> Callable[..., np.float32]:
    def rounded(a: np.float32) -> np.float32:
        return round_to_f16(fn(a))

    return rounded


def _binary(fn: Callable[..., np.float32]) -> Callable[..., np.float32]:
    def rounded(a: np.float32, b: np.float32) -> np.float32:
        return round_to_f16(fn(a, b))

    return rounded


def _unchanged(fn: Plain) -> Plain:
    return fn


_LIFTS: tuple[tuple[Callable[[Plain], Plain], str], ...] = (
    (_unchanged, _EXACT),
    (_unary, _ROUNDED_UNARY),
    (_binary, _ROUNDED_BINARY),
)
for _lift, _stems in _LIFTS:
    for _stem in _stems.split():
        _row = OPS[f"{_stem}_f32"]
        _signature = " ".join(("T " * len(_row.args), "->", "T" if _row.result == "f32" else _row.result))
        define(_stem, _lift(_row.fn), _signature, "f16", _row.flops)


@op("T T T -> T", "f16", flops=2)
def fma(a: np.float32, b: np.float32, c: np.float32) -> np.float32:
    """Compute a * b + c, rounded once: where float64 cannot hold the sum exactly, it is far from a midpoint of f16."""
    return round_double_to_f16(np.float64(a) * np.float64(b) + np.float64(c))


@op("T i32 -> T", "f16")
def ldexp(a: np.float32, exponent: np.int32) -> np.float32:
    return round_double_to_f16(f32.scaled(a, exponent))


@op("T -> T", "f32")
def quantizeToF16(a: np.float32) -> np.float32:
    return round_to_f16(a)


# ---- encoding ------------------------------------------------------------------------------------------

_LEAST_NORMAL, _STEPS, _STEP = np.float32(2**-14), np.float32(2**24), np.float32(2**-24)
_REBIAS, _REBIAS_INFINITY = np.uint32((127 - 15) << 23), np.uint32((255 - 31) << 23)


@op("u32 -> f16", "u32")
def f16_from_bits(word: np.uint32) -> np.float32:
    """Decode the f16 in the low 16 bits."""
    half = word & 0x7FFF
    shifted = half << 13
    normal = shifted + (_REBIAS_INFINITY if half >= 0x7C00 else _REBIAS)
    magnitude = bits_of(np.float32(half) * _STEP) if half < 0x400 else normal
    return float_of(magnitude | ((word & 0x8000) << 16))


@op("f16 -> u32", "f16")
def f16_to_bits(a: np.float32) -> np.uint32:
    """Encode an f16 in the low 16 bits; every NaN becomes the quiet NaN."""
    bits = bits_of(a) & ~_SIGN
    magnitude = float_of(bits)
    half = (bits - _REBIAS) >> 13
    half = np.uint32(magnitude * _STEPS) if magnitude < _LEAST_NORMAL else half
    half = np.uint32(0x7C00) if magnitude == _INFINITY else half
    half = np.uint32(0x7E00) if magnitude != magnitude else half
    return half | ((bits_of(a) & _SIGN) >> 16)

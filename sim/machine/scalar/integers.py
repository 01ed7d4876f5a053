"""i32, u32 and bool: arithmetic that wraps at 32 bits, bits, comparisons. Spec: WGSL, "Arithmetic Expressions".

Division: x / 0 is x, x % 0 is 0, and the smallest i32 by -1 is itself, remainder 0. Shifts use the amount modulo 32.
Quotients go through float64, where they are exact after truncation and LLVM has vector instructions for them.
"""

from __future__ import annotations

import numpy as np

from .define import helper, op

_U = np.uint32
_LOWEST = np.int32(-(2**31))


def _kinds(signature: str, *kinds: str):
    """Register one function for several kinds (`x` in the signature), cast to each."""

    def mark(fn):
        for kind in kinds:
            op(signature.replace("x", kind), 0, f"{fn.__name__}_{kind}")(fn)
        return fn

    return mark


# ---- arithmetic ----


@op("i32 i32 -> i32")
def add_i32(a, b):
    return np.int32(a + b)


@op("u32 u32 -> u32")
def add_u32(a, b):
    return np.uint32(a + b)


@op("i32 i32 -> i32")
def sub_i32(a, b):
    return np.int32(a - b)


@op("u32 u32 -> u32")
def sub_u32(a, b):
    return np.uint32(a - b)


@op("i32 i32 -> i32")
def mul_i32(a, b):
    return np.int32(a * b)


@op("u32 u32 -> u32")
def mul_u32(a, b):
    return np.uint32(a * b)


@helper
@op("i32 i32 -> i32")
def div_i32(a, b):
    whole = (b == 0) | ((a == _LOWEST) & (b == -1))
    return np.int32(np.float64(a) / np.float64(np.int32(1) if whole else b))


@helper
@op("u32 u32 -> u32")
def div_u32(a, b):
    return np.uint32(np.float64(a) / np.float64(_U(1) if b == 0 else b))


@op("i32 i32 -> i32")
def rem_i32(a, b):
    whole = (b == 0) | ((a == _LOWEST) & (b == -1))
    return np.int32(0) if whole else np.int32(a - np.int32(div_i32(a, b) * b))


@op("u32 u32 -> u32")
def rem_u32(a, b):
    return _U(0) if b == 0 else np.uint32(a - np.uint32(div_u32(a, b) * b))


@op("i32 -> i32")
def neg_i32(a):
    return np.int32(-a)


@op("i32 -> i32")
def abs_i32(a):
    return np.int32(-a) if a < 0 else a


@op("u32 -> u32")
def abs_u32(a):
    return a


@op("i32 -> i32")
def sign_i32(a):
    return np.int32(1) if a > 0 else (np.int32(-1) if a < 0 else np.int32(0))


@_kinds("x x -> x", "i32", "u32")
def min(a, b):
    return b if b < a else a


@_kinds("x x -> x", "i32", "u32")
def max(a, b):
    return b if a < b else a


@_kinds("x x x -> x", "i32", "u32")
def clamp(e, low, high):
    raised = low if e < low else e
    return high if high < raised else raised


# ---- bits ----


def _bitwise(kind, cast):
    def both(a, b):
        return cast(a & b)

    def either(a, b):
        return cast(a | b)

    def differ(a, b):
        return cast(a ^ b)

    for stem, fn in (("and", both), ("or", either), ("xor", differ)):
        op(f"{kind} {kind} -> {kind}", 0, f"{stem}_{kind}")(fn)


for _kind, _cast in (("i32", np.int32), ("u32", np.uint32), ("bool", np.uint32)):
    _bitwise(_kind, _cast)


@op("i32 -> i32")
def not_i32(a):
    return np.int32(~a)


@op("u32 -> u32")
def not_u32(a):
    return np.uint32(~a)


@op("i32 u32 -> i32")
def shl_i32(a, n):
    return np.int32(np.uint32(a) << (n & _U(31)))


@op("u32 u32 -> u32")
def shl_u32(a, n):
    return np.uint32(a << (n & _U(31)))


@op("i32 u32 -> i32")
def shr_i32(a, n):
    return np.int32(a >> np.int32(n & _U(31)))


@op("u32 u32 -> u32")
def shr_u32(a, n):
    return np.uint32(a >> (n & _U(31)))


@helper
def ones(word):
    """How many bits of a word are 1."""
    word = np.uint32(word - ((word >> _U(1)) & _U(0x55555555)))
    word = np.uint32((word & _U(0x33333333)) + ((word >> _U(2)) & _U(0x33333333)))
    word = np.uint32((word + (word >> _U(4))) & _U(0x0F0F0F0F))
    return np.uint32(np.uint32(word * _U(0x01010101)) >> _U(24))


@helper
def smear(word):
    """Every bit below the highest 1 made 1."""
    word = np.uint32(word | (word >> _U(1)))
    word = np.uint32(word | (word >> _U(2)))
    word = np.uint32(word | (word >> _U(4)))
    word = np.uint32(word | (word >> _U(8)))
    return np.uint32(word | (word >> _U(16)))


@helper
def trailing(word):
    """Zeros below the lowest 1; 32 for 0."""
    return ones(np.uint32(~word & np.uint32(word - _U(1))))


@helper
def mirrored(word):
    word = np.uint32(((word >> _U(1)) & _U(0x55555555)) | ((word & _U(0x55555555)) << _U(1)))
    word = np.uint32(((word >> _U(2)) & _U(0x33333333)) | ((word & _U(0x33333333)) << _U(2)))
    word = np.uint32(((word >> _U(4)) & _U(0x0F0F0F0F)) | ((word & _U(0x0F0F0F0F)) << _U(4)))
    word = np.uint32(((word >> _U(8)) & _U(0x00FF00FF)) | ((word & _U(0x00FF00FF)) << _U(8)))
    return np.uint32((word >> _U(16)) | np.uint32(word << _U(16)))


@op("u32 -> u32")
def countOneBits_u32(e):
    return ones(e)


@op("i32 -> i32")
def countOneBits_i32(e):
    return np.int32(ones(np.uint32(e)))


@op("u32 -> u32")
def countLeadingZeros_u32(e):
    return np.uint32(_U(32) - ones(smear(e)))


@op("i32 -> i32")
def countLeadingZeros_i32(e):
    return np.int32(_U(32) - ones(smear(np.uint32(e))))


@op("u32 -> u32")
def countTrailingZeros_u32(e):
    return trailing(e)


@op("i32 -> i32")
def countTrailingZeros_i32(e):
    return np.int32(trailing(np.uint32(e)))


@op("u32 -> u32")
def reverseBits_u32(e):
    return mirrored(e)


@op("i32 -> i32")
def reverseBits_i32(e):
    return np.int32(mirrored(np.uint32(e)))


@op("u32 -> u32")
def firstTrailingBit_u32(e):
    return _U(0xFFFFFFFF) if e == 0 else trailing(e)


@op("i32 -> i32")
def firstTrailingBit_i32(e):
    return np.int32(-1) if e == 0 else np.int32(trailing(np.uint32(e)))


@op("u32 -> u32")
def firstLeadingBit_u32(e):
    return np.uint32(ones(smear(e)) - _U(1))


@op("i32 -> i32")
def firstLeadingBit_i32(e):
    """The highest bit that differs from the sign; -1 for 0 and -1."""
    return np.int32(np.uint32(ones(smear(np.uint32(~e if e < 0 else e))) - _U(1)))


@helper
def low_mask(count):
    """`count` ones, for 0 to 32."""
    return _U(0xFFFFFFFF) if count >= 32 else np.uint32(np.uint32(_U(1) << (count & _U(31))) - _U(1))


@op("u32 u32 u32 -> u32")
def extractBits_u32(e, offset, count):
    o = offset if offset < 32 else _U(32)
    c = count if count < _U(32) - o else np.uint32(_U(32) - o)
    return np.uint32((e >> (o & _U(31))) & low_mask(c)) if c > 0 else _U(0)


@op("i32 u32 u32 -> i32")
def extractBits_i32(e, offset, count):
    o = offset if offset < 32 else _U(32)
    c = count if count < _U(32) - o else np.uint32(_U(32) - o)
    up = np.uint32(_U(32) - o - c) & _U(31)
    raised = np.int32(np.uint32(e) << up)
    return np.int32(raised >> np.int32(np.uint32(_U(32) - c) & _U(31))) if c > 0 else np.int32(0)


@helper
def inserted(e, new, offset, count):
    o = offset if offset < 32 else _U(32)
    c = count if count < _U(32) - o else np.uint32(_U(32) - o)
    mask = np.uint32(low_mask(c) << (o & _U(31))) if c > 0 else _U(0)
    return np.uint32((e & ~mask) | (np.uint32(new << (o & _U(31))) & mask))


@op("u32 u32 u32 u32 -> u32")
def insertBits_u32(e, new, offset, count):
    return inserted(e, new, offset, count)


@op("i32 i32 u32 u32 -> i32")
def insertBits_i32(e, new, offset, count):
    return np.int32(inserted(np.uint32(e), np.uint32(new), offset, count))


# ---- comparisons and logic ----


@_kinds("x x -> bool", "i32", "u32", "bool")
def eq(a, b):
    return np.uint32(a == b)


@_kinds("x x -> bool", "i32", "u32", "bool")
def ne(a, b):
    return np.uint32(a != b)


@_kinds("x x -> bool", "i32", "u32")
def lt(a, b):
    return np.uint32(a < b)


@_kinds("x x -> bool", "i32", "u32")
def le(a, b):
    return np.uint32(a <= b)


@_kinds("x x -> bool", "i32", "u32")
def gt(a, b):
    return np.uint32(a > b)


@_kinds("x x -> bool", "i32", "u32")
def ge(a, b):
    return np.uint32(a >= b)


@_kinds("x x bool -> x", "i32", "u32", "bool")
def select(if_false, if_true, condition):
    return if_true if condition != 0 else if_false


@op("bool -> bool")
def lnot_bool(a):
    return np.uint32(a ^ _U(1))

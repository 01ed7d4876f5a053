"""f32 and f16: arithmetic, comparisons and numeric builtins. Spec: WGSL, "Floating Point Evaluation".

Add, subtract, multiply, divide, square root and fma are correctly rounded; other functions are computed in float64 and
rounded once. Denormals are kept. `min` and `max` give the operand that is not NaN.
"""

from __future__ import annotations

import math

import numpy as np

from .define import OPS, helper, op
from .rounding import odd_sum, round_f16

_INF = np.float64(np.inf)


# ---- arithmetic on f32 -------------------------------------------------------------------------------


@op("f32 f32 -> f32", flops=1)
def add_f32(a, b):
    return np.float32(a + b)


@op("f32 f32 -> f32", flops=1)
def sub_f32(a, b):
    return np.float32(a - b)


@op("f32 f32 -> f32", flops=1)
def mul_f32(a, b):
    return np.float32(a * b)


@op("f32 f32 -> f32", flops=1)
def div_f32(a, b):
    return np.float32(a / b)


@op("f32 f32 f32 -> f32", flops=2)
def fma_f32(a, b, c):
    """a * b + c, rounded once: the product is exact in float64."""
    return np.float32(odd_sum(np.float64(a) * np.float64(b), np.float64(c)))


@op("f32 f32 -> f32", flops=1)
def rem_f32(a, b):
    return np.float32(np.fmod(a, b))


@op("f32 -> f32")
def neg_f32(a):
    return np.float32(-a)


@op("f32 -> f32", flops=1)
def sqrt_f32(a):
    return np.float32(np.sqrt(a))


# ---- arithmetic on f16: exact in float64 but for one rounding ------------------------------------------


@op("f16 f16 -> f16", flops=1)
def add_f16(a, b):
    return round_f16(np.float64(a) + np.float64(b))


@op("f16 f16 -> f16", flops=1)
def sub_f16(a, b):
    return round_f16(np.float64(a) - np.float64(b))


@op("f16 f16 -> f16", flops=1)
def mul_f16(a, b):
    return round_f16(np.float64(a) * np.float64(b))


@op("f16 f16 -> f16", flops=1)
def div_f16(a, b):
    return round_f16(np.float64(a) / np.float64(b))


@op("f16 f16 f16 -> f16", flops=2)
def fma_f16(a, b, c):
    return round_f16(odd_sum(np.float64(a) * np.float64(b), np.float64(c)))


@op("f16 f16 -> f16", flops=1)
def rem_f16(a, b):
    return np.float32(np.fmod(a, b))


@op("f16 -> f16")
def neg_f16(a):
    return np.float32(-a)


@op("f16 -> f16", flops=1)
def sqrt_f16(a):
    return round_f16(np.sqrt(np.float64(a)))


# ---- exact on either kind: the result of f16 operands is an f16 ------------------------------------------


def _both(signature: str, flops: int = 0):
    """Register one function for f32 and f16. `x` in the signature is the kind."""

    def mark(fn):
        for kind in ("f32", "f16"):
            op(signature.replace("x", kind), flops, f"{fn.__name__}_{kind}")(fn)
        return fn

    return mark


@_both("x -> x")
def abs(a):
    return np.float32(np.abs(a))


@_both("x -> x")
def ceil(a):
    return np.float32(np.ceil(a))


@_both("x -> x")
def floor(a):
    return np.float32(np.floor(a))


@_both("x -> x")
def trunc(a):
    return np.float32(np.trunc(a))


@_both("x -> x")
def round(a):
    return np.float32(np.rint(a))


@_both("x -> x", flops=1)
def fract(a):
    return np.float32(a - np.float32(np.floor(a)))


@helper
@_both("x x -> x", flops=1)
def min(a, b):
    return b if (b < a) | (a != a) else a


@helper
@_both("x x -> x", flops=1)
def max(a, b):
    return b if (a < b) | (a != a) else a


@_both("x x x -> x", flops=2)
def clamp(e, low, high):
    return min(max(e, low), high)


@_both("x -> x", flops=2)
def saturate(e):
    return min(max(e, np.float32(0.0)), np.float32(1.0))


@_both("x -> x")
def sign(e):
    return np.float32(1.0) if e > 0 else (np.float32(-1.0) if e < 0 else np.float32(0.0))


@_both("x x -> x")
def step(edge, e):
    return np.float32(1.0) if edge <= e else np.float32(0.0)


@_both("x -> x")
def modf_whole(e):
    return np.float32(np.trunc(e))


@_both("x -> x")
def modf_fract(e):
    return np.float32(e - np.float32(np.trunc(e)))


@_both("x -> x")
def frexp_fract(e):
    return np.float32(math.frexp(e)[0])


@_both("x -> i32")
def frexp_exp(e):
    return np.int32(math.frexp(e)[1])


@_both("x x -> bool")
def eq(a, b):
    return np.uint32(a == b)


@_both("x x -> bool")
def ne(a, b):
    return np.uint32(a != b)


@_both("x x -> bool")
def lt(a, b):
    return np.uint32(a < b)


@_both("x x -> bool")
def le(a, b):
    return np.uint32(a <= b)


@_both("x x -> bool")
def gt(a, b):
    return np.uint32(a > b)


@_both("x x -> bool")
def ge(a, b):
    return np.uint32(a >= b)


@_both("x x bool -> x")
def select(if_false, if_true, condition):
    return if_true if condition != 0 else if_false


@op("f32 -> f32")
def quantizeToF16_f32(e):
    return round_f16(np.float64(e))


# ---- computed in float64, rounded once -------------------------------------------------------------------


@helper
def in_inverse_sqrt(x):
    return 1.0 / np.sqrt(x)


@helper
def in_degrees(x):
    return x * 57.295779513082322865


@helper
def in_radians(x):
    return x * 0.017453292519943295474


@helper
def in_ldexp(x, exponent):
    # Two steps, so that neither power of two overflows; clamped far outside the range of either kind.
    bounded = np.float64(exponent if exponent < 400 else 400)
    bounded = bounded if bounded > -400.0 else -400.0
    half = np.floor(bounded * 0.5)
    return x * np.exp2(half) * np.exp2(bounded - half)


_UNARY = {
    **{"acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan},
    **{"atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2, "log": np.log},
    **{"log2": np.log2, "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh},
    **{"inverseSqrt": in_inverse_sqrt, "degrees": in_degrees, "radians": in_radians},
}
_BINARY = {"atan2": np.arctan2, "pow": np.power}


def _unary(function):
    def single(a):
        return np.float32(function(np.float64(a)))

    def half(a):
        return round_f16(function(np.float64(a)))

    return {"f32": single, "f16": half}


def _binary(function):
    def single(a, b):
        return np.float32(function(np.float64(a), np.float64(b)))

    def half(a, b):
        return round_f16(function(np.float64(a), np.float64(b)))

    return {"f32": single, "f16": half}


for _make, _table, _shape in ((_unary, _UNARY, "{0} -> {0}"), (_binary, _BINARY, "{0} {0} -> {0}")):
    for _stem, _function in _table.items():
        for _kind, _fn in _make(_function).items():
            op(_shape.format(_kind), 1, f"{_stem}_{_kind}")(_fn)


@op("f32 i32 -> f32", flops=1)
def ldexp_f32(e, exponent):
    return np.float32(in_ldexp(np.float64(e), exponent))


@op("f16 i32 -> f16", flops=1)
def ldexp_f16(e, exponent):
    return round_f16(in_ldexp(np.float64(e), exponent))


__all__ = ["OPS"]

"""Bit reinterpretation, logical, numeric and packing builtins: pure functions of their arguments.

Spec: WGSL, "Bit Reinterpretation", "Logical", "Numeric", "Data Packing" and "Data Unpacking Built-in Functions".
"""

from __future__ import annotations

from .accuracy import ATAN2, CORRECT, LOGARITHM, SINE, UNBOUNDED, Accuracy, inherits, ulp, worse_of
from .row import Builtin

_FLOAT = "T: anyfloat | vecN<anyfloat>"
_NUMBER = "T: anynum | vecN<anynum>"
_INTEGER = "T: int | vecN<int>"
_PACKED = "packed_4x8_integer_dot_product"


def _op(
    name: str, params: int, over: str = _FLOAT, accuracy: Accuracy | None = CORRECT, anchor: str | None = None
) -> Builtin:
    """A componentwise function of `params` arguments of one type T to T."""
    signature = f"({', '.join('T' * params)}) -> T; {over}"
    return Builtin(name, (signature,), anchor or f"{name}-builtin", op=name, accuracy=accuracy)


def _compose(name: str, *signatures: str, accuracy: Accuracy | None = None, requires: str | None = None) -> Builtin:
    return Builtin(name, signatures, f"{name}-builtin", kind="compose", accuracy=accuracy, requires=requires)


_BITCAST = (
    "<T>(T) -> T; T: num | vecN<num>",
    "<T>(S) -> T; T: word; S: word",
    "<vecN<T>>(vecN<S>) -> vecN<T>; T: word; S: word",
    "<u32>(ai) -> u32",
    "<vecN<u32>>(vecN<ai>) -> vecN<u32>",
    "<T>(vec2<f16>) -> T; T: word",
    "<vec2<T>>(vec4<f16>) -> vec2<T>; T: word",
    "<vec2<f16>>(T) -> vec2<f16>; T: word",
    "<vec4<f16>>(vec2<T>) -> vec4<f16>; T: word",
)

_LOGICAL = (
    _compose("bitcast", *_BITCAST, accuracy=CORRECT),
    _compose("all", "(bool) -> bool", "(vecN<bool>) -> bool"),
    _compose("any", "(bool) -> bool", "(vecN<bool>) -> bool"),
    Builtin(
        "select",
        ("(T, T, bool) -> T; T: scalar | vecN<scalar>", "(vecN<T>, vecN<T>, vecN<bool>) -> vecN<T>; T: scalar"),
        "select-builtin",
        op="select",
    ),
)

_COMPONENTWISE = (
    _op("abs", 1, _NUMBER, anchor="abs-float-builtin"),
    _op("acos", 1, accuracy=worse_of(6.77e-5, 3.91e-3, "atan2(sqrt(1.0 - x * x), x)")),
    _op("acosh", 1, accuracy=inherits("log(x + sqrt(x * x - 1.0))")),
    _op("asin", 1, accuracy=worse_of(6.81e-5, 3.91e-3, "atan2(x, sqrt(1.0 - x * x))")),
    _op("asinh", 1, accuracy=inherits("log(x + sqrt(x * x + 1.0))")),
    _op("atan", 1, accuracy=ulp(4096, 5)),
    _op("atan2", 2, accuracy=ATAN2),
    _op("atanh", 1, accuracy=inherits("log((1.0 + x) / (1.0 - x)) * 0.5")),
    _op("ceil", 1),
    _op("clamp", 3, _NUMBER, anchor="clamp"),
    _op("cos", 1, accuracy=SINE),
    _op("cosh", 1, accuracy=inherits("(exp(x) + exp(-x)) * 0.5")),
    _op("countLeadingZeros", 1, _INTEGER, None),
    _op("countOneBits", 1, _INTEGER, None),
    _op("countTrailingZeros", 1, _INTEGER, None),
    _op("degrees", 1, accuracy=inherits("x * 57.295779513082322865")),
    _op("exp", 1, accuracy=ulp(3, 1, slope=2)),
    _op("exp2", 1, accuracy=ulp(3, 1, slope=2)),
    Builtin("extractBits", (f"(T, u32, u32) -> T; {_INTEGER}",), "extractBits-unsigned-builtin", op="extractBits"),
    _op("firstLeadingBit", 1, _INTEGER, None, anchor="firstLeadingBit-unsigned-builtin"),
    _op("firstTrailingBit", 1, _INTEGER, None),
    _op("floor", 1),
    _op("fma", 3, accuracy=inherits("x * y + z")),
    _op("fract", 1, accuracy=inherits("x - floor(x)")),
    Builtin("insertBits", (f"(T, T, u32, u32) -> T; {_INTEGER}",), "insertBits-builtin", op="insertBits"),
    _op("inverseSqrt", 1, accuracy=ulp(2)),
    Builtin(
        "ldexp",
        # In the spec, abstract-float goes with abstract-int only; implementations and the conformance suite accept i32,
        # too.
        (
            "(T, i32) -> T; T: anyfloat",
            "(vecN<T>, vecN<i32>) -> vecN<T>; T: anyfloat",
            "(af, ai) -> af",
            "(vecN<af>, vecN<ai>) -> vecN<af>",
        ),
        "ldexp-builtin",
        op="ldexp",
        accuracy=CORRECT,
    ),
    _op("log", 1, accuracy=LOGARITHM),
    _op("log2", 1, accuracy=LOGARITHM),
    _op("max", 2, _NUMBER, anchor="max-float-builtin"),
    _op("min", 2, _NUMBER, anchor="min-float-builtin"),
    _op("pow", 2, accuracy=inherits("exp2(y * log2(x))")),
    _op("quantizeToF16", 1, "T: f32 | vecN<f32>"),
    _op("radians", 1, accuracy=inherits("x * 0.017453292519943295474")),
    _op("reverseBits", 1, _INTEGER, None),
    _op("round", 1),
    _op("saturate", 1, anchor="saturate-float-builtin"),
    _op("sign", 1, "T: signed | vecN<signed>"),
    _op("sin", 1, accuracy=SINE),
    _op("sinh", 1, accuracy=inherits("(exp(x) - exp(-x)) * 0.5")),
    _op("sqrt", 1, accuracy=inherits("1.0 / inverseSqrt(x)")),
    _op("step", 2),
    _op("tan", 1, accuracy=inherits("sin(x) / cos(x)")),
    _op("tanh", 1, accuracy=worse_of(1e-5, 1e-5, "sinh(x) / cosh(x)")),
    _op("trunc", 1),
)

_VECTORS = "vecN<T>; T: anyfloat"

_COMPOSED = (
    _compose("cross", "(vec3<T>, vec3<T>) -> vec3<T>; T: anyfloat", accuracy=inherits("x[i] * y[j] - x[j] * y[i]")),
    _compose(
        "determinant",
        *(f"(mat{n}x{n}<T>) -> T; T: anyfloat" for n in (2, 3, 4)),
        accuracy=UNBOUNDED,
    ),
    _compose(
        "distance",
        "(T, T) -> T; T: anyfloat",
        "(vecN<T>, vecN<T>) -> T; T: anyfloat",
        accuracy=inherits("length(x - y)"),
    ),
    _compose("dot", "(vecN<T>, vecN<T>) -> T; T: anynum", accuracy=inherits("sum of x[i] * y[i]")),
    _compose(
        "faceForward",
        f"(vecN<T>, vecN<T>, vecN<T>) -> {_VECTORS}",
        accuracy=inherits("select(-x, x, dot(z, y) < 0.0)"),
    ),
    _compose("frexp", "(T) -> frexp<T>; T: anyfloat | vecN<anyfloat>", accuracy=CORRECT),
    _compose(
        "length",
        "(T) -> T; T: anyfloat",
        "(vecN<T>) -> T; T: anyfloat",
        accuracy=inherits("sqrt(x * x)"),  # of a vector sqrt(dot(x, x)), as it is composed
    ),
    _compose(
        "mix",
        f"(T, T, T) -> T; {_FLOAT}",
        f"(vecN<T>, vecN<T>, T) -> {_VECTORS}",
        accuracy=inherits("x * (1.0 - z) + y * z"),
    ),
    _compose("modf", "(T) -> modf<T>; T: anyfloat | vecN<anyfloat>", accuracy=CORRECT),
    _compose("normalize", f"(vecN<T>) -> {_VECTORS}", accuracy=inherits("x / length(x)")),
    _compose("reflect", f"(vecN<T>, vecN<T>) -> {_VECTORS}", accuracy=inherits("x - 2.0 * dot(x, y) * y")),
    _compose(
        "refract",
        f"(vecN<T>, vecN<T>, T) -> {_VECTORS}",
        accuracy=inherits("z * x - (z * dot(y, x) + sqrt(1.0 - z * z * (1.0 - dot(y, x) * dot(y, x)))) * y"),
    ),
    _compose(
        "smoothstep",
        f"(T, T, T) -> T; {_FLOAT}",
        accuracy=inherits("t * t * (3.0 - 2.0 * t), t = clamp((x - edge0) / (edge1 - edge0), 0.0, 1.0)"),
    ),
    _compose("transpose", "(matCxR<T>) -> matRxC<T>; T: anyfloat", accuracy=CORRECT),
)


def _packing(name: str, signature: str, accuracy: Accuracy | None = None) -> Builtin:
    packed = _PACKED if "4x" in name and "norm" not in name else None
    return _compose(name, signature, accuracy=accuracy, requires=packed)


_PACKING = (
    Builtin("dot4U8Packed", ("(u32, u32) -> u32",), "dot4U8Packed-builtin", op="dot4U8Packed", requires=_PACKED),
    Builtin("dot4I8Packed", ("(u32, u32) -> i32",), "dot4I8Packed-builtin", op="dot4I8Packed", requires=_PACKED),
    _packing("pack4x8snorm", "(vec4<f32>) -> u32"),
    _packing("pack4x8unorm", "(vec4<f32>) -> u32"),
    _packing("pack4xI8", "(vec4<i32>) -> u32"),
    _packing("pack4xU8", "(vec4<u32>) -> u32"),
    _packing("pack4xI8Clamp", "(vec4<i32>) -> u32"),
    _packing("pack4xU8Clamp", "(vec4<u32>) -> u32"),
    _packing("pack2x16snorm", "(vec2<f32>) -> u32"),
    _packing("pack2x16unorm", "(vec2<f32>) -> u32"),
    _packing("pack2x16float", "(vec2<f32>) -> u32"),
    _packing("unpack4x8snorm", "(u32) -> vec4<f32>", ulp(3)),
    _packing("unpack4x8unorm", "(u32) -> vec4<f32>", ulp(3)),
    _packing("unpack4xI8", "(u32) -> vec4<i32>"),
    _packing("unpack4xU8", "(u32) -> vec4<u32>"),
    _packing("unpack2x16snorm", "(u32) -> vec2<f32>", ulp(3)),
    _packing("unpack2x16unorm", "(u32) -> vec2<f32>", ulp(3)),
    _packing("unpack2x16float", "(u32) -> vec2<f32>", CORRECT),
)

ROWS = (*_LOGICAL, *_COMPONENTWISE, *_COMPOSED, *_PACKING)

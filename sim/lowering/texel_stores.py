"""Conversion of stored texels: each channel becomes the nearest value of the format.

Spec: WGSL, "Texel Formats" (the inverse channel transfer functions). Rounding is to nearest, ties to even. Unsigned
floats, and f16 on devices that do so, round toward zero, which the APIs below WebGPU allow.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf

from ..ir.builder import Builder
from ..ir.ir import Value
from ..wgsl.texel_formats import Format

_Fit = Callable[[Builder, Value, int], Value]
_F16_FRACTION = 10
_FRACTION = {11: 6, 10: 5}  # fraction bits of unsigned floats, by width
_LEAST_EXPONENT = -14  # of f16, and of unsigned floats


def stored(builder: Builder, format_: Format, given: list[Value], *, cut: bool) -> list[Value]:
    """Return the four channels, red first, that a load of the stored texel returns; missing ones are 0, 0, 0, 1.

    `given`: the channels to store. `cut`: f16 rounds toward zero.
    """
    fit = _cut_f16 if cut and format_.number == "float" else _FITS[format_.number]
    channels: list[Value] = []
    for letter, value, missing in zip("rgba", given, (0, 0, 0, 1), strict=True):
        if letter in format_.channels:
            bits = format_.bits[format_.channels.index(letter)]
            channels.append(fit(builder, value, bits))
        else:
            channels.append(builder.const(value.kind, missing))
    return channels


def _unorm(builder: Builder, value: Value, bits: int) -> Value:
    return _in_steps(builder, value, 0.0, (1 << bits) - 1)


def _snorm(builder: Builder, value: Value, bits: int) -> Value:
    return _in_steps(builder, value, -1.0, (1 << (bits - 1)) - 1)


def _in_steps(builder: Builder, value: Value, least: float, steps: int) -> Value:
    """Round to a multiple of 1 / `steps`."""
    op, count = builder.op, builder.const("f32", steps)
    clamped = op("clamp_f32", value, builder.const("f32", least), builder.const("f32", 1.0))
    return op("div_f32", op("round_f32", op("mul_f32", clamped, count)), count)


def _uint(builder: Builder, value: Value, bits: int) -> Value:
    return builder.op("min_u32", value, builder.const("u32", (1 << bits) - 1))


def _sint(builder: Builder, value: Value, bits: int) -> Value:
    half = 1 << (bits - 1)
    return builder.op("clamp_i32", value, builder.const("i32", -half), builder.const("i32", half - 1))


def _float(builder: Builder, value: Value, bits: int) -> Value:
    return value if bits == 32 else builder.op("quantizeToF16_f32", value)


def _cut_f16(builder: Builder, value: Value, bits: int) -> Value:
    """Round to f16 toward zero: numbers that are too large become the largest one; infinities and NaN stay."""
    if bits == 32:
        return value
    op, most = builder.op, (2 - 2.0**-_F16_FRACTION) * 2.0**15
    clamped = op("clamp_f32", value, builder.const("f32", -most), builder.const("f32", most))
    is_finite = op("lt_f32", op("abs_f32", value), builder.const("f32", inf))
    return op("select_f32", value, _cut(builder, clamped, _F16_FRACTION), is_finite)


def _ufloat(builder: Builder, value: Value, bits: int) -> Value:
    """Round to an unsigned float: negative numbers become 0, numbers that are too large the largest one."""
    most = builder.const("f32", (2 - 2.0 ** -_FRACTION[bits]) * 2.0**15)
    clamped = builder.op("clamp_f32", value, builder.const("f32", 0.0), most)
    return _cut(builder, builder.op("abs_f32", clamped), _FRACTION[bits])  # -0 becomes 0


def _cut(builder: Builder, value: Value, fraction: int) -> Value:
    """Truncate a number in the range of f16 to `fraction` fraction bits; fewer if it is subnormal."""
    op = builder.op
    kept = builder.const("u32", -(1 << (23 - fraction)))
    normal = builder.reinterpret("f32", op("and_u32", builder.reinterpret("u32", value), kept))
    steps = builder.const("f32", 2.0 ** (fraction - _LEAST_EXPONENT))
    small = op("div_f32", op("trunc_f32", op("mul_f32", value, steps)), steps)
    is_small = op("lt_f32", op("abs_f32", value), builder.const("f32", 2.0**_LEAST_EXPONENT))
    return op("select_f32", normal, small, is_small)


_FITS: dict[str, _Fit] = {
    "unorm": _unorm,
    "snorm": _snorm,
    "uint": _uint,
    "sint": _sint,
    "float": _float,
    "ufloat": _ufloat,
}

"""Value conversions, bit reinterpretation and packing. Spec: WGSL, "Value Constructor Built-in Functions", "Data Packing".

Floating point to integer truncates and saturates at the largest float32 that fits; NaN becomes 0.
"""

from __future__ import annotations

import numpy as np

from .define import helper, op
from .rounding import round_f16

_U = np.uint32


def _floats(signature: str, name: str):
    """Register a function of an f32 register for f32 and f16 (`x` in signature and name)."""

    def mark(fn):
        for kind in ("f32", "f16"):
            op(signature.replace("x", kind), 0, name.replace("x", kind))(fn)
        return fn

    return mark


# ---- conversions ----


@_floats("x -> i32", "convert_x_i32")
def float_to_i32(e):
    wide = np.float64(e) if e == e else np.float64(0.0)
    return np.int32(min(max(wide, np.float64(-2147483648.0)), np.float64(2147483520.0)))


@_floats("x -> u32", "convert_x_u32")
def float_to_u32(e):
    wide = np.float64(e) if e == e else np.float64(0.0)
    return np.uint32(min(max(wide, np.float64(0.0)), np.float64(4294967040.0)))


@_floats("x -> bool", "convert_x_bool")
def float_to_bool(e):
    return np.uint32(e != 0)


@op("f32 -> f16")
def convert_f32_f16(e):
    return round_f16(np.float64(e))


@op("f16 -> f32")
def convert_f16_f32(e):
    return e


def _to_float(kind: str):
    def single(e):
        return np.float32(e)

    def half(e):
        return round_f16(np.float64(e))

    op(f"{kind} -> f32", 0, f"convert_{kind}_f32")(single)
    op(f"{kind} -> f16", 0, f"convert_{kind}_f16")(half)


for _kind in ("i32", "u32", "bool"):
    _to_float(_kind)


@op("i32 -> u32")
def convert_i32_u32(e):
    return np.uint32(e)


@op("u32 -> i32")
def convert_u32_i32(e):
    return np.int32(e)


@op("i32 -> bool")
def convert_i32_bool(e):
    return np.uint32(e != 0)


@op("u32 -> bool")
def convert_u32_bool(e):
    return np.uint32(e != 0)


@op("bool -> i32")
def convert_bool_i32(e):
    return np.int32(e)


@op("bool -> u32")
def convert_bool_u32(e):
    return e


# ---- the same bits ----


@op("f32 -> u32")
def bitcast_f32_u32(e):
    return np.float32(e).view(np.uint32)


@op("f32 -> i32")
def bitcast_f32_i32(e):
    return np.float32(e).view(np.int32)


@op("u32 -> f32")
def bitcast_u32_f32(e):
    return np.uint32(e).view(np.float32)


@op("i32 -> f32")
def bitcast_i32_f32(e):
    return np.int32(e).view(np.float32)


@op("u32 -> i32")
def bitcast_u32_i32(e):
    return np.int32(e)


@op("i32 -> u32")
def bitcast_i32_u32(e):
    return np.uint32(e)


@helper
@op("f16 -> u32")
def f16_to_bits_f16(e):
    """The 16 bits of an f16."""
    bits = np.float32(e).view(np.uint32)
    sign = np.uint32((bits >> _U(16)) & _U(0x8000))
    magnitude = np.float32(np.abs(e))
    normal = np.uint32(((bits & _U(0x7FFFFFFF)) >> _U(13)) - _U(112 << 10))
    small = np.uint32(min(magnitude, np.float32(1.0)) * np.float32(2.0**24))
    finite = small if magnitude < np.float32(2.0**-14) else normal
    special = _U(0x7C00) if magnitude == magnitude else _U(0x7E00)
    return np.uint32(sign | (finite if magnitude < np.float32(65520.0) else special))


@helper
@op("u32 -> f16")
def f16_from_bits_u32(word):
    """The f16 of the low 16 bits."""
    sign = np.uint32((word & _U(0x8000)) << _U(16))
    magnitude = np.uint32(word & _U(0x7FFF))
    normal = np.uint32((magnitude << _U(13)) + _U(112 << 23))
    special = np.uint32((magnitude << _U(13)) | _U(0x7F800000))
    small = np.float32(np.float32(magnitude) * np.float32(2.0**-24)).view(np.uint32)
    bits = small if magnitude < _U(0x400) else (special if magnitude >= _U(0x7C00) else normal)
    return np.uint32(sign | bits).view(np.float32)


# ---- packing ----


@helper
def normalized(e, low, scale):
    """floor(0.5 + scale * clamp(e, low, 1)), as the low bits of a word."""
    bounded = min(max(np.float64(e), np.float64(low)), np.float64(1.0))
    return np.uint32(np.int32(np.floor(0.5 + np.float64(scale) * bounded)))


@op("f32 f32 f32 f32 -> u32")
def pack4x8snorm_f32(a, b, c, d):
    return bytes_of(
        normalized(a, -1.0, 127.0), normalized(b, -1.0, 127.0), normalized(c, -1.0, 127.0), normalized(d, -1.0, 127.0)
    )


@op("f32 f32 f32 f32 -> u32")
def pack4x8unorm_f32(a, b, c, d):
    return bytes_of(
        normalized(a, 0.0, 255.0), normalized(b, 0.0, 255.0), normalized(c, 0.0, 255.0), normalized(d, 0.0, 255.0)
    )


@helper
def bytes_of(a, b, c, d):
    """A word of four low bytes, the first lowest."""
    byte = _U(0xFF)
    return np.uint32(
        (a & byte)
        | np.uint32((b & byte) << _U(8))
        | np.uint32((c & byte) << _U(16))
        | np.uint32((d & byte) << _U(24))
    )


@helper
def halves_of(a, b):
    return np.uint32((a & _U(0xFFFF)) | np.uint32(b << _U(16)))


@op("f32 f32 -> u32")
def pack2x16snorm_f32(a, b):
    return halves_of(normalized(a, -1.0, 32767.0), normalized(b, -1.0, 32767.0))


@op("f32 f32 -> u32")
def pack2x16unorm_f32(a, b):
    return halves_of(normalized(a, 0.0, 65535.0), normalized(b, 0.0, 65535.0))


@op("f32 f32 -> u32")
def pack2x16float_f32(a, b):
    return halves_of(f16_to_bits_f16(round_f16(np.float64(a))), f16_to_bits_f16(round_f16(np.float64(b))))


@op("i32 i32 i32 i32 -> u32")
def pack4xI8_i32(a, b, c, d):
    return bytes_of(np.uint32(a), np.uint32(b), np.uint32(c), np.uint32(d))


@op("u32 u32 u32 u32 -> u32")
def pack4xU8_u32(a, b, c, d):
    return bytes_of(a, b, c, d)


@helper
def clamped_i8(e):
    return np.uint32(np.int32(-128) if e < -128 else (np.int32(127) if e > 127 else e))


@helper
def clamped_u8(e):
    return _U(255) if e > 255 else e


@op("i32 i32 i32 i32 -> u32")
def pack4xI8Clamp_i32(a, b, c, d):
    return bytes_of(clamped_i8(a), clamped_i8(b), clamped_i8(c), clamped_i8(d))


@op("u32 u32 u32 u32 -> u32")
def pack4xU8Clamp_u32(a, b, c, d):
    return bytes_of(clamped_u8(a), clamped_u8(b), clamped_u8(c), clamped_u8(d))


# ---- unpacking: part number `index` of a word ----


@helper
def unsigned_byte(word, index):
    return np.uint32((word >> ((index & _U(3)) * _U(8))) & _U(0xFF))


@helper
def signed_byte(word, index):
    byte = np.int32(unsigned_byte(word, index))
    return np.int32(byte - 256) if byte > 127 else byte


@helper
def half_word(word, index):
    return np.uint32((word >> ((index & _U(1)) * _U(16))) & _U(0xFFFF))


@op("u32 u32 -> f32")
def unpack4x8snorm_u32(word, index):
    return np.float32(max(np.float64(signed_byte(word, index)) / 127.0, -1.0))


@op("u32 u32 -> f32")
def unpack4x8unorm_u32(word, index):
    return np.float32(np.float64(unsigned_byte(word, index)) / 255.0)


@op("u32 u32 -> f32")
def unpack2x16snorm_u32(word, index):
    half = np.int32(half_word(word, index))
    return np.float32(max(np.float64(half - 65536 if half > 32767 else half) / 32767.0, -1.0))


@op("u32 u32 -> f32")
def unpack2x16unorm_u32(word, index):
    return np.float32(np.float64(half_word(word, index)) / 65535.0)


@op("u32 u32 -> f32")
def unpack2x16float_u32(word, index):
    return f16_from_bits_u32(half_word(word, index))


@op("u32 u32 -> i32")
def unpack4xI8_u32(word, index):
    return signed_byte(word, index)


@op("u32 u32 -> u32")
def unpack4xU8_u32(word, index):
    return unsigned_byte(word, index)


@op("u32 u32 -> u32")
def dot4U8Packed_u32(a, b):
    total = _U(0)
    for i in range(4):
        total = np.uint32(total + unsigned_byte(a, _U(i)) * unsigned_byte(b, _U(i)))
    return total


@op("u32 u32 -> i32")
def dot4I8Packed_u32(a, b):
    total = np.int32(0)
    for i in range(4):
        total = np.int32(total + signed_byte(a, _U(i)) * signed_byte(b, _U(i)))
    return total

"""Numeric literals: kinds, ranges, rounding. NumPy's own conversions are the independent judge of the values."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source, Span
from bankshot.sim.wgsl.syntax.literals import read_number


def read(text):
    return read_number(text, Span(Source(text), 0, len(text)))


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("0", "abstract-int", 0),
        ("9223372036854775807", "abstract-int", 2**63 - 1),
        ("0x7fffffffffffffff", "abstract-int", 2**63 - 1),
        ("2147483647i", "i32", 2**31 - 1),
        ("4294967295u", "u32", 2**32 - 1),
        ("0xffffffffu", "u32", 2**32 - 1),
        ("0x0000000000000000000000001u", "u32", 1),
        ("0x1f", "abstract-int", 31),
        ("1f", "f32", 1.0),
        ("1e5", "abstract-float", 1e5),
        ("0xfp1", "abstract-float", 30.0),
        ("0xf.8", "abstract-float", 15.5),
        ("0x1p0f", "f32", 1.0),
        ("0.1f", "f32", float(np.float32(0.1))),
        ("0.1h", "f16", float(np.float16(0.1))),
        ("65504h", "f16", 65504.0),
        ("3.4028234663852886e+38f", "f32", float(np.finfo(np.float32).max)),
        ("1e-999999999999f", "f32", 0.0),
        ("1e-46f", "f32", 0.0),
        ("1.401298464324817e-45f", "f32", 2.0**-149),
        ("0x1p-149f", "f32", 2.0**-149),
        ("0X1P3", "abstract-float", 8.0),
        ("0X1P-3f", "f32", 0.125),
        ("0x.8P1h", "f16", 1.0),
        ("0x0.ffep16h", "f16", 65504.0),  # the largest
        ("0x0.00000000008p-108f", "f32", 2.0**-149),  # the least
        ("0x1F", "abstract-int", 31),
        ("0X1Fu", "u32", 31),
        ("0x1fi", "i32", 31),
        ("0x1.8", "abstract-float", 1.5),
        ("0xap0f", "f32", 10.0),
        ("2147483647i", "i32", 2147483647),
        ("4294967295u", "u32", 4294967295),
        ("9223372036854775807", "abstract-int", 9223372036854775807),
        ("1E2", "abstract-float", 100.0),
        ("0x1p-24h", "f16", 2.0**-24),
        ("0x0p-999999999999f", "f32", 0.0),
        # Rounding to f64 first would land on a tie and go the wrong way.
        ("1.00000005960464484h", "f16", 1.0),
        ("1.000000059604644775390626f", "f32", 1 + 2.0**-23),
        ("1.000000059604644775390625f", "f32", 1.0),
    ],
)
def test_values(text, kind, value):
    assert read(text) == (kind, value)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("9223372036854775808", "literal-out-of-range"),
        ("2147483648i", "literal-out-of-range"),
        ("4294967296u", "literal-out-of-range"),
        ("0x1ffffffffffffffff", "literal-out-of-range"),
        ("1" + "0" * 6000, "literal-out-of-range"),
        ("1e309", "literal-out-of-range"),
        ("3.5e38f", "literal-out-of-range"),
        ("1.0e+999999999999f", "literal-out-of-range"),
        ("65520h", "literal-out-of-range"),
        ("65505h", "literal-above-largest"),
        ("65519.9h", "literal-above-largest"),
        ("6.55041e4h", "literal-above-largest"),
        ("3.4028235e38f", "literal-above-largest"),
        ("3.4028235677e38f", "literal-above-largest"),
        ("3.40282357e38f", "literal-out-of-range"),
        ("0x1p1024", "literal-out-of-range"),
        ("0x1p128f", "literal-out-of-range"),
        ("0x1p16h", "literal-out-of-range"),
        ("0x1p999999999999", "literal-out-of-range"),
        ("0x1.00000001p0f", "literal-not-exact"),
        ("0x1p-150f", "literal-not-exact"),
        ("0x1p-999999999999f", "literal-not-exact"),
        ("0x1.001p0h", "literal-not-exact"),
    ],
)
def test_errors(text, code):
    with pytest.raises(WgslError) as caught:
        read(text)
    assert caught.value.diagnostics[0].code == code


@given(st.floats(width=32, allow_nan=False, allow_infinity=False, min_value=0))
def test_every_f32_comes_back(value):
    assert read(f"{value!r}f" if "e" in repr(value) or "." in repr(value) else f"{value!r}.f") == ("f32", value)


@given(st.floats(min_value=2.0**-20, max_value=60000))
def test_f16_is_rounded_to_the_nearest(value):
    _, rounded = read(f"{value!r}h")
    assert isinstance(rounded, float)
    bits = struct.unpack("<H", struct.pack("<e", rounded))[0]
    neighbours = [struct.unpack("<e", struct.pack("<H", bits + step))[0] for step in (-1, 0, 1)]
    distances = [abs(Fraction(value) - Fraction(each)) for each in neighbours if np.isfinite(each)]
    assert abs(Fraction(value) - Fraction(rounded)) == min(distances)

"""Scalar operations on f32 and f16, compared with NumPy's float64 and float16, long doubles and exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bankshot.sim.scalar import OPS
from tests.scalar.scalar_values import (
    CONCRETE,
    DTYPE,
    as_half,
    assert_same,
    beside_midpoints,
    edges,
    inputs,
    over_arrays,
    plainly,
    same,
)


def _rounding_to(dtype):
    def rounded(values):
        with np.errstate(over="ignore"):
            # NumPy takes long doubles to float16 by way of float32; by way of float64 is harmless.
            return values.astype(np.float64).astype(dtype).astype(np.float32)

    return rounded


ROUNDING = {"f32": _rounding_to(np.float32), "f16": _rounding_to(np.float16)}
F32 = st.floats(width=32)


def nearest(exact, precision, least_exponent, largest):
    """An exact fraction rounded to a binary format, ties to even; the least step is 2**least_exponent."""
    if exact == 0:
        return 0.0
    magnitude = abs(exact)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    exponent -= magnitude < Fraction(2) ** exponent
    step = Fraction(2) ** max(exponent - precision + 1, least_exponent)
    value = round(magnitude / step) * step  # Python rounds fractions half to even
    return float(value if value <= largest else np.inf) * (-1 if exact < 0 else 1)


FORMAT = {"f32": (24, -149, Fraction(2) ** 128 - Fraction(2) ** 104), "f16": (11, -24, Fraction(65504))}


def by_fractions(fn, kind, *values):
    return np.float32(nearest(fn(*map(Fraction, map(float, values))), *FORMAT[kind]))


# ---- arithmetic ------------------------------------------------------------------------------------------

# In float64: exact, or precise enough that rounding twice does not matter.
IN_DOUBLE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "rem": np.fmod,
    "neg": lambda a: -a,
    "abs": np.abs,
    "length": np.abs,
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round": np.round,
    "fract": lambda a: a - np.floor(a),
    "modf_whole": np.trunc,
    "modf_fract": lambda a: a - np.trunc(a),
    "sign": lambda a: np.where(np.isnan(a) | (a == 0), 0, np.sign(a)),
    "step": lambda edge, x: np.where(edge <= x, 1.0, 0.0),
    "min": np.fmin,
    "max": np.fmax,
    "clamp": lambda e, low, high: np.fmin(np.fmax(e, low), high),
    "saturate": lambda e: np.fmin(np.fmax(e, 0), 1),
    "inverseSqrt": lambda a: 1 / np.sqrt(a),
    "frexp_fract": lambda a: np.frexp(a)[0],
    "frexp_exp": lambda a: np.where(np.isfinite(a), np.frexp(a)[1], 0),
    "ldexp": lambda a, e: np.ldexp(a, np.clip(e, -2000, 2000).astype(np.int64)),
    "select": lambda no, yes, which: np.where(which == 1, yes, no),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
EITHER_ZERO = {"min", "max", "clamp", "saturate"}


@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("stem", IN_DOUBLE)
def test_operations_that_float64_knows(stem, kind):
    name = f"{stem}_{kind}"
    arrays = inputs(name)
    with np.errstate(all="ignore"):
        expected = IN_DOUBLE[stem](*(a.astype(np.float64) for a in arrays))
        expected = ROUNDING[kind](expected) if OPS[name].result == kind else expected.astype(np.int64)
    actual = over_arrays(name, *arrays)
    if stem in EITHER_ZERO:
        # Which of two zeros is the smaller is left open.
        actual, expected = (np.where(x == 0, np.float32(0), x) for x in (actual, expected))
    if OPS[name].result != kind:
        expected = expected.astype(actual.dtype)
    assert_same(actual, expected, *arrays)


@pytest.mark.parametrize("stem", ["add", "sub", "mul", "div", "sqrt"])
def test_half_arithmetic_is_numpys(stem):
    numpys = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}[stem]
    arrays = inputs(f"{stem}_f16")
    with np.errstate(all="ignore"):
        expected = numpys(*(a.astype(np.float16) for a in arrays)).astype(np.float32)
    assert_same(over_arrays(f"{stem}_f16", *arrays), expected, *arrays)


def fused_exactly(kind, *arrays):
    rows = zip(*arrays, strict=True)
    return np.array([by_fractions(lambda x, y, z: x * y + z, kind, *row) for row in rows])


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_fma_rounds_the_exact_sum_once(kind):
    arrays = inputs(f"fma_{kind}", 6000)
    finite = np.logical_and.reduce([np.isfinite(a) for a in arrays])
    a, b, c = (x[finite][::3] for x in arrays)
    near = ROUNDING[kind](-(a.astype(np.float64) * b))
    near = np.where(np.isfinite(near), near, 0).astype(np.float32)
    for addend in (c, near):
        actual, expected = over_arrays(f"fma_{kind}", a, b, addend), fused_exactly(kind, a, b, addend)
        # Fractions have one zero.
        assert_same(*(np.where(x == 0, np.float32(0), x) for x in (actual, expected)), a, b, addend)


@pytest.mark.parametrize("kind", ["f32", "f16"])
def test_fma_beside_midpoints(kind):
    """Where rounding first to float64, or to f32 on the way to f16, would fall on the midpoint."""
    arrays = beside_midpoints(kind, np.random.default_rng(3), 4000)
    expected = fused_exactly(kind, *arrays)
    assert_same(over_arrays(f"fma_{kind}", *arrays), expected, *arrays)
    assert_same(plainly(f"fma_{kind}", *arrays), expected, *arrays)


def test_mad_rounds_the_product_and_the_sum():
    a, b, c = arrays = inputs("mad_f32", 6000)
    with np.errstate(all="ignore"):
        assert_same(over_arrays("mad_f32", *arrays), np.add(np.multiply(a, b), c), *arrays)


@settings(deadline=None, max_examples=500)
@given(a=F32, b=F32, scale=st.sampled_from([2.0**-24, 2.0**-25, 2.0**-48, 1.0]), sign=st.sampled_from([1, -1]))
def test_plain_fma_at_midpoints(a, b, scale, sign):
    with np.errstate(all="ignore"):
        addend = np.float32(np.float32(a * b) * scale * sign)
        actual = OPS["fma_f32"].fn(np.float32(a), np.float32(b), addend)
    if np.isfinite([a, b, addend]).all():
        assert actual == by_fractions(lambda x, y, z: x * y + z, "f32", a, b, addend)
    else:
        with np.errstate(all="ignore"):
            expected = np.float64(a) * np.float64(b) + np.float64(addend)
        assert np.isnan(actual) if np.isnan(expected) else actual == expected


def test_fma_keeps_the_sign_of_zero_and_infinity():
    fma = OPS["fma_f32"].fn
    inf, zero, one = np.float32(np.inf), np.float32(0), np.float32(1)
    with np.errstate(all="ignore"):
        assert np.signbit(fma(-zero, one, -zero))
        assert not np.signbit(fma(-zero, one, zero))
        assert not np.signbit(fma(one, one, -one))
        assert fma(inf, -one, one) == -inf
        assert np.isnan(fma(inf, one, -inf))


# ---- f16 -------------------------------------------------------------------------------------------------

ALL_HALVES = np.arange(65536, dtype=np.uint32)


def test_every_half_comes_from_its_bits():
    expected = ALL_HALVES.astype(np.uint16).view(np.float16).astype(np.float32)
    assert_same(over_arrays("f16_from_bits_u32", ALL_HALVES), expected, ALL_HALVES)
    assert_same(over_arrays("f16_from_bits_u32", ALL_HALVES | np.uint32(0xABCD0000)), expected, ALL_HALVES)


def test_every_half_goes_back_to_its_bits():
    values = over_arrays("f16_from_bits_u32", ALL_HALVES)
    bits = over_arrays("f16_to_bits_f16", values)
    nans = np.isnan(values)
    assert_same(bits[~nans], ALL_HALVES[~nans], ALL_HALVES[~nans])
    assert set(bits[nans]) == {0x7E00, 0xFE00}


def test_rounding_to_half_at_every_tie_and_beside_it():
    halves = np.sort(ALL_HALVES[:0x7C00].astype(np.uint16).view(np.float16)).astype(np.float32)
    ties = np.append((halves[:-1] + halves[1:]) / 2, np.float32(65520))
    around = np.concatenate([halves, ties, np.nextafter(ties, np.float32(0)), np.nextafter(ties, np.float32(np.inf))])
    around = np.concatenate([around, -around])
    expected = ROUNDING["f16"](around)
    for name in ("convert_f32_f16", "quantizeToF16_f32"):
        assert_same(over_arrays(name, around), expected, around)
    even = as_half(ties[:-1])
    assert not (even.astype(np.float16).view(np.uint16) & 1).any()


def test_rounding_of_random_floats_to_half():
    bits = np.random.default_rng(5).integers(0, 2**32, 2_000_000, dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        assert_same(over_arrays("convert_f32_f16", bits), ROUNDING["f16"](bits), bits)


@pytest.mark.parametrize("exponent", range(-27, 17))
def test_float64_rounds_to_half_directly(exponent):
    """What lies a hair beside a midpoint of f16 is the midpoint in f32: rounding by way of f32 would miss it."""
    middle = np.arange(1, 4096, 2, dtype=np.float64) * 2.0 ** (exponent - 11)
    hair = 2.0 ** (exponent - 40)
    to_half = OPS["convert_af_f16"].fn
    for values in (middle - hair, middle, middle + hair):
        with np.errstate(over="ignore"):
            expected = values.astype(np.float16).astype(np.float32)
        picked = slice(None, None, 37)
        assert_same(np.array([to_half(v) for v in values[picked]]), expected[picked], values[picked])


# ---- transcendental functions ------------------------------------------------------------------------------

LONG = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cos": np.cos, "cosh": np.cosh, "degrees": lambda x: x * 180 / PI, "exp": np.exp,
    "exp2": np.exp2, "log": np.log, "log2": np.log2, "radians": lambda x: x * PI / 180, "sin": np.sin,
    "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh, "atan2": np.arctan2, "pow": np.power,
}  # fmt: skip
PI = np.longdouble("3.14159265358979323846264338327950288")


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="needs a long double beyond float64, as x86 has it")
@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize("stem", LONG)
def test_transcendental_functions_are_the_nearest_value(stem, kind):
    """Against long doubles: float64's error shows once in some 2**28 values of f32, and not in these."""
    arrays = inputs(f"{stem}_{kind}")
    if stem == "pow":
        arrays = [np.abs(arrays[0]), arrays[1]]  # a negative base is outside its domain
    with np.errstate(all="ignore"):
        expected = ROUNDING[kind](LONG[stem](*(a.astype(np.longdouble) for a in arrays)))
    actual = over_arrays(f"{stem}_{kind}", *arrays)
    assert_same(actual, expected, *arrays)


@pytest.mark.parametrize("name", ["pow_f32", "pow_f16"])
def test_power_is_what_exp2_of_log2_would_be_outside_its_domain(name):
    exponents = np.array([2, -3, 0.5, 0], np.float32)
    assert np.isnan(over_arrays(name, np.full(4, np.float32(-2)), exponents)).all()
    assert over_arrays(name, np.full(4, np.float32(-0.0)), exponents).tolist() == [0, np.inf, 0, 1]
    assert not np.signbit(over_arrays(name, np.float32([-0.0]), np.float32([3]))).any()


def test_exact_powers_of_two():
    exponents = np.arange(-149, 128, dtype=np.float32)
    expected = np.array([np.float32(2.0 ** int(e)) for e in exponents])
    assert_same(over_arrays("exp2_f32", exponents), expected, exponents)
    assert_same(over_arrays("log2_f32", expected), exponents, expected)


# ---- conversions -------------------------------------------------------------------------------------------

# The integers of the target that the float type has as well lie between these; the first two are the spec's examples.
REPRESENTABLE = {
    ("f32", "i32"): (-2147483648, 2147483520),
    ("f32", "u32"): (0, 4294967040),
    ("f16", "i32"): (-65504, 65504),
    ("f16", "u32"): (0, 65504),
}


@pytest.mark.parametrize("source", ["f32", "f16"])
@pytest.mark.parametrize("target", ["i32", "u32"])
def test_float_to_integer_truncates_and_saturates(source, target):
    least, most = REPRESENTABLE[source, target]
    name = f"convert_{source}_{target}"
    (values,) = inputs(name)
    expected = np.array([0 if np.isnan(v) else int(max(least, min(float(v), most))) for v in values])
    assert_same(over_arrays(name, values), expected.astype(DTYPE[target]), values)


@pytest.mark.parametrize("source", ["i32", "u32", "bool"])
@pytest.mark.parametrize("target", ["f32", "f16"])
def test_integer_to_float_rounds_once(source, target):
    name = f"convert_{source}_{target}"
    (values,) = inputs(name)
    expected = np.array([by_fractions(lambda x: x, target, int(v)) for v in values])
    assert_same(over_arrays(name, values), expected, values)


@pytest.mark.parametrize("source", ["f32", "f16", "i32", "u32"])
def test_only_zero_converts_to_false(source):
    (values,) = inputs(f"convert_{source}_bool")
    expected = np.array([v != 0 for v in values], np.uint32)
    assert_same(over_arrays(f"convert_{source}_bool", values), expected, values)


@pytest.mark.parametrize("source", ["f32", "i32", "u32"])
@pytest.mark.parametrize("target", ["f32", "i32", "u32"])
def test_bitcast_keeps_the_bits(source, target):
    if source == target:
        return
    (values,) = inputs(f"bitcast_{source}_{target}")
    actual = over_arrays(f"bitcast_{source}_{target}", values)
    np.testing.assert_array_equal(actual.view(np.uint32), values.view(np.uint32))


def test_min_and_max_return_the_number_beside_a_nan():
    nan = np.full_like(edges("f32"), np.nan)
    for name in ("min_f32", "max_f32"):
        assert same(over_arrays(name, edges("f32"), nan), edges("f32")).all()
        assert same(over_arrays(name, nan, edges("f32")), edges("f32")).all()


def test_every_operation_on_floats_is_tested_here():
    on_floats = {n for n in CONCRETE if OPS[n].args[0] in ("f32", "f16") and not n.startswith("pack")}
    stems = {*IN_DOUBLE, *LONG, "fma", "mad", "quantizeToF16", "f16_to_bits", "convert", "bitcast"}
    assert {n for n in on_floats if not n.startswith((*(f"{s}_" for s in stems),))} == set()

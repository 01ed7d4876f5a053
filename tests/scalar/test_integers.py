"""Scalar operations on integers, bits, packed words and abstract numbers, against those of Python."""

import math
from fractions import Fraction

import numpy as np
import pytest

from bankshot.sim.scalar import OPS
from tests.scalar.scalar_values import CONCRETE, DTYPE, assert_same, inputs, over_arrays

# ---- i32 and u32 -------------------------------------------------------------------------------------------


def wrapped(value, kind):
    value %= 2**32
    return value - 2**32 if kind == "i32" and value >= 2**31 else value


def bits(value):
    """The 32 bits of an integer as text, the highest first."""
    return format(value % 2**32, "032b")


def toward_zero(a, b):
    return math.trunc(Fraction(a, b))


def extracted(e, offset, count, signed):
    low = min(offset, 32)
    field = bits(e)[::-1][low : low + min(count, 32 - low)][::-1]
    sign = 2 ** len(field) if signed and field.startswith("1") else 0
    return int(field or "0", 2) - sign


def inserted(e, new, offset, count):
    low = min(offset, 32)
    width = min(count, 32 - low)
    word, source = list(bits(e)[::-1]), bits(new)[::-1]
    word[low : low + width] = source[:width]
    return int("".join(word)[::-1], 2)


def leading(text, digit):
    return len(text) - len(text.lstrip(digit))


# Functions of Python integers; the result is taken modulo 2**32.
INTEGERS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: toward_zero(a, b) if b else a,
    "rem": lambda a, b: a - b * toward_zero(a, b) if b else 0,
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "not": lambda a: -1 - a,
    "shl": lambda a, n: a * 2 ** (n % 32),
    "shr": lambda a, n: a // 2 ** (n % 32),
    "min": min,
    "max": max,
    "clamp": lambda e, low, high: min(max(e, low), high),
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "select": lambda no, yes, which: yes if which else no,
    "countOneBits": lambda a: bits(a).count("1"),
    "countLeadingZeros": lambda a: leading(bits(a), "0"),
    "countTrailingZeros": lambda a: leading(bits(a)[::-1], "0"),
    "firstTrailingBit": lambda a: bits(a)[::-1].find("1"),
    "reverseBits": lambda a: int(bits(a)[::-1], 2),
    "insertBits": inserted,
}
BY_KIND = {
    "extractBits_u32": lambda *args: extracted(*args, signed=False),
    "extractBits_i32": lambda *args: extracted(*args, signed=True),
    "firstLeadingBit_u32": lambda a: 31 - leading(bits(a), "0"),
    "firstLeadingBit_i32": lambda a: 31 - leading(bits(a), bits(a)[0]),
    "convert_i32_u32": lambda a: a,
    "convert_u32_i32": lambda a: a,
    "convert_bool_i32": lambda a: a,
    "convert_bool_u32": lambda a: a,
    "and_bool": lambda a, b: a and b,
    "or_bool": lambda a, b: a or b,
    "xor_bool": lambda a, b: a != b,
    "eq_bool": lambda a, b: a == b,
    "ne_bool": lambda a, b: a != b,
    "lnot_bool": lambda a: not a,
    "select_bool": lambda no, yes, which: yes if which else no,
}
TRUTH = {**{f"{s}_{k}": fn for s, fn in INTEGERS.items() for k in ("i32", "u32") if f"{s}_{k}" in OPS}, **BY_KIND}


def expect(name, truth, arrays):
    rows = zip(*(a.tolist() for a in arrays), strict=True)
    kind = OPS[name].result
    return np.array([wrapped(int(truth(*row)), kind) for row in rows], DTYPE[kind])


@pytest.mark.parametrize("name", TRUTH)
def test_integer_operations_are_pythons(name):
    arrays = inputs(name, 1000)
    assert_same(over_arrays(name, *arrays), expect(name, TRUTH[name], arrays), *arrays)


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("div_i32", (-(2**31), -1), -(2**31)),
        ("rem_i32", (-(2**31), -1), 0),
        ("div_u32", (7, 0), 7),
        ("rem_u32", (7, 0), 0),
        ("rem_i32", (-7, 2), -1),
        ("abs_i32", (-(2**31),), -(2**31)),
        ("shl_u32", (1, 33), 2),
        ("firstLeadingBit_i32", (-1,), -1),
        ("firstLeadingBit_u32", (0,), 2**32 - 1),
        ("firstTrailingBit_u32", (0,), 2**32 - 1),
        ("extractBits_i32", (0b1100, 2, 2), -1),
        ("extractBits_u32", (5, 40, 3), 0),
    ],
)
def test_corner_cases_of_the_spec(name, args, result):
    arrays = [np.array([a]).astype(DTYPE[kind]) for a, kind in zip(args, OPS[name].args, strict=True)]
    assert over_arrays(name, *arrays).tolist() == [result]


# ---- packing -----------------------------------------------------------------------------------------------


def normalized(low, scale):
    def integer(e):
        e = low if math.isnan(e) else min(1, max(low, e))
        return math.floor(Fraction(1, 2) + scale * Fraction(e))

    return integer


def half_bits(e):
    with np.errstate(over="ignore"):
        return 0x7E00 | (e < 0) << 15 if math.isnan(e) else int(np.float32(e).astype(np.float16).view(np.uint16))


def packed(integer, width):
    return lambda *args: sum((integer(e) % 2**width) << (i * width) for i, e in enumerate(args))


PACK = {
    "pack4x8snorm_f32": packed(normalized(-1, 127), 8),
    "pack4x8unorm_f32": packed(normalized(0, 255), 8),
    "pack2x16snorm_f32": packed(normalized(-1, 32767), 16),
    "pack2x16unorm_f32": packed(normalized(0, 65535), 16),
    "pack2x16float_f32": packed(half_bits, 16),
    "pack4xI8_i32": packed(lambda e: e, 8),
    "pack4xU8_u32": packed(lambda e: e, 8),
    "pack4xI8Clamp_i32": packed(lambda e: min(max(e, -128), 127), 8),
    "pack4xU8Clamp_u32": packed(lambda e: min(e, 255), 8),
}


@pytest.mark.parametrize("name", PACK)
def test_packing(name):
    arrays = inputs(name, 1000)
    arrays = [np.where(np.isnan(a), np.float32(np.nan), a) if a.dtype == np.float32 else a for a in arrays]
    assert_same(over_arrays(name, *arrays), expect(name, PACK[name], arrays), *arrays)


def field(word, index, width, signed):
    value = word.to_bytes(4, "little")[index * width // 8 :][: width // 8]
    return int.from_bytes(value, "little", signed=signed)


def unnormalized(width, signed):
    scale = 2 ** (width - signed) - 1
    return lambda word, index: np.float32(max(field(word, index, width, signed) / scale, -1))


UNPACK = {
    "unpack4x8snorm_u32": (unnormalized(8, True), 4),
    "unpack4x8unorm_u32": (unnormalized(8, False), 4),
    "unpack2x16snorm_u32": (unnormalized(16, True), 2),
    "unpack2x16unorm_u32": (unnormalized(16, False), 2),
    "unpack2x16float_u32": (lambda w, i: np.frombuffer(w.to_bytes(4, "little"), "<f2")[i].astype(np.float32), 2),
    "unpack4xI8_u32": (lambda w, i: field(w, i, 8, True), 4),
    "unpack4xU8_u32": (lambda w, i: field(w, i, 8, False), 4),
}


@pytest.mark.parametrize("name", UNPACK)
def test_unpacking(name):
    truth, parts = UNPACK[name]
    words = np.repeat(inputs(name, 1000)[0], parts)
    index = np.tile(np.arange(parts, dtype=np.uint32), len(words) // parts)
    rows = zip(words.tolist(), index.tolist(), strict=True)
    expected = np.array([truth(*row) for row in rows], DTYPE[OPS[name].result])
    assert_same(over_arrays(name, words, index), expected, words, index)


@pytest.mark.parametrize(("name", "signed"), [("dot4U8Packed_u32", False), ("dot4I8Packed_u32", True)])
def test_dot_products_of_packed_bytes(name, signed):
    def truth(a, b):
        return sum(field(a, i, 8, signed) * field(b, i, 8, signed) for i in range(4))

    arrays = inputs(name)
    assert_same(over_arrays(name, *arrays), expect(name, truth, arrays), *arrays)


def test_every_concrete_operation_on_integers_is_tested_here():
    integral = {n for n in CONCRETE if not {"f32", "f16"} & {*OPS[n].args, OPS[n].result}}
    elsewhere = {f"bitcast_{a}_{b}" for a in DTYPE for b in DTYPE} | {"convert_i32_bool", "convert_u32_bool"}
    assert integral - elsewhere - {*TRUTH, *PACK, *UNPACK, "dot4U8Packed_u32", "dot4I8Packed_u32"} == set()


# ---- abstract numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("add_ai", (2**62, 2**62), 2**63),
        ("div_ai", (-7, 2), -3),
        ("rem_ai", (-7, 2), -1),
        ("rem_ai", (7, -2), 1),
        ("shl_ai", (1, np.uint32(62)), 2**62),
        ("shl_ai", (0, np.uint32(2**32 - 1)), 0),
        ("shr_ai", (-5, np.uint32(1)), -3),
        ("not_ai", (5,), -6),
        ("sign_ai", (-5,), -1),
        ("sign_ai", (0,), 0),
        ("sign_ai", (5,), 1),
        ("sub_ai", (3, 2**62), 3 - 2**62),
        ("mul_ai", (-3, 2**40), -3 * 2**40),
        ("div_ai", (7, -2), -3),
        ("div_ai", (-7, -2), 3),
        ("div_ai", (2**62 + 1, 2), 2**61),
        ("rem_ai", (2**62 + 1, 2**31), 1),
        ("neg_ai", (5,), -5),
        ("neg_ai", (-(2**63),), -(2**63)),
        ("neg_ai", (-(2**63) + 1,), 2**63 - 1),
        ("abs_ai", (-5,), 5),
        ("abs_ai", (5,), 5),
        ("abs_ai", (-(2**63),), -(2**63)),
        ("and_ai", (0b1100, 0b1010), 0b1000),
        ("or_ai", (0b1100, 0b1010), 0b1110),
        ("xor_ai", (0b1100, 0b1010), 0b0110),
        ("shl_ai", (-1, np.uint32(63)), -(2**63)),
        ("shr_ai", (2**62, np.uint32(61)), 2),
        ("shr_ai", (1, np.uint32(64)), 0),
        ("max_ai", (2**40, 2**41), 2**41),
        ("min_ai", (2**40, 2**41), 2**40),
        ("sub_af", (0.3, 0.1), 0.3 - 0.1),
        ("mul_af", (0.1, 3.0), 0.1 * 3.0),
        ("div_af", (1.0, 3.0), 1.0 / 3.0),
        ("neg_af", (0.1,), -0.1),
        ("neg_af", (-(2.0**63),), 2.0**63),
        ("abs_af", (-0.1,), 0.1),
        ("abs_af", (-(2.0**63),), 2.0**63),
        ("rem_af", (7.5, -2.0), 1.5),
        ("sqrt_af", (2.0,), 2.0**0.5),
        ("fma_af", (0.1, 3.0, 0.25), 0.1 * 3.0 + 0.25),
        ("floor_af", (-2.5,), -3.0),
        ("ceil_af", (-2.5,), -2.0),
        ("trunc_af", (-2.5,), -2.0),
        ("round_af", (-3.5,), -4.0),
        ("modf_whole_af", (-2.75,), -2.0),
        ("modf_fract_af", (-2.75,), -0.75),
        ("sign_af", (-0.5,), -1.0),
        ("sign_af", (0.0,), 0.0),
        ("sign_af", (0.5,), 1.0),
        ("step_af", (0.5, 0.25), 0.0),
        ("step_af", (0.25, 0.5), 1.0),
        ("length_af", (-0.1,), 0.1),
        ("saturate_af", (-0.5,), 0.0),
        ("ldexp_af", (1.0, 1023), 2.0**1023),
        ("ldexp_af", (1.0, -1074), 2.0**-1074),
        ("convert_ai_af", (2**53 + 1,), 2.0**53),
        ("convert_ai_i32", (-5,), np.int32(-5)),
        ("convert_ai_bool", (0,), np.uint32(0)),
        ("convert_af_i32", (-2.9,), np.int32(-2)),
        ("convert_af_u32", (-1.0,), np.uint32(0)),
        ("convert_af_u32", (1e20,), np.uint32(2**32 - 1)),
        ("convert_af_bool", (0.5,), np.uint32(1)),
        ("clamp_ai", (2**40, 0, 2**39), 2**39),
        ("add_af", (0.1, 0.2), 0.1 + 0.2),
        ("rem_af", (-7.5, 2.0), -1.5),
        ("clamp_af", (0.1, 0.0, 1.0), 0.1),
        ("saturate_af", (0.1,), 0.1),
        ("saturate_af", (1.5,), 1.0),
        ("round_af", (2.5,), 2.0),
        ("fract_af", (-0.25,), 0.75),
        ("frexp_fract_af", (12.0,), 0.75),
        ("frexp_exp_af", (12.0,), 4),
        ("ldexp_af", (0.75, 4), 12.0),
        ("ldexp_af", (1.0, -(2**40)), 0.0),
        ("step_af", (0.5, 0.5), 1.0),
        ("exp2_af", (100.0,), 2.0**100),
        ("convert_ai_f32", (2**54 + 2**30 + 1,), np.float32(2**54 + 2**31)),
        ("convert_ai_f16", (2049,), np.float32(2048)),
        ("convert_af_f16", (1 + 2**-11 + 2**-40,), np.float32(1 + 2**-10)),
        ("convert_af_f32", (0.1,), np.float32(0.1)),
        ("convert_af_i32", (-1e20,), np.int32(-(2**31))),
        ("convert_af_i32", (1e20,), np.int32(2**31 - 1)),
        ("convert_af_u32", (3.9,), np.uint32(3)),
        ("convert_af_bool", (-0.0,), np.uint32(0)),
        ("convert_ai_u32", (2**32 - 1,), np.uint32(2**32 - 1)),
        ("convert_ai_bool", (7,), np.uint32(1)),
        ("lt_ai", (2**53, 2**53 + 1), np.uint32(1)),
        ("select_af", (1.0, 2.0, np.uint32(1)), 2.0),
    ],
)
def test_abstract_numbers(name, args, result):
    actual = OPS[name].fn(*args)
    assert actual == result
    if OPS[name].result in DTYPE:
        assert type(actual) is DTYPE[OPS[name].result]

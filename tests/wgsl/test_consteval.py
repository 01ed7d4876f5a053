"""Const-evaluation against values and error conditions that the spec states, and against NumPy in float64."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins import BUILTINS, OPERATORS, result_struct
from bankshot.sim.wgsl.check import const_eval
from bankshot.sim.wgsl.check.overloads import resolve
from bankshot.sim.wgsl.diagnostics import WgslError

AI, AF, I32, U32, F32, F16, BOOL = t.ABSTRACT_INT, t.ABSTRACT_FLOAT, t.I32, t.U32, t.F32, t.F16, t.BOOL
INT_MIN, INT_MAX, UINT_MAX = -(2**31), 2**31 - 1, 2**32 - 1


def call(name: str, *args: tuple[Any, t.Type], template: t.Type | None = None) -> Any:
    """Resolve and evaluate `name(args)`; each argument is (value, type)."""
    builtin = BUILTINS.get(name) or OPERATORS[name]
    found = resolve(builtin, (template,) if template else (), [type_ for _, type_ in args], None)
    assert found.result is not None
    values = [const_eval.convert(v, type_, p, None) for (v, type_), p in zip(args, found.params, strict=True)]
    return const_eval.evaluate(builtin, found.params, values, found.result, None)


def fails(code: str, name: str, *args: tuple[Any, t.Type]) -> None:
    with pytest.raises(WgslError) as error:
        call(name, *args)
    assert error.value.diagnostics[0].code == code


def vec(elem: t.Scalar, *values: float) -> tuple[tuple[float, ...], t.Vec]:
    return values, t.Vec(len(values), elem)


# ---- conversions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "src", "dst", "expected"),
    [
        (3.9000000953674316, F32, U32, 3),
        (-1.0, F32, U32, 0),
        (float(np.float32(1e20)), F32, U32, 4294967040),
        (-3.9000000953674316, F32, I32, -3),
        (float(np.float32(1e20)), F32, I32, 2147483520),
        (float(np.float32(-1e20)), F32, I32, INT_MIN),
        (-1, I32, U32, UINT_MAX),
        (UINT_MAX, U32, I32, -1),
        (4_000_000_000, AI, U32, 4_000_000_000),
        (0.0, F32, BOOL, False),
        (-0.0, F32, BOOL, False),
        (2, U32, BOOL, True),
        (True, BOOL, F16, 1.0),
        (16777217, I32, F32, 16777216.0),
        (0.1, AF, F32, float(np.float32(0.1))),
        (0.1, AF, F16, float(np.float16(0.1))),
        (65504.0, AF, F16, 65504.0),
        (-1e300, AF, I32, INT_MIN),
    ],
)
def test_conversions(value: Any, src: t.Scalar, dst: t.Scalar, expected: Any) -> None:
    converted = const_eval.convert(value, src, dst, None, explicit=True)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("value", "src", "dst"),
    [
        (2**31, AI, I32),
        (-1, AI, U32),
        (2**32, AI, U32),
        (1e39, AF, F32),
        (65505.0, AF, F16),
        (65536.0, F32, F16),
        (70000, U32, F16),
    ],
)
def test_conversions_that_do_not_fit(value: Any, src: t.Scalar, dst: t.Scalar) -> None:
    with pytest.raises(WgslError, match=f"does not fit in {dst}") as error:
        const_eval.convert(value, src, dst, None, explicit=True)
    assert error.value.diagnostics[0].code == "value-out-of-range"


def test_an_integer_that_only_u32_holds_comes_with_a_hint() -> None:
    with pytest.raises(WgslError, match="hint: 3000000000u is a u32"):
        const_eval.convert(3_000_000_000, AI, I32, None)


def test_composites_convert_by_component() -> None:
    mat = ((1.0, 2.5), (0.1, -3.0))
    f16 = const_eval.convert(mat, t.Mat(2, 2, AF), t.Mat(2, 2, F16), None)
    assert f16 == ((1.0, 2.5), (float(np.float16(0.1)), -3.0))
    arrays = const_eval.convert(((1, 2), (3, 4)), t.Array(t.Vec(2, AI), 2), t.Array(t.Vec(2, F32), 2), None)
    assert arrays == ((1.0, 2.0), (3.0, 4.0))
    made = call("frexp", (1.5, AF))
    assert const_eval.convert(made, result_struct("frexp", AF), result_struct("frexp", F32), None) == (0.75, 1)


# ---- construction --------------------------------------------------------------------------------------


def test_zero_values() -> None:
    pair = t.layout("Pair", [("a", BOOL, {}, None), ("b", t.Mat(2, 3, F32), {}, None)])
    assert const_eval.zero(t.Array(pair, 2)) == ((False, ((0.0,) * 3,) * 2),) * 2


def test_construct() -> None:
    assert const_eval.construct(t.Vec(3, I32), [I32], [7]) == (7, 7, 7)
    assert const_eval.construct(t.Vec(4, I32), [t.Vec(2, I32), I32, I32], [(1, 2), 3, 4]) == (1, 2, 3, 4)
    assert const_eval.construct(t.Mat(2, 2, F32), [F32] * 4, [1.0, 2.0, 3.0, 4.0]) == ((1.0, 2.0), (3.0, 4.0))
    columns = [(1.0, 2.0), (3.0, 4.0)]
    assert const_eval.construct(t.Mat(2, 2, F32), [t.Vec(2, F32)] * 2, columns) == ((1.0, 2.0), (3.0, 4.0))
    assert const_eval.construct(t.Array(t.Vec(2, I32), 1), [t.Vec(2, I32)], [(1, 2)]) == ((1, 2),)


# ---- operators -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "args", "expected"),
    [
        ("*", [(-1, AI), (INT_MIN, I32)], INT_MIN),  # the spec's example of wrapping
        ("+", [(INT_MAX, I32), (1, AI)], INT_MIN),
        ("-", [(0, U32), (1, U32)], UINT_MAX),
        ("unary -", [(INT_MIN, I32)], INT_MIN),
        ("/", [(-7, I32), (2, I32)], -3),
        ("%", [(-7, I32), (2, I32)], -1),
        ("%", [(-7, AI), (2, AI)], -1),
        ("/", [(-7, AI), (2, AI)], -3),
        ("%", [(-5.5, AF), (2.0, AF)], -1.5),
        ("<<", [(1, AI), (62, AI)], 2**62),
        ("<<", [(1, AI), (30, U32)], 2**30),
        ("<<", [(-1, I32), (31, U32)], INT_MIN),
        (">>", [(-8, I32), (1, U32)], -4),
        (">>", [(2**31, U32), (31, U32)], 1),
        (">>", [(-1, AI), (100, AI)], -1),
        ("~", [(0, U32)], UINT_MAX),
        ("~", [(5, AI)], -6),
        ("&", [(True, BOOL), (False, BOOL)], False),
        ("|", [(True, BOOL), (False, BOOL)], True),
        *((op, [(12, kind), (10, kind)], of) for op, of in (("&", 8), ("|", 14), ("^", 6)) for kind in (AI, I32, U32)),
        ("==", [(1, AI), (1.0, AF)], True),
        ("!", [(True, BOOL)], False),
    ],
    ids=str,
)
def test_operators(op: str, args: list, expected: Any) -> None:
    result = call(op, *args)
    assert result == expected
    assert type(result) is type(expected)


def test_f32_is_rounded_after_each_operation() -> None:
    tenth, fifth = float(np.float32(0.1)), float(np.float32(0.2))
    assert call("+", (tenth, F32), (fifth, F32)) == float(np.float32(0.1) + np.float32(0.2)) != tenth + fifth
    third = call("/", (1.0, F16), (3.0, F16))
    assert third == float(np.float16(1.0) / np.float16(3.0))


@pytest.mark.parametrize(
    ("code", "op", "args"),
    [
        ("division-by-zero", "/", [(1, I32), (0, I32)]),
        ("division-by-zero", "%", [(1, U32), (0, U32)]),
        ("division-by-zero", "/", [(1, AI), (0, AI)]),
        ("division-by-zero", "/", [vec(I32, 1, 2), vec(I32, 1, 0)]),
        ("const-overflow", "/", [(INT_MIN, I32), (-1, I32)]),
        ("const-overflow", "%", [(INT_MIN, I32), (-1, I32)]),
        ("const-overflow", "/", [(1.0, AF), (0.0, AF)]),
        ("const-overflow", "%", [(1.0, F32), (0.0, F32)]),
        ("const-overflow", "+", [(2**63 - 1, AI), (1, AI)]),
        ("const-overflow", "*", [(2**62, AI), (2, AI)]),
        ("const-overflow", "*", [(1e308, AF), (10.0, AF)]),
        ("const-overflow", "*", [(3e38, F32), (2.0, F32)]),
        ("const-overflow", "+", [(65504.0, F16), (65504.0, F16)]),
        ("shift-too-far", "<<", [(1, I32), (32, U32)]),
        ("shift-too-far", ">>", [(1, U32), (32, U32)]),
        ("const-overflow", "<<", [(1, I32), (31, U32)]),
        ("const-overflow", "<<", [(2, U32), (31, U32)]),
        ("const-overflow", "<<", [(1, AI), (63, AI)]),
        ("shift-too-far", "<<", [(1, AI), (4_000_000_000, AI)]),
    ],
    ids=str,
)
def test_operators_that_fail(code: str, op: str, args: list) -> None:
    fails(code, op, *args)


# ---- builtin functions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("abs", [(INT_MIN, I32)], INT_MIN),
        ("round", [(2.5, F32)], 2.0),
        ("round", [(3.5, AF)], 4.0),
        ("sign", [(-3, AI)], -1),
        ("fract", [(-1.25, F32)], 0.75),
        ("saturate", [(7.0, F32)], 1.0),
        ("step", [(1.0, F32), (1.0, F32)], 1.0),
        ("select", [(1, AI), (2, AI), (True, BOOL)], 2),
        ("countLeadingZeros", [(1, U32)], 31),
        ("countOneBits", [(-1, I32)], 32),
        ("firstLeadingBit", [(-1, I32)], -1),
        ("firstLeadingBit", [(-2, I32)], 0),
        ("firstLeadingBit", [(0, U32)], UINT_MAX),
        ("firstTrailingBit", [(8, U32)], 3),
        ("reverseBits", [(1, U32)], 2**31),
        ("extractBits", [(0b1010, U32), (1, U32), (3, U32)], 0b101),
        ("extractBits", [(0b1000, I32), (3, U32), (1, U32)], -1),
        ("insertBits", [(0, U32), (0b11, U32), (4, U32), (2, U32)], 0b110000),
        ("frexp", [(1.5, AF)], (0.75, 1)),
        ("frexp", [((-8.0, 0.0), t.Vec(2, F32))], ((-0.5, 0.0), (4, 0))),
        ("modf", [(-1.5, F32)], (-0.5, -1.0)),
        ("ldexp", [(0.75, AF), (1, AI)], 1.5),
        ("pack4x8unorm", [vec(F32, 0.0, 1.0, 0.0, 1.0)], 0xFF00FF00),
        ("unpack4x8snorm", [(0x7F81, U32)], (-1.0, 1.0, 0.0, 0.0)),
        ("pack4xI8Clamp", [vec(I32, -200, 200, -1, 1)], 0x01FF7F80),
        ("unpack4xI8", [(0x01FF7F80, U32)], (-128, 127, -1, 1)),
        ("dot4I8Packed", [(0x01FF7F80, U32), (0x01010101, U32)], -1),
        ("pack2x16float", [vec(F32, 1.0, -2.0)], 0xC0003C00),
        ("unpack2x16float", [(0xC0003C00, U32)], (1.0, -2.0)),
        ("all", [vec(BOOL, True, False)], False),
        ("any", [vec(BOOL, False, True)], True),
        ("any", [(True, BOOL)], True),
        ("dot", [vec(AI, 1, 2, 3), vec(AI, 4, 5, 6)], 32),
        ("cross", [vec(AF, 1.0, 0.0, 0.0), vec(AF, 0.0, 1.0, 0.0)], (0.0, 0.0, 1.0)),
        ("length", [vec(F32, 3.0, 4.0)], 5.0),
        ("length", [(-3.0, F32)], 3.0),
        ("distance", [(1.0, F32), (3.5, F32)], 2.5),
        ("normalize", [vec(AF, 0.0, 3.0, 4.0)], (0.0, 0.6, 0.8)),
        ("mix", [vec(AF, 0.0, 10.0), vec(AF, 10.0, 20.0), (0.25, AF)], (2.5, 12.5)),
        ("smoothstep", [(0.0, AF), (2.0, AF), (1.0, AF)], 0.5),
        ("smoothstep", [(2.0, AF), (0.0, AF), (0.5, AF)], 1 - (0.0625 * (3 - 0.5))),
        ("faceForward", [vec(AF, 1.0, 2.0), vec(AF, 1.0, 0.0), vec(AF, 1.0, 0.0)], (-1.0, -2.0)),
        ("reflect", [vec(AF, 1.0, -1.0), vec(AF, 0.0, 1.0)], (1.0, 1.0)),
        ("refract", [vec(AF, 1.0, 0.0), vec(AF, 0.0, 1.0), (2.0, AF)], (0.0, 0.0)),  # k < 0
        ("refract", [vec(F32, float(np.float32(1e30)), 0.0), vec(F32, 0.0, 0.0), (1e10, F32)], (0.0, 0.0)),  # k < 0
        ("refract", [vec(AF, 1e300, 1.0), vec(AF, 0.0, 0.0), (1e100, AF)], (0.0, 0.0)),  # k < 0
        ("refract", [vec(AF, 0.0, -1.0), vec(AF, 0.0, 1.0), (0.5, AF)], (0.0, -1.0)),
        ("transpose", [(((1.0, 2.0, 3.0), (4.0, 5.0, 6.0)), t.Mat(2, 3, F32))], ((1.0, 4.0), (2.0, 5.0), (3.0, 6.0))),
    ],
    ids=str,
)
def test_functions(name: str, args: list, expected: Any) -> None:
    assert call(name, *args) == expected


@pytest.mark.parametrize(
    ("target", "arg", "expected"),
    [
        (U32, (1.0, F32), 0x3F800000),
        (F32, (0x3F800000, U32), 1.0),
        (I32, (UINT_MAX, U32), -1),
        (U32, (4_000_000_000, AI), 4_000_000_000),
        (U32, ((1.0, -2.0), t.Vec(2, F16)), 0xC0003C00),
        (t.Vec(2, F16), (0xC0003C00, U32), (1.0, -2.0)),
        (t.Vec(2, F32), ((0.0, 1.875, 0.0, 2.0), t.Vec(4, F16)), (1.0, 2.0)),
        (t.Vec(4, F16), ((1.0, 2.0), t.Vec(2, F32)), (0.0, 1.875, 0.0, 2.0)),
    ],
    ids=str,
)
def test_bitcast(target: t.Type, arg: tuple, expected: Any) -> None:
    assert call("bitcast", arg, template=target) == expected


@pytest.mark.parametrize(
    ("code", "name", "args"),
    [
        ("argument-out-of-range", "clamp", [(1, AI), (3, AI), (2, AI)]),
        ("argument-out-of-range", "smoothstep", [(1.0, F32), (1.0, F32), (0.0, F32)]),
        ("argument-out-of-range", "extractBits", [(1, U32), (16, U32), (17, U32)]),
        ("argument-out-of-range", "insertBits", [(1, U32), (1, U32), (33, U32), (0, U32)]),
        ("argument-out-of-range", "ldexp", [(1.0, F32), (129, I32)]),
        ("argument-out-of-range", "ldexp", [(1.0, F16), (17, I32)]),
        ("argument-out-of-range", "ldexp", [(1.0, AF), (1025, AI)]),
        ("argument-out-of-range", "pow", [(-1.0, F32), (2.0, F32)]),
        ("value-out-of-range", "quantizeToF16", [(65505.0, F32)]),
        ("value-out-of-range", "pack2x16float", [vec(F32, 0.0, 1e6)]),
        ("const-overflow", "sqrt", [(-1.0, AF)]),
        ("const-overflow", "log", [(0.0, F32)]),
        ("const-overflow", "acos", [(2.0, AF)]),
        ("const-overflow", "exp", [(1000.0, AF)]),
        ("const-overflow", "exp2", [(128.0, F32)]),
        ("const-overflow", "inverseSqrt", [(0.0, F32)]),
        ("const-overflow", "normalize", [vec(F32, 0.0, 0.0)]),
    ],
    ids=str,
)
def test_functions_that_fail(code: str, name: str, args: list) -> None:
    fails(code, name, *args)


def test_a_bitcast_to_an_infinity_or_nan_is_an_error() -> None:
    for bits in (0x7F800000, 0x7FC00000, 0xFF800000):
        with pytest.raises(WgslError, match="the result of 'bitcast' is infinite or not a number"):
            call("bitcast", (bits, U32), template=F32)
    for half in (0x7C00, 0x7C01, 0xFC00, 0xFE00):
        with pytest.raises(WgslError, match="the result of 'bitcast' is infinite or not a number"):
            call("bitcast", (half, U32), template=t.Vec(2, F16))


# ---- what is wrong before all is known -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "name", "types", "values"),
    [
        ("division-by-zero", "/", [I32, I32], [None, 0]),
        ("shift-too-far", "<<", [t.Vec(2, U32), t.Vec(2, U32)], [None, (0, 32)]),
        ("argument-out-of-range", "clamp", [F32, F32, F32], [None, 2.0, 1.0]),
        ("argument-out-of-range", "extractBits", [t.Vec(2, U32), U32, U32], [None, 30, 3]),
        ("argument-out-of-range", "insertBits", [U32, U32, U32, U32], [None, None, 30, 3]),
        ("argument-out-of-range", "smoothstep", [F32, F32, F32], [2.0, 2.0, None]),
        ("argument-out-of-range", "ldexp", [F32, I32], [None, 129]),
        ("argument-out-of-range", "subgroupShuffle", [F32, I32], [None, 128]),
        ("argument-out-of-range", "quadBroadcast", [F32, U32], [None, 4]),
        (
            "argument-out-of-range",
            "textureGather",
            [I32, t.Texture("texture_2d", F32), t.Sampler(), t.Vec(2, F32)],
            [4, None, None, None],
        ),
        (
            "argument-out-of-range",
            "textureSample",
            [t.Texture("texture_2d", F32), t.Sampler(), t.Vec(2, F32), t.Vec(2, I32)],
            [None, None, None, (0, 8)],
        ),
    ],
    ids=str,
)
def test_partial_check(code: str, name: str, types: list, values: list) -> None:
    builtin = BUILTINS.get(name) or OPERATORS[name]
    with pytest.raises(WgslError) as error:
        const_eval.partial_check(builtin, types, values, None)
    assert error.value.diagnostics[0].code == code
    const_eval.partial_check(builtin, types, [None] * len(values), None)


def test_partial_check_lets_floats_be_divided_by_zero_at_run_time() -> None:
    for builtin, values in ((OPERATORS["/"], [None, 0.0]), (BUILTINS["pow"], [-1.0, None])):
        assert const_eval.partial_check(builtin, [F32, F32], values, None) is None


# ---- against NumPy -------------------------------------------------------------------------------------

SMALL = st.integers(-8, 8).map(float)


@st.composite
def matrices(draw: st.DrawFn, cols: int, rows: int) -> tuple[tuple[tuple[float, ...], ...], t.Mat]:
    value = tuple(tuple(draw(SMALL) for _ in range(rows)) for _ in range(cols))
    return value, t.Mat(cols, rows, AF)


@given(st.data(), *(st.integers(2, 4) for _ in range(3)))
def test_matrix_products_are_linear_algebra(data: st.DataObject, k: int, c: int, r: int) -> None:
    left, right = data.draw(matrices(k, r)), data.draw(matrices(c, k))
    vector = tuple(data.draw(SMALL) for _ in range(k))
    a, b = np.array(left[0]).T, np.array(right[0]).T  # as mathematicians write them
    np.testing.assert_array_equal(np.array(call("*", left, right)).T, a @ b)
    np.testing.assert_array_equal(call("*", left, (vector, t.Vec(k, AF))), a @ vector)
    np.testing.assert_array_equal(call("*", (vector, t.Vec(k, AF)), right), vector @ b)


@given(st.data(), st.integers(2, 4))
def test_determinants(data: st.DataObject, n: int) -> None:
    matrix = data.draw(matrices(n, n))
    assert call("determinant", matrix) == pytest.approx(np.linalg.det(np.array(matrix[0])), abs=1e-6)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_abstract_ints_never_wrap(a: int, b: int) -> None:
    for op, exact in (("+", a + b), ("-", a - b), ("*", a * b)):
        if -(2**63) <= exact < 2**63:
            assert call(op, (a, AI), (b, AI)) == exact
        else:
            fails("const-overflow", op, (a, AI), (b, AI))


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
def test_f32_arithmetic_is_correctly_rounded_or_an_error(a: float, b: float) -> None:
    with np.errstate(all="ignore"):
        expected = float(np.float32(a) * np.float32(b))
    if math.isinf(expected):
        fails("const-overflow", "*", (a, F32), (b, F32))
    else:
        assert call("*", (a, F32), (b, F32)) == expected

"""The builtin table is whole and means what the spec's parameterizations mean."""

from __future__ import annotations

import re

import pytest

from bankshot.sim.scalar import OPS
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins import BUILTINS, CONSTRUCTORS, OPERATORS, Builtin
from bankshot.sim.wgsl.builtins.compositions import COMPOSE, required_ops
from bankshot.sim.wgsl.builtins.signature import parse
from bankshot.sim.wgsl.check.const_checks import CHECKS
from bankshot.sim.wgsl.diagnostics import Crash

ROWS = [*BUILTINS.values(), *OPERATORS.values(), *CONSTRUCTORS.values()]

# Section headings of the spec's chapter "Built-in Functions", constructors left out.
_SPEC_NAMES = """
bufferView bufferArrayView bufferLength
bitcast all any select arrayLength abs acos acosh asin asinh atan atanh atan2 ceil clamp cos cosh countLeadingZeros
countOneBits countTrailingZeros cross degrees determinant distance dot dot4U8Packed dot4I8Packed exp exp2 extractBits
faceForward firstLeadingBit firstTrailingBit floor fma fract frexp insertBits inverseSqrt ldexp length log log2 max min
mix modf normalize pow quantizeToF16 radians reflect refract reverseBits round saturate sign sin sinh smoothstep sqrt
step tan tanh transpose trunc dpdx dpdxCoarse dpdxFine dpdy dpdyCoarse dpdyFine fwidth fwidthCoarse fwidthFine
textureDimensions textureGather textureGatherCompare textureLoad textureNumLayers textureNumLevels textureNumSamples
textureSample textureSampleBias textureSampleCompare textureSampleCompareLevel textureSampleGrad textureSampleLevel
textureSampleBaseClampToEdge textureStore atomicLoad atomicStore atomicAdd atomicSub atomicMax atomicMin atomicAnd
atomicOr atomicXor atomicExchange atomicCompareExchangeWeak pack4x8snorm pack4x8unorm pack4xI8 pack4xU8 pack4xI8Clamp
pack4xU8Clamp pack2x16snorm pack2x16unorm pack2x16float unpack4x8snorm unpack4x8unorm unpack4xI8 unpack4xU8
unpack2x16snorm unpack2x16unorm unpack2x16float storageBarrier textureBarrier workgroupBarrier workgroupUniformLoad
subgroupAdd subgroupExclusiveAdd subgroupInclusiveAdd subgroupAll subgroupAnd subgroupAny subgroupBallot
subgroupBroadcast subgroupBroadcastFirst subgroupElect subgroupMax subgroupMin subgroupMul subgroupExclusiveMul
subgroupInclusiveMul subgroupOr subgroupShuffle subgroupShuffleDown subgroupShuffleUp subgroupShuffleXor subgroupXor
quadBroadcast quadSwapDiagonal quadSwapX quadSwapY
"""


def test_every_builtin_of_the_spec_has_a_row() -> None:
    assert sorted(BUILTINS) == sorted(_SPEC_NAMES.split())


def test_names_are_unique_over_all_tables() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_well_formed(row: Builtin) -> None:
    assert re.fullmatch(r"[A-Za-z0-9-]+", row.anchor)
    assert row.kind in ("op", "compose", "effect", "construct")
    assert (row.kind == "op") == bool(row.op)
    assert (row.kind == "compose") == (row.name in COMPOSE)
    assert row.stages
    assert len(set(row.signatures)) == len(row.signatures)
    for signature in row.overloads:
        assert signature.closed, f"{signature.text} has no overloads"
        if not signature.open_variables:
            params = [candidate.params for candidate in signature.candidates((t.F32,) * len(signature.params))]
            templates = [c.templates for c in signature.candidates((t.F32,) * len(signature.params))]
            assert len(set(zip(params, templates, strict=True))) == len(params)


def test_effects_are_never_constant_and_pure_functions_always() -> None:
    for row in ROWS:
        assert row.const == (row.kind != "effect")


def test_checks_are_about_rows_of_the_table() -> None:
    assert set(CHECKS) <= {row.name for row in ROWS}


def test_no_op_row_mixes_element_kinds_in_a_way_that_its_name_hides() -> None:
    """`{op}_{kind of the first argument}` must determine all the kinds."""
    seen: dict[str, tuple] = {}
    for row in [*BUILTINS.values(), *OPERATORS.values()]:
        if row.kind != "op":
            continue
        for signature in row.overloads:
            for candidate in signature.candidates(()):
                kinds = tuple(t.KIND[t.element_of(p)] for p in (*candidate.params, candidate.result) if p)
                if row.name != "ldexp":  # takes an i32 for an abstract-int: both are Python ints
                    assert seen.setdefault(f"{row.op}_{kinds[0]}", kinds) == kinds


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("(T, T) -> T; T: anynum | vecN<anynum>", 24),
        ("(vecN<S>, S) -> vecN<S>; S: anynum", 18),
        ("(matKxR<T>, matCxK<T>) -> matCxR<T>; T: anyfloat", 81),
        ("(texture_2d<S>, vec2<int>, int) -> vec4<S>; S: word", 12),
        ("()", 1),
    ],
)
def test_a_signature_stands_for_so_many_overloads(text: str, count: int) -> None:
    signature = parse(text)
    assert len(list(signature.candidates((t.F32,) * len(signature.params)))) == count


@pytest.mark.parametrize("text", ["(T -> T", "(T) T", "(T) -> T; T f32"])
def test_a_slip_in_a_signature_is_our_crash(text: str) -> None:
    with pytest.raises(Crash, match="bad signature"):
        parse(text)


def test_an_unknown_type_in_a_signature_is_our_crash() -> None:
    with pytest.raises(Crash, match="unknown type 'vec5'"):
        list(parse("(vec5<f32>)").candidates((t.F32,)))


def test_uniformity_of_the_rows() -> None:
    triggers = {row.name: row.uniform for row in BUILTINS.values() if row.uniform}
    assert triggers["workgroupBarrier"] == triggers["workgroupUniformLoad"] == "error"
    derivatives = {name for name, rule in triggers.items() if rule == "derivative_uniformity"}
    assert len(derivatives) == 9 + 3  # dpdx and friends; textureSample, …Bias, …Compare
    assert {name for name, rule in triggers.items() if rule == "subgroup_uniformity"} == {
        name for name in BUILTINS if name.startswith(("subgroup", "quad"))
    }
    assert {row.name: row.uniform_args for row in BUILTINS.values() if row.uniform_args} == {
        "workgroupUniformLoad": (0,),
        "subgroupShuffleDown": (1,),
        "subgroupShuffleUp": (1,),
        "subgroupShuffleXor": (1,),
    }


@pytest.mark.parametrize(
    ("name", "args", "f32", "f16"),
    [
        ("+", (1.0, 1.0), [("correct", 0.0, 0.0)], [("correct", 0.0, 0.0)]),
        ("/", (1.0, 3.0), [("ulp", 2.5, 0.0)], [("ulp", 2.5, 0.0)]),
        ("/", (1.0, 2.0**127), [], []),  # the divisor is out of the range that the spec speaks of
        ("exp", (1.0,), [("ulp", 3, 2)], [("ulp", 1, 2)]),
        ("log", (0.75,), [("abs", 2.0**-21, 0.0)], [("abs", 2.0**-7, 0.0)]),
        ("log2", (8.0,), [("ulp", 3, 0.0)], [("ulp", 3, 0.0)]),
        ("sin", (-3.0,), [("abs", 2.0**-11, 0.0)], [("abs", 2.0**-7, 0.0)]),
        ("cos", (4.0,), [("abs", 2.0**-11, 2.0**-22)], [("abs", 2.0**-7, 2.0**-9)]),
        ("atan", (1.0,), [("ulp", 4096, 0.0)], [("ulp", 5, 0.0)]),
        ("tanh", (0.5,), [("abs", 1e-5, 0.0), ("inherits", 0.0, 0.0)], [("abs", 1e-5, 0.0), ("inherits", 0.0, 0.0)]),
        ("determinant", (), [("unbounded", 0.0, 0.0)], [("unbounded", 0.0, 0.0)]),
    ],
)
def test_accuracy_of_the_spec(name: str, args: tuple, f32: list, f16: list) -> None:
    accuracy = (BUILTINS.get(name) or OPERATORS[name]).accuracy
    assert accuracy is not None
    for bounds, expected in ((accuracy.f32, f32), (accuracy.f16, f16)):
        holding = [b for b in bounds if b.where is None or b.where.holds(*args)]
        assert [(b.kind, b.amount, b.slope) for b in holding] == expected


def test_what_inherits_its_accuracy_says_from_what() -> None:
    for row in ROWS:
        bounds = row.accuracy.f32 + row.accuracy.f16 if row.accuracy else ()
        assert all((bound.kind == "inherits") == bool(bound.formula) for bound in bounds)


def test_must_use_is_all_but_what_acts() -> None:
    may_stand_alone = {row.name for row in BUILTINS.values() if not row.must_use}
    atomics = {name for name in BUILTINS if name.startswith("atomic")}
    assert may_stand_alone == atomics | {"storageBarrier", "textureBarrier", "workgroupBarrier", "textureStore"}


def test_the_scalar_registry_has_every_operation() -> None:
    assert required_ops() - set(OPS) == set()
    assert required_ops() >= {"add_f32", "convert_u32_f32", "convert_f16_i32", "convert_bool_u32", "convert_ai_af"}

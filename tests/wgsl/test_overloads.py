"""Conversion ranks and overload resolution against the spec's rules and its worked examples."""

from __future__ import annotations

import itertools

import pytest

from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins import BUILTINS, OPERATORS, Builtin
from bankshot.sim.wgsl.builtins.signature import result_struct
from bankshot.sim.wgsl.check.overloads import (
    _candidates,
    common_type,
    concretize,
    conversion_rank,
    resolve,
    resolve_constructor,
)
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source, Span

AI, AF, I32, U32, F32, F16, BOOL = t.ABSTRACT_INT, t.ABSTRACT_FLOAT, t.I32, t.U32, t.F32, t.F16, t.BOOL


def vec(n: int, elem: t.Scalar) -> t.Vec:
    return t.Vec(n, elem)


def ptr(space: str, store: t.Type, access: str = "read_write") -> t.Pointer:
    return t.Pointer(space, store, access)


# ---- ranks ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("src", "dst", "rank"),
    [
        (F32, F32, 0),
        (AF, F32, 1),
        (AF, F16, 2),
        (AI, I32, 3),
        (AI, U32, 4),
        (AI, AF, 5),
        (AI, F32, 6),
        (AI, F16, 7),
        (I32, F32, None),
        (F32, AF, None),
        (AF, I32, None),
        (BOOL, U32, None),
        (vec(3, AI), vec(3, U32), 4),
        (vec(3, AI), vec(2, U32), None),
        (t.Mat(2, 3, AF), t.Mat(2, 3, F16), 2),
        (t.Array(vec(2, AF), 4), t.Array(vec(2, F32), 4), 1),
        (t.Array(AI, 4), t.Array(I32, 5), None),
        (result_struct("frexp", AF), result_struct("frexp", F16), 2),
        (result_struct("frexp", AF), result_struct("modf", F32), None),
        (result_struct("modf", vec(2, AF)), result_struct("modf", vec(2, F32)), 1),
        (t.Reference("function", F32, "read_write"), F32, 0),
        (t.Reference("storage", F32, "write"), F32, None),
    ],
    ids=str,
)
def test_conversion_rank(src: t.Type, dst: t.Type, rank: int | None) -> None:
    assert conversion_rank(src, dst) == rank


@pytest.mark.parametrize(
    ("src", "dst"),
    [
        (AI, I32),
        (AF, F32),
        (BOOL, BOOL),
        (t.Array(t.Mat(2, 2, AF), 3), t.Array(t.Mat(2, 2, F32), 3)),
        (result_struct("frexp", vec(3, AF)), result_struct("frexp", vec(3, F32))),
    ],
    ids=str,
)
def test_concretize(src: t.Type, dst: t.Type) -> None:
    assert concretize(src) == dst


def test_result_structs() -> None:
    frexp, exchange = result_struct("frexp", vec(2, F16)), result_struct("exchange", I32)
    assert (frexp.name, [(m.name, m.type) for m in frexp.members]) == (
        "__frexp_result_vec2_f16",
        [("fract", vec(2, F16)), ("exp", vec(2, I32))],
    )
    assert [m.type for m in result_struct("frexp", AF).members] == [AF, AI]
    assert [(m.name, m.type) for m in exchange.members] == [("old_value", I32), ("exchanged", BOOL)]


# ---- calls ---------------------------------------------------------------------------------------------


def row(name: str) -> Builtin:
    return BUILTINS.get(name) or OPERATORS[name]


@pytest.mark.parametrize(
    ("name", "args", "params", "result"),
    [
        ("log2", [AI], [AF], AF),
        ("+", [AI, AF], [AF, AF], AF),
        ("*", [AI, I32], [I32, I32], I32),
        ("+", [vec(3, F16), AI], [vec(3, F16), F16], vec(3, F16)),
        ("-", [AF, vec(2, F32)], [F32, vec(2, F32)], vec(2, F32)),
        ("*", [t.Mat(2, 3, F32), vec(2, AI)], [t.Mat(2, 3, F32), vec(2, F32)], vec(3, F32)),
        ("*", [vec(3, F32), t.Mat(2, 3, F32)], [vec(3, F32), t.Mat(2, 3, F32)], vec(2, F32)),
        ("*", [t.Mat(4, 3, F32), t.Mat(2, 4, F32)], [t.Mat(4, 3, F32), t.Mat(2, 4, F32)], t.Mat(2, 3, F32)),
        ("*", [AI, t.Mat(2, 2, F16)], [F16, t.Mat(2, 2, F16)], t.Mat(2, 2, F16)),
        ("<<", [AI, AI], [AI, U32], AI),
        ("<<", [vec(2, I32), vec(2, AI)], [vec(2, I32), vec(2, U32)], vec(2, I32)),
        ("==", [vec(2, BOOL), vec(2, BOOL)], [vec(2, BOOL), vec(2, BOOL)], vec(2, BOOL)),
        ("<", [AI, U32], [U32, U32], BOOL),
        ("&", [BOOL, BOOL], [BOOL, BOOL], BOOL),
        ("select", [AI, F32, BOOL], [F32, F32, BOOL], F32),
        ("select", [vec(2, AI), vec(2, AI), vec(2, BOOL)], [vec(2, AI), vec(2, AI), vec(2, BOOL)], vec(2, AI)),
        ("mix", [vec(2, F32), vec(2, AI), AF], [vec(2, F32), vec(2, F32), F32], vec(2, F32)),
        ("frexp", [F32], [F32], result_struct("frexp", F32)),
        ("transpose", [t.Mat(2, 4, F32)], [t.Mat(2, 4, F32)], t.Mat(4, 2, F32)),
        ("dot", [vec(3, I32), vec(3, AI)], [vec(3, I32), vec(3, I32)], I32),
        ("subgroupAdd", [AI], [I32], I32),
        ("atomicAdd", [ptr("workgroup", t.Atomic(U32)), AI], [ptr("workgroup", t.Atomic(U32)), U32], U32),
        ("arrayLength", [ptr("storage", t.Array(F32, None), "read")], None, U32),
        ("workgroupUniformLoad", [ptr("workgroup", t.Atomic(I32))], None, I32),
        ("workgroupUniformLoad", [ptr("workgroup", t.Array(vec(2, F32), 4))], None, t.Array(vec(2, F32), 4)),
        (
            "textureStore",
            [t.Texture("texture_storage_2d", format="rg32uint", access="write"), vec(2, AI), vec(4, AI)],
            [t.Texture("texture_storage_2d", format="rg32uint", access="write"), vec(2, I32), vec(4, U32)],
            None,
        ),
    ],
    ids=str,
)
def test_resolve(name: str, args: list, params: list | None, result: t.Type | None) -> None:
    found = resolve(row(name), (), args, None)
    assert (list(found.params), found.result) == (args if params is None else params, result)


@pytest.mark.parametrize(
    ("target", "arg", "param"),
    [
        (U32, AI, AI),  # as u32(e): the value may be beyond i32
        (F32, AI, I32),
        (F32, AF, F32),
        (I32, vec(2, F16), vec(2, F16)),
        (vec(2, F16), F32, F32),
        (vec(4, F16), vec(2, U32), vec(2, U32)),
        (vec(3, I32), vec(3, F32), vec(3, F32)),
        (F16, F16, F16),
    ],
    ids=str,
)
def test_bitcast_takes_a_template_argument(target: t.Type, arg: t.Type, param: t.Type) -> None:
    found = resolve(row("bitcast"), (target,), [arg], None)
    assert (found.params, found.result) == ((param,), target)


def test_what_is_not_constant_is_not_abstract() -> None:
    assert resolve(row("<<"), (), [AI, U32], None, all_const=False).params == (I32, U32)
    assert resolve(row("abs"), (), [AI], None, all_const=False).params == (I32,)


def test_const_parameters_are_known() -> None:
    texture = t.Texture("texture_2d", F32)
    found = resolve(row("textureGather"), (), [AI, texture, t.Sampler(), vec(2, F32), vec(2, AI)], None)
    assert found.const_params == (0, 4)
    assert resolve(row("subgroupBroadcast"), (), [F32, AI], None).const_params == (1,)


def test_operators_are_the_same_whichever_way_the_abstract_operand_stands() -> None:
    for one, other in itertools.product([AI, AF, I32, U32, F32, F16], repeat=2):
        try:
            forwards = resolve(OPERATORS["+"], (), [one, other], None).result
        except WgslError:
            with pytest.raises(WgslError):
                resolve(OPERATORS["+"], (), [other, one], None)
            continue
        assert resolve(OPERATORS["+"], (), [other, one], None).result == forwards == common_type([one, other])


def test_a_made_up_ambiguity_is_told() -> None:
    either = Builtin("either", ("(i32, f32) -> i32", "(f32, i32) -> f32"), "nowhere", kind="effect")
    with pytest.raises(WgslError, match="several overloads fit either") as error:
        resolve(either, (), [AI, AI], None)
    assert error.value.diagnostics[0].code == "ambiguous-call"


# ---- constructors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("target", "args", "params", "result"),
    [
        ("vec3", [AI, AF, AI], [AF, AF, AF], vec(3, AF)),
        ("vec3", [], [], vec(3, AI)),
        ("vec4", [vec(2, F32), AI, AF], [vec(2, F32), F32, F32], vec(4, F32)),
        ("vec2", [BOOL], [BOOL], vec(2, BOOL)),
        (vec(3, F32), [vec(2, AI), F32], [vec(2, F32), F32], vec(3, F32)),
        (vec(2, F32), [vec(2, I32)], [vec(2, I32)], vec(2, F32)),
        (vec(2, F32), [AI], [F32], vec(2, F32)),
        (F32, [BOOL], [BOOL], F32),
        (U32, [AI], [AI], U32),
        ("mat2x2", [AI] * 4, [AF] * 4, t.Mat(2, 2, AF)),
        ("mat2x3", [vec(3, F16), vec(3, AI)], [vec(3, F16), vec(3, F16)], t.Mat(2, 3, F16)),
        (t.Mat(2, 2, F32), [t.Mat(2, 2, F16)], [t.Mat(2, 2, F16)], t.Mat(2, 2, F32)),
        ("array", [AI, AF], [AF, AF], t.Array(AF, 2)),
        (t.Array(U32, 2), [AI, U32], [U32, U32], t.Array(U32, 2)),
        (t.Array(U32, 2), [], [], t.Array(U32, 2)),
    ],
    ids=str,
)
def test_resolve_constructor(target: t.Type | str, args: list, params: list, result: t.Type) -> None:
    found = resolve_constructor(target, args, None)
    assert (list(found.params), found.result) == (params, result)


def test_struct_constructors() -> None:
    pair = t.layout("Pair", [("a", F32, {}, None), ("b", vec(2, U32), {}, None)])
    assert resolve_constructor(pair, [AI, vec(2, AI)], None).params == (F32, vec(2, U32))
    with pytest.raises(WgslError, match="member 'b' of Pair is vec2<u32>, but the value is f32"):
        resolve_constructor(pair, [F32, F32], None)
    with pytest.raises(WgslError, match="Pair has 2 members, but 1 value is given"):
        resolve_constructor(pair, [F32], None)


# ---- messages ------------------------------------------------------------------------------------------

BAD = [
    ("+", [F32, I32], r"operator '\+' does not take f32 and i32", "no-matching-overload"),
    ("unary -", [U32], "operator '-' does not take u32", "no-matching-overload"),
    ("abs", [BOOL], r"no overload of 'abs' takes \(bool\)", "no-matching-overload"),
    ("min", [F32], "'min' takes 2 arguments, not 1", "wrong-argument-count"),
    ("bitcast", [F32], "'bitcast' needs a template argument", "template-arguments"),
    ("atomicAdd", [ptr("storage", t.Atomic(I32), "read"), I32], "no overload of 'atomicAdd'", "no-matching-overload"),
    ("atomicAdd", [ptr("function", I32), I32], "no overload of 'atomicAdd'", "no-matching-overload"),
    ("arrayLength", [ptr("storage", t.Array(F32, 3), "read")], "no overload of 'arrayLength'", "no-matching-overload"),
    ("determinant", [t.Mat(2, 3, F32)], "no overload of 'determinant'", "no-matching-overload"),
]


@pytest.mark.parametrize(("name", "args", "message", "code"), BAD, ids=str)
def test_what_does_not_fit_is_told(name: str, args: list, message: str, code: str) -> None:
    with pytest.raises(WgslError, match=message) as error:
        resolve(row(name), (), args, None)
    assert error.value.diagnostics[0].code == code


SAMPLED = t.Texture("texture_2d", F32)


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("workgroupBarrier", [F32], "'workgroupBarrier' takes 0 arguments, not 1"),
        ("abs", [F32, F32], "'abs' takes 1 argument, not 2"),
        ("min", [], "'min' takes 2 arguments, not 0"),
        ("textureDimensions", [], "'textureDimensions' takes 1 or 2 arguments, not 0"),
        ("textureLoad", [], "'textureLoad' takes 2, 3 or 4 arguments, not 0"),
        ("textureGather", [], "'textureGather' takes 3 to 6 arguments, not 0"),
        ("textureLoad", [SAMPLED, I32], "'textureLoad' takes 3 arguments for a texture_2d<f32>, not 2"),
    ],
)
def test_numbers_of_arguments(name: str, args: list, message: str) -> None:
    with pytest.raises(WgslError) as error:
        resolve(row(name), (), args, None)
    assert error.value.diagnostics[0].message == message
    assert error.value.diagnostics[0].code == "wrong-argument-count"


@pytest.mark.parametrize(
    ("target", "args", "message"),
    [
        (vec(3, F32), [I32], r"no overload of 'vec3<f32>' takes \(i32\)"),
        ("mat2x2", [], "'mat2x2' takes 1, 2 or 4 arguments, not 0"),
        ("array", [], "an array without a type needs at least one element"),
        ("array", [I32, F32], r"no common type \(i32, f32\)"),
        (t.Array(F32, None), [F32], "values of type array<f32> cannot be constructed"),
        (t.Atomic(I32), [], "values of type atomic<i32> cannot be constructed"),
        (vec(3, BOOL), [AI, AI, BOOL], "no overload of 'vec3<bool>'"),
    ],
    ids=str,
)
def test_what_cannot_be_constructed_is_told(target: t.Type | str, args: list, message: str) -> None:
    with pytest.raises(WgslError, match=message):
        resolve_constructor(target, args, None)


def test_the_error_points_at_the_only_argument_to_blame() -> None:
    source = Source("clamp(x, true, y)")
    spans = [Span(source, 6, 7), Span(source, 9, 13), Span(source, 15, 16)]
    with pytest.raises(WgslError) as error:
        resolve(row("clamp"), (), [F32, BOOL, F32], Span(source, 0, 17), spans)
    told = error.value.diagnostics[0]
    assert told.span == spans[1]
    assert [note.message for note in told.notes] == ["candidate: clamp(T, T, T) -> T; T: number | vecN<number>"]


@pytest.mark.parametrize(("count", "more"), [(5, []), (6, []), (7, ["and 1 more"]), (8, ["and 2 more"])])
def test_a_message_shows_six_candidates_and_counts_the_others(count: int, more: list[str]) -> None:
    notes = [note.message for note in _candidates("f", BUILTINS["dot"].overloads[:1] * count)]
    assert len(notes) == min(count, 6) + len(more)
    assert notes[6:] == more

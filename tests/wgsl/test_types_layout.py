"""Sizes, alignments and offsets against the spec's tables and examples, and against NumPy's own aligned layout."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bankshot
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.enumerants import TEXEL_FORMATS, TIER1_FORMATS
from bankshot.sim.wgsl.layout_rules import layout_problem

# Spec, "Alignment and Size": type -> (AlignOf, SizeOf), transcribed.
SPEC = {
    t.BOOL: (4, 4),
    t.I32: (4, 4),
    t.U32: (4, 4),
    t.F32: (4, 4),
    t.F16: (2, 2),
    t.Atomic(t.U32): (4, 4),
    t.Vec(2, t.F32): (8, 8),
    t.Vec(2, t.F16): (4, 4),
    t.Vec(3, t.BOOL): (16, 12),
    t.Vec(3, t.F16): (8, 6),
    t.Vec(4, t.I32): (16, 16),
    t.Vec(4, t.F16): (8, 8),
    t.Mat(2, 2, t.F32): (8, 16),
    t.Mat(2, 2, t.F16): (4, 8),
    t.Mat(3, 2, t.F32): (8, 24),
    t.Mat(3, 2, t.F16): (4, 12),
    t.Mat(4, 2, t.F32): (8, 32),
    t.Mat(4, 2, t.F16): (4, 16),
    t.Mat(2, 3, t.F32): (16, 32),
    t.Mat(2, 3, t.F16): (8, 16),
    t.Mat(3, 3, t.F32): (16, 48),
    t.Mat(3, 3, t.F16): (8, 24),
    t.Mat(4, 3, t.F32): (16, 64),
    t.Mat(4, 3, t.F16): (8, 32),
    t.Mat(2, 4, t.F32): (16, 32),
    t.Mat(2, 4, t.F16): (8, 16),
    t.Mat(3, 4, t.F32): (16, 48),
    t.Mat(3, 4, t.F16): (8, 24),
    t.Mat(4, 4, t.F32): (16, 64),
    t.Mat(4, 4, t.F16): (8, 32),
}


def struct(name: str, *members: tuple) -> t.Struct:
    """`struct("S", ("a", t.F32), ("b", t.F32, {"size": 16}))`"""
    return t.layout(name, [(m[0], m[1], m[2] if len(m) > 2 else {}, None) for m in members])


@pytest.mark.parametrize("type_", SPEC, ids=str)
def test_alignment_and_size_are_the_specs(type_: t.Type) -> None:
    assert (t.align_of(type_), t.size_of(type_)) == SPEC[type_]


def test_implicit_layout_example_of_the_spec() -> None:
    a = struct("A", ("u", t.F32), ("v", t.F32), ("w", t.Vec(2, t.F32)), ("x", t.F32))
    vec3 = t.Vec(3, t.F32)
    b = struct(
        "B",
        *[("a", t.Vec(2, t.F32)), ("b", vec3), ("c", t.F32), ("d", t.F32), ("e", a), ("f", vec3)],
        *[("g", t.Array(a, 3)), ("h", t.I32)],
    )
    assert (a.align, a.size, [m.offset for m in a.members]) == (8, 24, [0, 4, 8, 16])
    assert (b.align, b.size, [m.offset for m in b.members]) == (16, 160, [0, 16, 28, 32, 40, 64, 80, 152])


def test_explicit_layout_example_of_the_spec() -> None:
    a = struct("A", ("u", t.F32), ("v", t.F32), ("w", t.Vec(2, t.F32)), ("x", t.F32, {"size": 16}))
    vec3 = t.Vec(3, t.F32)
    b = struct(
        "B",
        *[("a", t.Vec(2, t.F32)), ("b", vec3), ("c", t.F32), ("d", t.F32), ("e", a, {"align": 16}), ("f", vec3)],
        *[("g", t.Array(a, 3)), ("h", t.I32)],
    )
    assert (a.align, a.size) == (8, 32)
    assert (b.align, b.size, [m.offset for m in b.members]) == (16, 208, [0, 16, 28, 32, 48, 80, 96, 192])
    assert layout_problem(b, uniform=True) is None


# ---- against NumPy -------------------------------------------------------------------------------------

LEAVES = st.sampled_from(list(SPEC))


def types(depth: int = 2) -> st.SearchStrategy[t.Type]:
    if depth == 0:
        return LEAVES
    inner = types(depth - 1)
    arrays = st.builds(t.Array, inner, st.integers(1, 4))
    structs = st.lists(inner, min_size=1, max_size=5).map(
        lambda members: struct("S", *((f"m{i}", member) for i, member in enumerate(members)))
    )
    return st.one_of(LEAVES, arrays, structs)


def dtype_of(type_: t.Type) -> tuple[np.dtype, int]:
    """The type as NumPy holds it, and its alignment: padded byte by byte, from the leaves in SPEC."""
    if isinstance(type_, t.Array):
        elem, align = dtype_of(type_.elem)
        return np.dtype((_padded(elem, align), (type_.count,))), align
    if isinstance(type_, t.Struct):
        fields, offsets, end, widest = [], [], 0, 1
        for member in type_.members:
            inner, align = dtype_of(member.type)
            while end % align:
                end += 1
            fields.append(inner)
            offsets.append(end)
            end += inner.itemsize
            widest = max(widest, align)
        while end % widest:
            end += 1
        names = [m.name for m in type_.members]
        return np.dtype({"names": names, "formats": fields, "offsets": offsets, "itemsize": end}), widest
    align, size = SPEC[type_]
    return np.dtype(f"V{size}"), align


def _padded(dtype: np.dtype, align: int) -> np.dtype:
    size = dtype.itemsize
    while size % align:
        size += 1
    return np.dtype({"names": ["x"], "formats": [dtype], "offsets": [0], "itemsize": size})


@given(types())
def test_layout_agrees_with_numpy(type_: t.Type) -> None:
    dtype, align = dtype_of(type_)
    assert (t.size_of(type_), t.align_of(type_)) == (dtype.itemsize, align)
    if isinstance(type_, t.Struct):
        assert [m.offset for m in type_.members] == [dtype.fields[m.name][1] for m in type_.members]
    if isinstance(type_, t.Array):
        assert t.stride_of(type_) == dtype.base.itemsize


@given(types())
def test_flatten_counts_what_components_counts(type_: t.Type) -> None:
    assert len(t.flatten(type_)) == t.components(type_)


# ---- what kind of type it is ---------------------------------------------------------------------------


def test_runtime_arrays_count_one_element_when_bound() -> None:
    tail = struct("S", ("count", t.U32), ("items", t.Array(t.Vec(3, t.F32), None)))
    assert (tail.size, tail.members[1].offset) == (16, 16)
    assert t.min_binding_size(tail) == 32
    assert t.min_binding_size(t.Array(t.F32, None)) == 4
    assert not t.has_fixed_footprint(tail)
    assert t.is_host_shareable(tail)
    assert not t.is_constructible(tail)


@pytest.mark.parametrize(
    ("type_", "constructible", "shareable", "concrete"),
    [
        (t.BOOL, True, False, True),
        (t.F16, True, True, True),
        (t.ABSTRACT_INT, True, False, False),
        (t.Vec(2, t.BOOL), True, False, True),
        (t.Vec(2, t.ABSTRACT_FLOAT), True, False, False),
        (t.Atomic(t.I32), False, True, True),
        (t.Array(t.Atomic(t.I32), 4), False, True, True),
        (t.Array(t.F32, t.OverrideCount("n", None)), False, False, True),
        (t.Array(t.F32, None), False, True, True),
        (t.Sampler(), False, False, True),
        (t.Pointer("function", t.F32, "read_write"), False, False, True),
    ],
    ids=str,
)
def test_kinds_of_types(type_: t.Type, constructible: bool, shareable: bool, concrete: bool) -> None:
    assert t.is_constructible(type_) is constructible
    assert t.is_host_shareable(type_) is shareable
    assert t.is_concrete(type_) is concrete


@pytest.mark.parametrize(
    ("count", "by_creation", "by_pipeline"),
    [(4, True, True), (t.OverrideCount("n", None), False, True), (None, False, False)],
    ids=str,
)
def test_the_footprint_of_an_array_is_that_of_its_elements(
    count: int | t.OverrideCount | None, by_creation: bool, by_pipeline: bool
) -> None:
    for type_ in (t.Array(t.F32, count), t.Array(t.Array(t.F32, count), 4)):
        assert t.has_creation_fixed_footprint(type_) == by_creation
        assert t.has_fixed_footprint(type_) == by_pipeline


@pytest.mark.parametrize(("kinds", "shareable"), [("uu", True), ("ub", False), ("bu", False), ("bb", False)])
def test_a_struct_is_shareable_if_all_its_members_are(kinds: str, shareable: bool) -> None:
    members = [(f"m{n}", {"u": t.U32, "b": t.BOOL}[kind], {}, None) for n, kind in enumerate(kinds)]
    assert t.is_host_shareable(t.layout("S", members)) == shareable


def test_a_struct_is_concrete_if_all_its_members_are() -> None:
    concrete, abstract = t.Member("a", t.F32, 0, 4, 4), t.Member("b", t.ABSTRACT_INT, 4, 4, 4)
    for members in ((concrete, abstract), (abstract, concrete), (abstract,)):
        assert not t.is_concrete(t.Struct("S", members, 8, 4))
    assert t.is_concrete(struct("S", ("a", t.F32), ("b", t.I32)))


# ---- uniform buffers -----------------------------------------------------------------------------------


def test_uniform_structs_keep_their_distance() -> None:
    small = struct("S", ("x", t.F32))
    bad = struct("Invalid", ("a", small), ("b", t.F32))
    good = struct("Valid", ("a", small), ("b", t.F32, {"align": 16}))
    assert "'b'" in (layout_problem(bad, uniform=True) or "")
    assert layout_problem(bad, uniform=False) is None
    assert layout_problem(good, uniform=True) is None


def test_uniform_arrays_need_strides_of_sixteen() -> None:
    wrapped = struct("wrapped", ("elem", t.F32, {"size": 16}))
    assert "stride" in (layout_problem(struct("small", ("a", t.Array(t.F32, 8))), uniform=True) or "")
    assert layout_problem(struct("big", ("a", t.Array(wrapped, 8))), uniform=True) is None


def test_an_align_smaller_than_the_type_is_a_problem_everywhere() -> None:
    shifted = struct("S", ("x", t.F32), ("v", t.Vec(4, t.F32), {"align": 4}))
    assert "'v'" in (layout_problem(shifted, uniform=False) or "")


def test_texel_formats_are_the_forty_of_the_spec() -> None:
    assert len(TEXEL_FORMATS) == 40
    assert len(TIER1_FORMATS) == 23
    for name, channel in TEXEL_FORMATS.items():
        assert channel == (t.U32 if name.endswith("uint") else t.I32 if name.endswith("sint") else t.F32)


PAIR = t.layout("Pair", [("a", t.U32, {}, None), ("b", t.Atomic(t.U32), {}, None), ("c", t.F32, {}, None)])
PLAIN = t.layout("Plain", [("a", t.U32, {}, None), ("b", t.Array(t.F32, 3), {}, None)])


@pytest.mark.parametrize("type_", [t.Atomic(t.I32), t.Array(t.Atomic(t.U32), 2), PAIR, t.Array(PAIR, None)], ids=str)
def test_an_atomic_is_found_in_arrays_and_structs(type_):
    assert t.contains_atomic(type_)


@pytest.mark.parametrize("type_", [t.U32, t.Array(t.U32, 2), PLAIN, t.Array(PLAIN, None)], ids=str)
def test_what_has_no_atomic_contains_none(type_):
    assert not t.contains_atomic(type_)


def test_an_array_whose_length_is_an_override_has_no_size_yet():
    (variable,) = bankshot.check("override n = 4u; var<workgroup> a: array<f32, n>;").globals
    with pytest.raises(bankshot.Crash, match="not known before pipeline creation"):
        t.size_of(variable.type)


@pytest.mark.parametrize("type_", [t.U32, t.ABSTRACT_INT, t.Vec(3, t.F16), t.Array(t.Mat(2, 2, t.F32), 5)], ids=str)
def test_copies_of_a_type_are_equal_to_it(type_: t.Type) -> None:
    assert copy.deepcopy(type_) == pickle.loads(pickle.dumps(type_)) == type_

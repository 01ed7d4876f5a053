"""Trial runs of shaders without a manifest: their inputs, what they show, and the sizes at which a draft runs."""

from dataclasses import replace

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs, trial
from bankshot.oracle.guesses.array_sizes import CONTENTS, Extent, Measured, _packed, array_of, extent, measure
from bankshot.oracle.guesses.invented_inputs import RECIPES, Recipe
from bankshot.oracle.guesses.new_manifest import draft
from bankshot.oracle.guesses.size_uses import size_uses

# ---- what a run shows --------------------------------------------------------------------------------

TWO = """
@group(0) @binding(0) var<storage, read_write> a: array<u32>;
@group(0) @binding(1) var<storage, read_write> b: array<u32>;
@group(0) @binding(2) var<uniform> n: u32;
@compute @workgroup_size(1) fn main() {{ {body} }}
"""


def measured(body, declared="", **dims):
    module = bankshot.check(declared + TWO.format(body=body))
    pipeline = module.pipeline()
    return measure(pipeline, size_uses(pipeline), (1, 1, 1), {"n": 3, **dims}, CONTENTS[2], {})  # zeros


@pytest.mark.parametrize(
    ("body", "changes"),
    [
        ("a[0] = 7u; b[0] = 7u;", True),
        ("a[0] = 7u; b[0] = b[0];", True),
        ("a[0] = a[0]; b[0] = 7u;", True),
        ("a[0] = a[0]; b[0] = b[0];", False),
    ],
)
def test_a_run_that_changes_something(body, changes):
    assert measured(body).changes == changes


@pytest.mark.parametrize(
    ("body", "inside", "ends", "divides"),
    [
        ("a[4] = b[6] + 1u;", True, True, True),
        ("a[n - 4u] = 1u;", False, True, True),
        ("a[0] = 7u / (n - n);", True, True, False),
        ("loop { if n == 9u { break; } } a[0] = 1u;", True, False, True),
    ],
    ids=["clean", "out of bounds", "by zero", "endless"],
)
def test_what_a_run_is_judged_by(body, inside, ends, divides):
    found = measured(body)
    assert (found.inside, found.ends, found.divides) == (inside, ends, divides)
    assert (found.faults == 0) == (inside and ends and divides)


def test_a_run_that_is_far_from_a_hosts():
    def faults(**given):
        return Measured({}, {}, **{"inside": True, "ends": True, "divides": True, "changes": True, **given}).faults

    assert faults() == 0
    order = [faults(), faults(changes=False), faults(divides=False), faults(changes=False, divides=False),
             faults(inside=False), faults(inside=False, divides=False, changes=False), faults(ends=False)]  # fmt: skip
    assert order == sorted(set(order))


def test_how_far_a_run_accesses_each_array():
    declared = "struct S { head: vec4<u32>, tail: array<vec2<f32>> } @group(0) @binding(3) var<storage> s: S;"
    found = measured("a[4] = b[6] + u32(s.tail[10].x);", declared)
    assert {variable.name: count for variable, count in found.elements.items()} == {"a": 5, "b": 7, "s": 11}
    types = {variable.name: type_ for variable, type_ in bankshot.check(
        declared + TWO.format(body="_ = &a; _ = &s; _ = n;")).pipeline().store_types.items()}  # fmt: skip
    assert array_of(types["n"]) is None
    assert [(str(array), offset) for array, offset in (array_of(types["a"]), array_of(types["s"]))] == [
        ("array<u32>", 0), ("array<vec2<f32>>", 16),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "counts"),
    [
        ("a[0] = 1u;", {"a": 1, "s": 0}),  # of s, nothing is accessed
        ("a[9] = s.head.w;", {"a": 10, "s": 0}),
        ("a[0] = u32(s.tail[0].y);", {"a": 1, "s": 1}),
    ],
)
def test_an_array_of_which_nothing_is_accessed_has_no_elements(body, counts):
    declared = "struct S { head: vec4<u32>, tail: array<vec2<f32>> } @group(0) @binding(3) var<storage> s: S;"
    found = measured(f"{body} _ = &s; _ = &b;", declared)
    assert {v.name: count for v, count in found.elements.items() if v.name != "b"} == counts


def test_the_bytes_of_numbers():
    declared = "struct P { n: u32, v: vec3<f32>, a: array<vec3<i32>, 2>, h: vec2<f16>, f: f32 }"
    declared = f"enable f16; {declared} @group(0) @binding(0) var<uniform> p: P;"
    module = bankshot.check(f"{declared} @compute @workgroup_size(1) fn main() {{ _ = p.n; }}")
    (type_,) = module.pipeline().store_types.values()
    made = _packed(type_, [7, 1, 2, 3, -1, -2, -3, 4, 5, 6, 0.5, 1.5, 0.25])
    expected = np.zeros(80, np.uint8)
    for offset, dtype, values in (
        (0, np.uint32, [7]), (16, np.float32, [1, 2, 3]), (32, np.int32, [-1, -2, -3]), (48, np.int32, [4, 5, 6]),
        (64, np.float16, [0.5, 1.5]), (68, np.float32, [0.25]),
    ):  # fmt: skip
        data = np.array(values, dtype).view(np.uint8)
        expected[offset : offset + len(data)] = data
    assert made.tolist() == expected.tolist()


# ---- sizes at which a draft runs ---------------------------------------------------------------------

SHIFT = """
@group(0) @binding(0) var<uniform> n: u32;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1)
fn main() { for (var k = 0u; k < n; k++) { y[k + n % 2u] = 1u; } }
"""


def drafted(dispatch, edges):
    module = bankshot.check(SHIFT)
    made = draft(module, "main")
    (y,) = made.extents
    (name,) = made.uses.names.values()
    return name, replace(
        made, dims={name: 8}, dispatch=[dispatch.replace("n", name), 1, 1], extents={y: Extent((name,), True)},
        edges={name: edges}, guarded={}, questions=["first"],
    )  # fmt: skip


def test_sizes_at_which_accesses_are_out_of_bounds_are_left_out_with_a_question():
    name, made = drafted("n", [2, 3, 4, 5])
    found = trial.with_edges_that_run(made)
    assert found.edges == {name: [2, 4]}
    asked = f"may {name} be 3 or 5? the kernel then accesses elements out of bounds"
    assert found.questions == ["first", asked]
    assert made.questions == ["first"]
    name, made = drafted("n", [2, 4])
    assert trial.with_edges_that_run(made).questions == ["first"]


def test_a_size_that_ids_are_compared_with_stays():
    name, made = drafted("n", [2, 3])
    found = trial.with_edges_that_run(replace(made, guarded={name: 1}))
    assert (found.edges, found.questions) == ({name: [2, 3]}, ["first"])


@pytest.mark.parametrize(
    ("dispatch", "edges", "good"),
    [
        ("n", [65_534, 65_535, 65_536], [65_534, 65_535]),  # WebGPU dispatches at most 65,535 workgroups along an axis
        ("n - 4", [4, 6], [6]),  # and Bankshot at least one
    ],
)
def test_a_grid_that_cannot_be_dispatched_is_left_out(dispatch, edges, good, monkeypatch):
    ran = []
    name, made = drafted(dispatch, edges)
    clean = Measured({}, dict.fromkeys(made.extents, 1), True, True, True, True)
    monkeypatch.setattr(trial, "measure", lambda *given: ran.append(given) or clean)
    assert trial.with_edges_that_run(made).edges == {name: good}
    assert len(ran) == len(good)


@pytest.mark.parametrize(
    ("fault", "counts", "good"),
    [
        ({}, (30, 8), True),  # y has 5 * 6 elements, z has 8
        ({}, (31, 8), False),
        ({}, (30, 9), False),
        ({"ends": False}, (30, 8), False),
        ({"inside": False}, (30, 8), False),
        ({"divides": False, "changes": False}, (30, 8), True),
    ],
)
def test_a_size_is_good_if_every_array_holds_what_is_accessed(monkeypatch, fault, counts, good):
    name, made = drafted("n", [6])
    (y,) = made.extents
    z = replace(y, name="z")
    made = replace(made, extents={y: Extent(("5", name), True), z: Extent(("8",), True)})
    facts = {"inside": True, "ends": True, "divides": True, "changes": True} | fault
    run = Measured({}, dict(zip((y, z), counts, strict=True)), **facts)
    monkeypatch.setattr(trial, "measure", lambda *given: run)
    assert trial.with_edges_that_run(made).edges == {name: [6] if good else []}


# ---- inputs ------------------------------------------------------------------------------------------


def stored(declared, body):
    text = f"@group(0) @binding(0) var{declared}; @compute @workgroup_size(1) fn main() {{ {body} }}"
    (type_,) = bankshot.check(text).pipeline().store_types.values()
    return type_


def texel_type(declared):
    return stored(f" t: {declared}", "_ = textureDimensions(t);")


@pytest.mark.parametrize(
    ("declared", "whole", "least", "most"),
    [
        ("texture_storage_2d<rgba8uint, write>", 4, 0, 3),
        ("texture_storage_2d<rgba8uint, write>", 1 << 32, 0, 255),
        ("texture_storage_2d<rgba8sint, write>", 16, 0, 15),
        ("texture_storage_2d<rgba8sint, write>", 1 << 32, 0, 127),
        ("texture_storage_2d<rgba16uint, write>", 1 << 32, 0, 65_535),
        ("texture_storage_2d<rgba8unorm, write>", 4, 0, 255),
        ("texture_storage_2d<rgba8snorm, write>", 4, -127, 127),
    ],
)
def test_texels_are_below_the_limit_of_the_recipe(declared, whole, least, most):
    """All values of few occur among 64 x 64 x 4; of many, some near each end."""
    made = invented_inputs.texels("t", texel_type(declared), Recipe("", (1,), whole, 1)).astype(np.int64)
    assert made.shape == (64, 64, 4)
    near = (most - least) // 64
    assert least <= made.min() <= least + near
    assert most - near <= made.max() <= most


@pytest.mark.parametrize(
    ("recipe", "most"), [*zip(invented_inputs.RECIPES, [2**32 - 1, 2**32 - 1, 15, 3, 1], strict=True)]
)
def test_integers_of_a_recipe(recipe, most):
    text = "@group(0) @binding(0) var<storage> x: array<u32>; @compute @workgroup_size(1) fn main() { _ = x[0]; }"
    x = invented_inputs.bindings(bankshot.check(text).pipeline(), recipe)["x"].view(np.uint32)
    assert most - most // 16 <= x.max() <= most


def test_float_texels_are_between_0_and_1():
    made = invented_inputs.texels("t", texel_type("texture_storage_2d<rgba32float, write>"), RECIPES[0])
    assert 0 <= made.min() < 0.01
    assert 0.99 < made.max() < 1


def test_a_large_type_is_refused():
    type_ = stored("<storage, read_write> y: array<u32, 4194305>", "y[0] = 1;")
    with pytest.raises(UsageError, match="takes 16,777,220 bytes"):
        invented_inputs.layout(type_, RECIPES[0])
    most = stored("<storage, read_write> y: array<u32, 4194304>", "y[0] = 1;")
    assert len(invented_inputs.layout(most, RECIPES[0])) == 1 << 23


def test_floats_in_uniforms_are_not_negative():
    codes = np.full(2000, invented_inputs.SINGLE, np.uint8)
    low = {space: invented_inputs.contents("x", codes, RECIPES[0], space).view(np.float32).min()
           for space in ("storage", "uniform")}  # fmt: skip
    assert -1 <= low["storage"] < -0.9
    assert 0 <= low["uniform"] < 0.1


# ---- the product of sizes that an array holds --------------------------------------------------------


def held(elements, *sizes, names=("n",), steps=None, strides=None):
    """What an array holds of which a kernel accesses `elements(*sizes)`."""
    runs = [
        Measured(dict(zip(names, dims, strict=True)), {"y": elements(*dims)}, True, True, True, True) for dims in sizes
    ]
    return extent(runs, "y", steps or {}, strides or {})


SIZES = [(1000,), (1001,), (777,), (2305,)]


@pytest.mark.parametrize("quotient", [2, 3, 4, 8, 16, 32, 64, 128, 256])
def test_an_array_may_hold_a_quotient_rounded_up(quotient):
    assert held(lambda n: -(-n // quotient), *SIZES) == Extent((f"ceil(n / {quotient})",), True)


@pytest.mark.parametrize("factor", [2, 3, 7, 64])
def test_an_array_may_hold_several_elements_for_each(factor):
    assert held(lambda n: n * factor, *SIZES) == Extent(("n", str(factor)), True)


@pytest.mark.parametrize(
    ("elements", "expected"),
    [
        (lambda n: 0, Extent(("1",), True)),  # not accessed
        (lambda n: 17, Extent(("17",), True)),
        (lambda n: 65536, Extent(("65536",), False)),  # as many as it has
        (lambda n: n, Extent(("n",), True)),
        (lambda n: n + 1, Extent(("n",), False, 1)),
        (lambda n: n + 16, Extent(("n",), False, 16)),
        (lambda n: n + 17, Extent(("n",), False, None)),
        (lambda n: n - n % 2, Extent(("n",), False)),  # as many as the least, in one run
        (lambda n: n - 5, Extent(("n",), False)),  # the least that suffices
        (lambda n: n + n % 7 + 1, Extent(("n",), False, None)),
    ],
)
def test_what_an_array_holds_of_one_size(elements, expected):
    assert held(elements, *SIZES) == expected


@pytest.mark.parametrize(("more", "beyond"), [(1, 1), (2, 2), (3, None)])
def test_a_few_elements_beyond_are_less_than_half_of_the_least_size(more, beyond):
    assert held(lambda n: n + more, (4,), (5,), (7,)) == Extent(("n",), False, beyond)


def test_an_array_of_which_only_some_runs_access_elements_depends_on_a_size():
    assert held(lambda n: max(0, n - 1000), *SIZES) == Extent(("n",), False)


def test_only_sizes_on_which_accesses_depend_are_factors():
    """No product holds them all, and accesses grow with m alone."""
    sizes, names = [(8, 12), (9, 12), (8, 13)], ("m", "n")
    assert held(lambda m, n: 1000 * m + 1, *sizes, names=names) == Extent(("m",), False, None)


def test_what_an_array_holds_of_two_sizes():
    sizes, names = [(8, 12), (9, 12), (8, 13)], ("m", "n")
    by_row = {"m": 2, "n": 1}
    assert held(lambda m, n: m * n, *sizes, names=names, strides=by_row) == Extent(("n", "m"), True)
    assert held(lambda m, n: m * n, *sizes, names=names, strides={"m": 1, "n": 2}) == Extent(("m", "n"), True)
    assert held(lambda m, n: m, *sizes, names=names) == Extent(("m",), True)
    rounded = held(lambda m, n: m * -(-n // 4), *sizes, names=names, steps={"n": 4}, strides=by_row)
    assert set(rounded.factors) == {"m", "ceil(n / 4)"}
    assert rounded.exact

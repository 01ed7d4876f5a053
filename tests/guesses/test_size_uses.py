"""What a shader does with the numbers that it is passed: their names, bounds of ids, strides, and which it reads."""

from fractions import Fraction

import pytest

import bankshot
from bankshot.oracle.guesses.index_forms import Atom
from bankshot.oracle.guesses.new_manifest import _dispatch
from bankshot.oracle.guesses.size_uses import SizeUses, _unused, member_name, numbers_of, size_uses

WGSL = """\
struct Inner {{ depth: u32, scale: f32 }}
struct P {{ n: u32, m: i32, f: f32, v: vec3<u32>, a: array<vec4<u32>, 2>, inner: Inner }}
@group(0) @binding(0) var<uniform> p: P;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> z: array<u32>;
@group(0) @binding(3) var<uniform> count: u32;
{declared}
@compute @workgroup_size({lanes})
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(local_invocation_index) lane: u32) {{
    _ = &y; _ = &z;
    {body}
}}
"""


def pipeline_of(body, lanes="8, 4, 2", declared=""):
    text = WGSL.format(body=body, lanes=lanes, declared=declared)
    return bankshot.check(text, uniformity="off").pipeline(entry="main")


def used(body, **given):
    pipeline = pipeline_of(body, **given)
    return pipeline, size_uses(pipeline)


NAMES = {
    # in the order of declaration, however they are used
    "if id.x < p.n { y[0] = 1u; }": ["n"],
    "if p.n > id.x { y[0] = 1u; }": ["n"],
    "if id.x == p.n { y[0] = 1u; }": ["n"],
    "for (var k = 0u; k < count; k++) { y[k] = 1u; }": ["count"],
    "if id.y < count && id.x < p.n { y[0] = 1u; }": ["n", "count"],
    "if id.x < u32(p.m) { y[0] = 1u; }": ["m"],
    "y[id.x * p.v.y] = p.n;": ["v_y"],
    "if id.x < p.a[1].z { y[0] = 1u; }": ["a_at1_z"],
    "if id.x < p.inner.depth { y[0] = 1u; }": ["inner_depth"],
    "let rows = p.v.x; if id.x < rows { y[0] = 1u; }": ["rows"],
    "let rows = p.n; if id.x < count { y[rows] = 1u; }": ["count"],
    "y[id.x / p.n] = 1u;": ["n"],
    "y[id.x % count] = 1u;": ["count"],
    "if id.x < arrayLength(&y) { y[id.x] = 1u; }": ["N"],
    "if id.x < min(arrayLength(&z), 4u) + arrayLength(&y) { y[id.x] = 1u; }": ["N_y", "N_z"],
    # no sizes: sums, equal to a number, floats
    "y[id.x + p.n] = 1u;": [],
    "if p.n == 3u { y[0] = 1u; }": [],
    "if p.n < 3u { y[0] = 1u; }": [],
    "if f32(id.x) < p.f { y[0] = 1u; }": [],
    "y[id.x] = p.n;": [],
    # names that arithmetic on dims has already
    "let min = p.n; if id.x < min { y[0] = 1u; }": ["min_"],
    "let golden = p.n; if id.x < golden { y[0] = 1u; }": ["golden_"],
    "let k = p.n; { let k = count; if id.x < k { y[0] = 1u; } } if id.y < k { y[0] = 1u; }": ["k", "k2"],
}


@pytest.mark.parametrize("body", NAMES)
def test_sizes_are_named_in_the_order_of_declaration(body):
    _, uses = used(body)
    assert [*uses.names.values()] == NAMES[body]


def test_names_of_dims_are_identifiers_that_are_free():
    assert [_unused(name, taken) for name, taken in (
        ("n", []), ("n", ["n"]), ("n", ["n", "n2"]), ("cost", []), ("ceil", ["ceil_"]), ("größe", []), ("a.b", []),
    )] == ["n", "n2", "n3", "cost_", "ceil_2", "größe", "a_b"]  # fmt: skip


# The dispatch of a kernel with workgroups of 8 x 4 x 2, and how many elements of each dim a workgroup covers.
DISPATCHES = {
    "if id.x < p.n { y[0] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "if id.y < p.n { y[0] = 1u; }": ([1, "ceil(n / 4)", 1], {"n": 4}),
    "if id.z < p.n { y[0] = 1u; }": ([1, 1, "ceil(n / 2)"], {"n": 2}),
    "if group.y < p.n { y[0] = 1u; }": ([1, "n", 1], {"n": 1}),
    "if group.x * 64u + lane < p.n { y[0] = 1u; }": (["ceil(n / 64)", 1, 1], {"n": 64}),
    "if group.x * 2u + id.x < p.n { y[0] = 1u; }": (["ceil(n / 10)", 1, 1], {"n": 10}),
    "if id.x * 3u < p.n { y[0] = 1u; }": (["ceil(n / 24)", 1, 1], {"n": 24}),
    "if id.x < p.n * 2u { y[0] = 1u; }": (["ceil(n / 4)", 1, 1], {"n": 4}),
    "if id.x < p.n * 3u { y[0] = 1u; }": (["ceil(3 * n / 8)", 1, 1], {"n": 3}),
    "if id.x < p.n * 16u { y[0] = 1u; }": (["2 * n", 1, 1], {"n": 1}),
    "if id.x < p.n - 2u { y[0] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "if id.x < p.n * count { y[0] = 1u; }": (["ceil(count * n / 8)", 1, 1], {}),
    "if id.x < p.n + count { y[0] = 1u; }": (["ceil(n / 8 + count / 8)", 1, 1], {}),
    "if id.x < 17u { y[0] = 1u; }": ([3, 1, 1], {}),
    "if id.x < 16u { y[0] = 1u; }": ([2, 1, 1], {}),
    "if id.x < 2u { y[0] = 1u; }": ([1, 1, 1], {}),
    "if id.x < 1u { y[0] = 1u; }": (["groups_x", 1, 1], {}),  # the first invocation says nothing of the others
    "if id.x < 16u && id.x < p.n { y[0] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "if id.x < p.n && id.x < 16u { y[0] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "if id.x < p.n && id.x < count { y[0] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "if id.x == p.n { y[0] = 1u; }": (["groups_x", 1, 1], {}),
    "if id.x != p.n { y[0] = 1u; }": (["groups_x", 1, 1], {}),
    "if id.x < p.n + lane { y[0] = 1u; }": (["groups_x", 1, 1], {}),
    "if lane < p.n { y[0] = 1u; }": ([1, 1, 1], {}),
    "y[id.x] = 1u;": (["groups_x", 1, 1], {}),
    "y[id.z] = 1u;": ([1, 1, "groups_z"], {}),
    "y[group.y + id.x] = 1u;": (["groups_x", "groups_y", 1], {}),
    # rows of a flat index: the comparison of x bounds both
    "let i = id.y * 512u + id.x; if i < p.n { y[i] = 1u; }": (["ceil(n / 8)", 1, 1], {"n": 8}),
    "let i = group.z * 512u + id.y; if i < p.n { y[i] = 1u; }": ([1, "ceil(n / 4)", 1], {"n": 4}),
    "let i = id.y * 9u + id.x; if i < p.n && id.y < count { y[i] = 1u; }": (
        ["ceil(n / 8)", "ceil(count / 4)", 1], {"n": 8, "count": 4}
    ),
    # ids with a minus are no bound
    "if 20u - id.x < p.n { y[id.y] = 1u; }": (["groups_x", "groups_y", 1], {}),
    "if 20u - id.x < p.n && id.x < count { y[0] = 1u; }": (["ceil(count / 8)", 1, 1], {"count": 8}),
    "if id.y - id.x < p.n { y[0] = 1u; }": ([1, "ceil(n / 4)", 1], {"n": 4}),
}  # fmt: skip


@pytest.mark.parametrize("body", DISPATCHES)
def test_the_dispatch_that_comparisons_of_ids_need(body):
    assert _dispatch(*used(body)) == DISPATCHES[body]


def test_workgroups_of_one_invocation_divide_by_nothing():
    assert _dispatch(*used("if id.x < p.n { y[0] = 1u; }", lanes="1")) == (["n", 1, 1], {"n": 1})


def test_what_a_kernel_may_write_is_no_size():
    """Neither is a number of a variable whose place is that of a size in another."""
    declared = "@group(0) @binding(9) var<storage, read_write> limit: u32;"
    body = "if id.x < limit { y[0] = 1u; } if id.x < p.n + count { y[1] = 1u; }"
    assert _dispatch(*used(body, declared=declared)) == (["ceil(n / 8 + count / 8)", 1, 1], {})


# ---- forms as text -----------------------------------------------------------------------------------

N, M, OTHER = Atom("size", "n"), Atom("size", "m"), Atom("size", "unnamed")
USES = SizeUses(names={"n": "N", "m": "M"})


def form(*terms):
    return {atoms: Fraction(factor) for factor, *atoms in terms for atoms in [tuple(atoms)]}


@pytest.mark.parametrize(
    ("terms", "divisor", "text"),
    [
        ([(1, N)], 1, "N"),
        ([(3, N)], 1, "3 * N"),
        ([(3, N)], 3, "N"),
        ([(1, N)], 4, "ceil(N / 4)"),
        ([(6, N)], 4, "ceil(3 * N / 2)"),
        ([(1, N, M)], 1, "N * M"),
        ([(1, N), (2, M)], 1, "N + 2 * M"),
        ([(1, N), (4, M)], 4, "ceil(N / 4 + M)"),
        ([(1, N), (-1, M)], 1, "N"),  # only what adds to it
        ([(1, N), (5,)], 1, "N"),
        ([(5,)], 1, None),
        ([], 1, None),
        ([(1, N), (1, OTHER)], 1, None),
        ([(1, Atom("global", 0))], 1, None),
    ],
)
def test_a_form_as_arithmetic_on_dims(terms, divisor, text):
    assert USES.text(form(*terms), Fraction(divisor)) == text


def test_the_dims_of_a_form_are_in_the_order_of_declaration():
    assert USES.dims_of(form((2, M), (1, N))) == ["N", "M"]
    assert USES.dims_of(form((2, M), (1,), (1, Atom("global", "n")), (1, OTHER))) == ["M"]


# ---- strides, and numbers that are read ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "strides"),
    [
        ("y[id.y * p.n + id.x] = 1u;", {"y": {"n": 1}}),
        ("y[id.z * p.n * count + id.y * p.n + id.x] = 1u;", {"y": {"n": 2, "count": 1}}),
        ("y[id.y * p.n] = z[id.y * count];", {"y": {"n": 1}, "z": {"count": 1}}),
        ("y[id.y * p.n] = y[id.x * p.n];", {"y": {"n": 2}}),
        ("y[p.n] = 1u; if id.x < p.n { }", {}),
        ("y[id.x] = 1u;", {}),
    ],
)
def test_how_many_terms_of_indices_a_size_multiplies(body, strides):
    _, uses = used(body)
    assert {variable.name: counts for variable, counts in uses.strides.items()} == strides


@pytest.mark.parametrize(
    ("body", "read"),
    [
        ("y[0] = 1u;", []),
        ("y[0] = p.n;", ["n"]),
        ("y[0] = p.v.z + count;", ["v_z", ""]),
        ("let v = p.v; y[0] = 1u;", ["v_x", "v_y", "v_z"]),
        ("y[0] = dot(p.v, vec3u(1u)) + p.a[1].x;", ["v_x", "v_y", "v_z", "a_at1_x"]),
        ("y[0] = p.inner.depth;", ["inner_depth"]),
        ("let i = p.inner; y[0] = 1u;", ["inner_depth", "inner_scale"]),
    ],
)
def test_numbers_that_a_shader_reads(body, read):
    pipeline, uses = used(body)
    named = [member_name(pipeline.store_types[variable], path) for (variable, path), _ in numbers_of(pipeline)
             if (variable, path) not in uses.unread]  # fmt: skip
    assert named == read


@pytest.mark.parametrize(
    ("declared", "numbers"),
    [
        ("var<uniform> b: array<vec4<u32>, 10>;", 40),
        ("var<uniform> b: array<vec4<u32>, 11>;", 0),  # more is data
        ("var<storage> b: Inner;", 2),
        ("var<storage> b: u32;", 0),
        ("var<storage> b: array<u32, 4>;", 0),
        ("var<storage, read_write> b: Inner;", 0),
        ("var<storage> b: array<Inner>;", 0),
        ("var b: texture_2d<f32>;", 0),
        ("var<uniform> b: mat2x2<f32>;", 0),
    ],
)
def test_numbers_are_those_of_small_bindings_that_a_shader_only_reads(declared, numbers):
    use = "_ = textureDimensions(b);" if "texture" in declared else "_ = &b;"
    pipeline = pipeline_of(f"y[0] = 1u; {use}", declared=f"@group(0) @binding(9) {declared}")
    assert sum(variable.name == "b" for (variable, _), _ in numbers_of(pipeline)) == numbers


def test_the_lengths_that_a_shader_reads():
    _, uses = used("if id.x < arrayLength(&z) { y[id.x] = 1u; }")
    assert {variable.name for variable in uses.lengths} == {"z"}
    assert used("y[0] = 1u;")[1].lengths == set()

"""Which expressions a compiler knows before the run, so that no invocation computes them."""

import pytest

import bankshot
from bankshot.oracle.gpu_account.regions import has_effects, is_constant
from bankshot.sim.wgsl import typed

TEXT = """
enable subgroups;
override n = 4u;
struct Pair {{ a: u32, b: f32 }}
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> total: atomic<u32>;
@compute @workgroup_size(32) fn main() {{
    var v = 1u;
    let x = {value};
    _ = y[0] + v + atomicLoad(&total);
}}
"""


def value_of(text):
    (entry,) = bankshot.check(TEXT.format(value=text)).entry_points
    statements = [s for s in typed.statements(entry.body) if isinstance(s, typed.LetDecl)]
    return statements[0].init


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("1u + 2u", True),
        ("n", True),
        ("n * 2u + 1u", True),
        ("vec2(n, 3u).y", True),
        ("vec2(n, 3u).yx", True),
        ("array(n, 3u)[1]", True),
        ("Pair(n, 2.0).a", True),
        ("f32(n)", True),
        ("max(n, 3u)", True),
        ("n > 3u && n < 9u", True),
        ("v", False),
        ("y[n]", False),
        ("max(n, v)", False),
        ("n > 3u && v < 9u", False),
        ("vec2(n, v)", False),
        ("arrayLength(&y)", False),
        ("atomicAdd(&total, 1u)", False),
        # A constant in each lane, but the lanes decide the result.
        ("subgroupAdd(1u)", False),
        ("subgroupAdd(n)", False),
        ("subgroupBallot(true)", False),
        ("quadSwapX(n)", False),
    ],
)
def test_what_is_known_before_the_run(text, constant):
    assert is_constant(value_of(text)) == constant


@pytest.mark.parametrize(
    ("text", "effects"),
    [("max(n, v)", False), ("subgroupAdd(1u)", True), ("atomicLoad(&total)", True), ("arrayLength(&y)", True)],
)
def test_builtins_that_do_more_than_compute(text, effects):
    assert has_effects(value_of(text)) == effects

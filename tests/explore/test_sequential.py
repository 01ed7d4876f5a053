"""Sequentially consistent search: outcomes worked out by hand, and those of a run where there is only one."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.deadlocks import dead_ends
from bankshot.sim.explore.search import search
from bankshot.sim.run.prepared import dispatch_of
from tests.explore.litmus import outcomes
from tests.programs_made import random_programs

PLACES = ("across", "within", "workgroup")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=1; y=1 | r=y; s=x", {(0, 0, 1, 1), (0, 1, 1, 1), (1, 1, 1, 1)}),
        ("x=1; r=y | y=1; s=x", {(0, 1, 1, 1), (1, 0, 1, 1), (1, 1, 1, 1)}),
        ("r=y; x=1 | s=x; y=1", {(0, 0, 1, 1), (0, 1, 1, 1), (1, 0, 1, 1)}),
        ("x=1; y=2 | y=1; x=2", {(1, 2), (2, 1), (2, 2)}),
        ("x=1 | r=x; s=x", {(0, 0, 1), (0, 1, 1), (1, 1, 1)}),
        ("r=x+1 | s=x+1", {(0, 1, 2), (1, 0, 2)}),
        ("r=x?0:1 | s=x?0:2", {(0, 1, 1), (2, 0, 2)}),
    ],
)
def test_outcomes_by_hand(text, expected, place):
    assert outcomes(text, place) == expected


KERNELS = [
    # the text of the body, and the size of a workgroup
    ("y[i] = x[i] * 3u + i;", 4),
    ("var n = 0u; for (var k = 0u; k <= i; k++) { if k == 2u { continue; } n += x[k]; } y[i] = n;", 4),
    ("t[i] = x[i]; workgroupBarrier(); y[i] = t[3u - i];", 4),
    ("t[i] = x[i]; workgroupBarrier(); let v = t[(i + 1u) % 4u]; workgroupBarrier(); t[i] = v; y[i] = t[i] + v;", 4),
    ("y[i] = subgroupAdd(x[i]) + subgroupExclusiveAdd(i) * 100u + subgroupShuffleXor(x[i], 1u) * 1000u;", 4),
    ("y[i] = subgroupBallot(x[i] > 6u).x + select(0u, 50u, subgroupElect()) + subgroupBroadcast(x[i], 2u);", 4),
    ("let a = array(7u, 5u, 3u, 1u); var b = a; b[i] = 9u; y[i] = b[(i + 1u) % 4u] + b[i];", 4),
    ("y[i] = u32(sqrt(f32(x[i])) * 10.0); y[i + 100u] = 1u;", 1),
    ("switch x[i] % 3u { case 0u: { y[i] = 1u; } case 1u: { y[i] = 2u; } default: { y[i] = arrayLength(&y); } }", 4),
    ("atomicMax(&c[0], x[i]); atomicMin(&c[1], x[i]); atomicOr(&c[2], 1u << i); atomicXor(&c[3], x[i]);", 4),
    ("loop { y[i] += 1u; if y[i] > x[i] { break; } continuing { y[i] += i; break if y[i] > 20u; } }", 4),
    ("t[i] = x[i]; let v = workgroupUniformLoad(&t[2]); y[i] = v;", 4),
    ("y[i] = u32(dot(vec3f(f32(x[i])), vec3f(1.0, 2.0, 3.0))); v[i] = vec4u(i); v[i].z = 7u;", 4),
]


@pytest.mark.parametrize(("body", "size"), KERNELS)
def test_a_kernel_without_races_ends_as_in_a_run(body, size):
    text = f"""
    enable subgroups;
    @group(0) @binding(0) var<storage, read> x: array<u32, 4>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;
    @group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>, 4>;
    @group(0) @binding(3) var<storage, read_write> v: array<vec4u, 4>;
    var<workgroup> t: array<u32, 4>;
    @compute @workgroup_size({size}) fn main(@builtin(local_invocation_index) i: u32) {{
        _ = &x; _ = &y; _ = &c; _ = &v;
        {body}
    }}"""
    bindings = {
        "x": np.array([5, 9, 6, 7], np.uint32),
        "y": np.arange(4, dtype=np.uint32),
        "c": np.full(4, 8, np.uint32),
        "v": np.zeros(16, np.uint32),
    }
    found = search(dispatch_of(text, grid=1, bindings=bindings))
    expected = bankshot.simulate(text, grid=1, bindings=bindings, probes="none").outputs
    assert found.complete
    assert not dead_ends(found)
    assert {found.contents(end) for end in found.ends} == {tuple(expected[name].tobytes() for name in "ycv")}


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_random_programs_end_as_their_interpreter_says(first):
    for seed in range(first, first + 20):
        program = random_programs.Maker(seed).program()
        given, same = [seed % 5, 7], seed % 3
        bindings = {
            "out": np.zeros(2 * random_programs.LOGGED, np.uint32),
            "given": np.array(given, np.uint32),
            "same": np.uint32(same),
        }
        found = search(dispatch_of(random_programs.render(program, 2), grid=1, bindings=bindings))
        expected = np.zeros((2, random_programs.LOGGED), np.uint32)
        for i in range(2):
            values = random_programs.interpret(program, given[i], same, i)
            expected[i, : len(values)] = values
        assert [found.contents(end) for end in found.ends] == [(expected.tobytes(),)], seed


FEATURES = {
    "a large array": """
        var a: array<u32, 700>;
        for (var k = 0u; k < 9u; k++) { a[(k * 97u + i) % 700u] = k + x[i]; }
        var b = a; b[i] = 5u;
        y[i] = a[97u + i] + b[i] * 100u + a[i];""",
    "a large constant array": """
        var n = 0u; for (var k = 0u; k < 4u; k++) { n += LARGE[(x[i] + k * 150u) % 600u]; } y[i] = n;""",
    "half floats": "h[i] = f16(x[i]) / 3.0h; y[i] = bitcast<u32>(vec2h(h[i], h[i] * h[i]));",
    "vectors of half floats": "let a = vec3h(f16(x[i])) / vec3h(3, 7, 9); g[i] = vec2h(a.x + a.y, a.z); y[i] = 1u;",
    "pointers": "var n = 3u; bump(&n, x[i]); bump_all(&s, i); y[i] = n; workgroupBarrier(); y[i] += s[i];",
    "a storage texture": "textureStore(t, vec2u(i, 0u), vec4f(f32(x[i]) / 9.0)); y[i] = textureDimensions(t).x;",
    "a texture that is read and written": """
        textureStore(w, i, vec4u(x[i])); textureBarrier(); y[i] = textureLoad(w, (i + 1u) % 4u).r;""",
    "a sampled texture": """
        let c = textureLoad(p, vec2u(i, 1u), 0) + textureSampleLevel(p, near, vec2f(0.3, f32(i) * 0.25), 0.0);
        y[i] = pack4x8unorm(c * 0.5);""",
    "a matrix": "var m = mat3x2f(); m[i % 3u] = vec2f(f32(i), 2.0); m[1].y = 4.0; y[i] = u32((m * vec3f(1, 2, 3)).y);",
}


@pytest.mark.parametrize("name", FEATURES)
def test_every_feature_ends_as_in_a_run(name):
    large = ", ".join(f"{k * 7 % 601}u" for k in range(600))
    text = f"""
    enable f16; requires readonly_and_readwrite_storage_textures;
    @group(0) @binding(0) var<storage, read> x: array<u32, 4>;
    @group(0) @binding(1) var<storage, read_write> y: array<u32, 4>;
    @group(0) @binding(2) var<storage, read_write> h: array<f16, 4>;
    @group(0) @binding(3) var<storage, read_write> g: array<vec2h, 4>;
    @group(0) @binding(4) var t: texture_storage_2d<rgba8unorm, write>;
    @group(0) @binding(5) var w: texture_storage_1d<r32uint, read_write>;
    @group(0) @binding(6) var p: texture_2d<f32>;
    @group(0) @binding(7) var near: sampler;
    var<workgroup> s: array<u32, 4>;
    const LARGE = array({large});
    fn bump(n: ptr<function, u32>, by: u32) {{ *n += by; }}
    fn bump_all(a: ptr<workgroup, array<u32, 4>>, i: u32) {{ (*a)[i] = i * 2u; }}
    @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
        _ = &x; _ = &h; _ = &g; _ = textureDimensions(t); _ = textureDimensions(w); _ = textureDimensions(p); _ = near;
        {FEATURES[name]}
    }}"""
    bindings = {
        "x": np.array([5, 9, 6, 7], np.uint32),
        "y": np.arange(4, dtype=np.uint32),
        "h": np.arange(4, dtype=np.float16),
        "g": np.zeros(8, np.float16),
        "t": np.zeros((2, 4, 4), np.uint8),
        "w": np.arange(4, dtype=np.uint32),
        "p": np.arange(32, dtype=np.uint8).reshape(2, 4, 4),
        "near": {},
    }
    run = bankshot.simulate(text, grid=1, bindings=bindings)
    [outcome] = bankshot.explore(text, grid=1, bindings=bindings).outcomes
    assert not [each for each in run.findings if each.code in ("race", "component-race")]
    assert outcome.outputs.keys() == run.outputs.keys()
    for key, expected in run.outputs.items():
        assert np.asarray(outcome.outputs[key]).tobytes() == np.asarray(expected).tobytes(), key
    assert not np.array_equal(run.outputs["y"], bindings["y"])

"""Sequentially consistent search: outcomes worked out by hand, and those of a run where there is only one."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.deadlocks import dead_ends
from bankshot.sim.explore.search import search
from bankshot.sim.run.simulate import prepare
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
    found = search(prepare(text, grid=1, bindings=bindings))
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
        found = search(prepare(random_programs.render(program, 2), grid=1, bindings=bindings))
        expected = np.zeros((2, random_programs.LOGGED), np.uint32)
        for i in range(2):
            values = random_programs.interpret(program, given[i], same, i)
            expected[i, : len(values)] = values
        assert [found.contents(end) for end in found.ends] == [(expected.tobytes(),)], seed

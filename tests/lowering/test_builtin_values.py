"""The built-in values of compute shaders in grids of three dimensions, by their definitions in WGSL."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

SIZE, GRID = (3, 2, 2), (2, 3, 2)
LANES, GROUPS = 12, 12
TEXT = """enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<u32, 144>;
@compute @workgroup_size(3, 2, 2)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_id) l: vec3u, {parameter}) {{
    let at = (w.x + 2u * (w.y + 3u * w.z)) * 12u + l.x + 3u * (l.y + 2u * l.z);
    y[at] = {expression};
}}
"""
# For each invocation, workgroup by workgroup: its ids, as columns x, y and z.
PLACES = [(w, i) for w in np.ndindex(*GRID[::-1]) for i in np.ndindex(*SIZE[::-1])]
WORKGROUP = np.array([w[::-1] for w, _ in PLACES])
LOCAL = np.array([i[::-1] for _, i in PLACES])
GLOBAL = WORKGROUP * SIZE + LOCAL
WIDTH, HEIGHT = (GRID[0] * SIZE[0], GRID[1] * SIZE[1])
INDEX = np.tile(np.arange(LANES), GROUPS)
VALUES = {
    **{("workgroup_id", f"v.{c}"): WORKGROUP[:, k] for k, c in enumerate("xyz")},
    **{("local_invocation_id", f"v.{c}"): LOCAL[:, k] for k, c in enumerate("xyz")},
    **{("global_invocation_id", f"v.{c}"): GLOBAL[:, k] for k, c in enumerate("xyz")},
    **{("num_workgroups", f"v.{c}"): np.full(144, GRID[k]) for k, c in enumerate("xyz")},
    ("local_invocation_index", "v"): INDEX,
    ("workgroup_index", "v"): np.repeat(np.arange(GROUPS), LANES),
    ("global_invocation_index", "v"): GLOBAL[:, 0] + WIDTH * (GLOBAL[:, 1] + HEIGHT * GLOBAL[:, 2]),
    ("subgroup_size", "v"): np.full(144, 8),
    ("subgroup_id", "v"): INDEX // 8,
    ("subgroup_invocation_id", "v"): INDEX % 8,
    ("num_subgroups", "v"): np.full(144, 2),
}


def outputs(name, expression, **options):
    known = {"workgroup_id": "w", "local_invocation_id": "l"}.get(name)
    expression = expression.replace("v", known or "v")
    parameter = "" if known else f"@builtin({name}) v: {'vec3u' if '.' in expression else 'u32'}"
    text = TEXT.format(parameter=parameter, expression=expression)
    bindings = {"y": np.zeros(144, np.uint32)}
    device = bankshot.devices.NVIDIA.with_(subgroup_size=8)
    return bankshot.simulate(text, grid=GRID, bindings=bindings, device=device, **options).outputs["y"]


@pytest.mark.parametrize(("name", "expression"), VALUES, ids=[f"{n} {e}" for n, e in VALUES])
def test_each_invocation_has_its_values(name, expression):
    made = outputs(name, expression, probes="none")
    # `at` counts workgroups with x fastest, as `np.ndindex` of reversed sizes does.
    assert made.tolist() == VALUES[name, expression].tolist()


ZEROS = """struct Pair { a: u32, b: vec2f }
struct In { @builtin(local_invocation_index) lane: u32, @builtin(num_workgroups) grid: vec3u }
@group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
@compute @workgroup_size(1) fn main(in: In) {
    var pair = Pair(7u + in.lane, vec2f(1)); var numbers = array(5u, in.lane); var m = mat2x2f();
    m[1][0] = f32(in.grid.x);
    pair = Pair(); numbers = array<u32, 2>();
    y[0] = pair.a + u32(pair.b.y); y[1] = numbers[0]; y[2] = u32(m[1][0]); y[3] = in.grid.y * 10u + in.lane;
}
"""


def test_zero_values_and_a_struct_of_inputs():
    made = bankshot.simulate(ZEROS, grid=(3, 2), bindings={"y": np.zeros(4, np.uint32)}, probes="none").outputs["y"]
    assert made.tolist() == [0, 0, 3, 20]


VIEWS = """@group(0) @binding(0) var<storage, read_write> b: buffer;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 4>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
    let some = bufferArrayView<array<u32>>(&b, 8, 12);
    let all = bufferView<array<u32>>(&b, 4);
    y[0] = arrayLength(some); y[1] = arrayLength(all);
    y[2] = some[2u + w.x]; y[3] = all[1];
}
"""


def test_views_of_a_part_and_of_the_rest_of_a_buffer():
    bindings = {"b": np.arange(10, 18, dtype=np.uint32), "y": np.zeros(4, np.uint32)}
    made = bankshot.simulate(VIEWS, grid=1, bindings=bindings, probes="none").outputs["y"]
    assert made.tolist() == [3, 7, 14, 12]

"""Builtin inputs and subgroup operations in the search, by their definitions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import bankshot
from bankshot.sim.explore.collectives import combine
from bankshot.sim.ir.register_bits import to_bits
from bankshot.sim.models.devices import NVIDIA

TEXT = """enable subgroups;
requires subgroup_id;
@group(0) @binding(0) var<storage, read_write> y: array<array<u32, 19>, 64>;
@compute @workgroup_size({size})
fn main(
    @builtin(local_invocation_id) local: vec3u, @builtin(local_invocation_index) index: u32,
    @builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) grid: vec3u,
    @builtin(global_invocation_id) id: vec3u, @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_id) subgroup: u32, @builtin(num_subgroups) subgroups: u32, @builtin(subgroup_size) wide: u32
) {{
    let row = ((group.z * grid.y + group.y) * grid.x + group.x) * {lanes}u + index;
    y[row] = array<u32, 19>(
        local.x, local.y, local.z, index, group.x, group.y, group.z, grid.x, grid.y, grid.z,
        id.x, id.y, id.z, lane, subgroup, subgroups, wide, 1u, row
    );
}}
"""


@pytest.mark.parametrize(
    ("size", "grid"), [((2, 3, 2), (1, 2, 2)), ((1, 2, 2), (3, 2, 2)), ((5, 1, 1), (2, 3, 1)), ((8, 2, 1), (1, 1, 3))]
)
@pytest.mark.parametrize("wide", [4, 8])
def test_every_input_of_every_invocation(size, grid, wide):
    lanes = size[0] * size[1] * size[2]
    expected = np.zeros((64, 19), np.uint32)
    row = 0
    for group in product(*(range(n) for n in grid[::-1])):
        for index, local in enumerate(product(*(range(n) for n in size[::-1]))):
            ids = [g * s + i for g, s, i in zip(group[::-1], size, local[::-1], strict=True)]
            subgroup = [index % wide, index // wide, -(-lanes // wide), wide]
            expected[row] = [*local[::-1], index, *group[::-1], *grid, *ids, *subgroup, 1, row]
            row += 1
    text = TEXT.format(size=", ".join(map(str, size)), lanes=lanes)
    device = NVIDIA.with_(name="narrow", subgroup_size=wide, subgroup_sizes=(wide,))
    found = bankshot.explore(text, grid=grid, bindings={"y": expected * 0}, device=device, memory="sc")
    (outcome,) = found.outcomes
    np.testing.assert_array_equal(outcome.outputs["y"].reshape(64, 19), expected)


def _floats(*values: float) -> list[int]:
    return [to_bits("f32", np.float32(each)) for each in values]


ARGS = {0: 5, 1: 3, 3: 7}  # lane 2 takes no part
COMBINED = {
    ("reduce", "add_u32", 0): {0: 15, 1: 15, 3: 15},
    ("inclusive", "add_u32", 0): {0: 5, 1: 8, 3: 15},
    ("exclusive", "add_u32", 0): {0: 0, 1: 5, 3: 8},
    ("exclusive", "mul_u32", 1): {0: 1, 1: 5, 3: 15},
    ("reduce", "max_u32", 0): {0: 7, 1: 7, 3: 7},
    ("reduce", "xor_u32", 0): {0: 1, 1: 1, 3: 1},
    ("first", "", 0): {0: 0, 1: 0, 3: 0},
}


@pytest.mark.parametrize(("op", "scalar", "neutral"), COMBINED)
def test_subgroup_operations_on_lanes_that_take_part(op, scalar, neutral):
    found = combine(op, scalar, {lane: (value, neutral) for lane, value in ARGS.items()}, 4)
    assert found == {lane: (value,) for lane, value in COMBINED[op, scalar, neutral].items()}


def test_the_first_lane_is_the_lowest():
    assert combine("first", "", {3: (1,), 2: (1,), 5: (1,)}, 8) == {2: (2,), 3: (2,), 5: (2,)}


def test_floats_are_added_in_the_order_of_lanes():
    values = _floats(1e8, 1.0, -1e8)
    found = combine("reduce", "add_f32", {lane: (bits, 0) for lane, bits in enumerate(values)}, 3)
    assert found == dict.fromkeys(range(3), (0,))  # 1e8 + 1 is 1e8


@pytest.mark.parametrize(
    ("op", "asked", "read"),
    [
        ("shuffle", {0: 1, 1: 3, 3: 0}, {0: 3, 1: 7, 3: 5}),
        ("shuffle", {0: 2, 1: 4, 3: 99}, {0: 0, 1: 0, 3: 0}),  # a lane that takes no part, and one beyond the subgroup
        ("shuffle_last", {0: 2, 1: 4, 3: 99}, {0: 0, 1: 7, 3: 7}),
        ("shuffle_last", {0: 0, 1: 3, 3: 1}, {0: 5, 1: 7, 3: 3}),
    ],
)
def test_shuffles(op, asked, read):
    found = combine(op, "", {lane: (value, asked[lane]) for lane, value in ARGS.items()}, 4)
    assert found == {lane: (value,) for lane, value in read.items()}


def test_a_ballot_has_a_bit_for_each_lane():
    votes = {0: 1, 1: 0, 31: 1, 32: 1, 63: 1, 64: 0, 65: 1, 127: 1}
    words = (1 | 1 << 31, 1 | 1 << 31, 2, 1 << 31)
    assert combine("ballot", "", {lane: (vote,) for lane, vote in votes.items()}, 128) == dict.fromkeys(votes, words)

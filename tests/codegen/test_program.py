"""What a program says of its workgroups: whether they see each other, and whether subgroups exchange values."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> z: array<u32, 64>;
@group(0) @binding(3) var<storage, read_write> n: array<atomic<u32>, 64>;
var<workgroup> t: array<u32, 64>;
var<workgroup> b: array<atomic<u32>, 64>;
@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = id.x;
"""

# Statement -> workgroups cannot see each other, subgroups exchange values.
SEEN = {
    "y[i] = x[i];": (True, False),
    "y[i] = x[i]; z[i] = 1u;": (True, False),
    "z[i] = y[i];": (True, False),
    "y[i] += 1u;": (False, False),
    "y[i] = z[i]; z[i] = 1u;": (False, False),
    "atomicAdd(&n[i], 1u);": (False, False),
    "y[i] = atomicLoad(&n[i]);": (False, False),
    "atomicStore(&n[i], 1u);": (False, False),
    "t[lane] = x[i]; workgroupBarrier(); y[i] = t[31u - lane];": (True, False),
    "atomicAdd(&b[lane], 1u);": (True, False),
    "atomicAdd(&b[lane], 1u); atomicAdd(&n[lane], 1u);": (False, False),
    "atomicAdd(&n[lane], 1u); y[i] = atomicLoad(&b[lane]);": (False, False),
    "y[i] = subgroupAdd(x[i]);": (True, True),
    "y[i] = subgroupShuffleXor(lane, 1u);": (True, True),
    "y[i] = select(1u, 2u, subgroupElect());": (True, True),
    "y[i] += subgroupMax(lane);": (False, True),
}


@pytest.mark.parametrize("body", SEEN)
@pytest.mark.parametrize("probes", ["none", "all"])
def test_what_workgroups_and_lanes_see(body, probes):
    bindings = {name: np.zeros(64, np.uint32) for name in "xyzn" if f"{name}[" in body}
    program = bankshot.simulate(HEAD + body + "}", grid=2, bindings=bindings, probes=probes).program
    assert (program.independent, program.exchanges_values) == SEEN[body]

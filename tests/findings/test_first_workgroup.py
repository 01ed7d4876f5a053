"""A finding shows the first workgroup that has it, however many workgroups run side by side."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var n = group.x; var t = 0u;
"""
# In round k of a loop, what workgroups 3 - k and later do. Workgroup 1 is the first that does it, in the last of three
# rounds, where n is 3 and `lane` is 5.
BODIES = {
    "out-of-bounds": ("if lane == 5u && n > 2u { t += y[1000u + n]; }", "y[1003]"),
    "uninit": ("if lane == 5u && n > 2u { t += tile[n]; }", "tile[3]"),
    "division-by-zero": ("if lane == 5u && n > 2u { t += n / (group.x & 8u); }", "3 / 0"),
    "not-finite": ("if lane == 5u && n > 2u { t += u32(min(1.0, f32(n) * 2e38)); }", "3"),
}


@pytest.mark.parametrize("workgroups", ["all", "classes"])
@pytest.mark.parametrize("code", BODIES)
def test_a_finding_shows_the_first_workgroup(code: str, workgroups: str) -> None:
    body, shown = BODIES[code]
    source = f"{HEAD} for (var k = 0u; k < 3u; k++) {{ {body} n += 1u; }} y[group.x * 8u + lane] = t; }}"
    done = bankshot.simulate(
        source, grid=6, bindings={"y": np.zeros(48, np.uint32)}, probes="all", workgroups=workgroups
    )
    (finding,) = [each for each in done.findings if each.code == code]
    assert (finding.workgroup, finding.lanes) == ((1, 0, 0), (5,))
    assert shown in finding.message
    assert finding.count == 1 + 2 + 3 + 3 + 3

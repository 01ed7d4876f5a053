"""Lanes that load one word one after the other are examined together: their races are counted as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from bankshot.sim.launch.race_tables import race_rows
from bankshot.sim.machine import layout as at
from bankshot.sim.run.prepared import dispatch_of

TEXT = """
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> v: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 8>;
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) l: u32, @builtin(workgroup_id) w: vec3u) {
    _ = &x; _ = &v;
    var sum = 0.0;
    STEPS
    y[l + 8u * w.x] = sum;
}"""


def races(steps: str, grid: int = 1) -> list[tuple[int, int]]:
    """Return of each pair of racing places how often it races, and whether it does across workgroups."""
    given = {"x": np.zeros(16, np.float32), "v": np.zeros(16, np.float32), "y": np.zeros(16, np.float32)}
    _, outcome = dispatch_of(TEXT.replace("STEPS", steps), grid=grid, bindings=given).run(frozenset(("races",)))
    return sorted((int(row[at.RACE_TIMES]), int(row[at.RACE_ACROSS])) for row in race_rows(outcome.races))


@pytest.mark.parametrize(
    ("steps", "wanted"),
    [
        # Lane 3 stores; 8 lanes load, and only lane 3 does not race with itself.
        ("if l == 3u { x[0] = 1.0; } sum += x[0];", [(7, 0)]),
        ("if l == 0u { x[0] = 1.0; } sum += x[0];", [(7, 0)]),
        ("if l == 1u { x[0] = 1.0; } sum += x[0];", [(7, 0)]),
        ("if l == 2u { x[0] = 1.0; } sum += x[0];", [(7, 0)]),
        ("if l == 7u { x[0] = 1.0; } sum += x[0];", [(7, 0)]),
        # The lane after those that load a word has stored it.
        ("if l == 4u { x[0] = 1.0; } sum += x[l / 4u];", [(4, 0)]),
        # The lanes from 2 on load, and the even ones, of which lane 3 is none.
        ("if l == 3u { x[0] = 1.0; } if l >= 2u { sum += x[0]; }", [(5, 0)]),
        ("if l == 3u { x[0] = 1.0; } if l % 2u == 0u { sum += x[0]; }", [(4, 0)]),
        # Lanes 0 to 3 load one word and lanes 4 to 7 another; a lane of each has stored it.
        ("if l == 3u || l == 5u { x[l / 4u] = 1.0; } sum += x[l / 4u];", [(6, 0)]),
        # One of the four words of a vector is stored, or two by two lanes.
        ("if l == 3u { v[0].y = 1.0; } let all = v[0]; sum += all.x + all.y + all.z + all.w;", [(7, 0)]),
        ("if l == 3u || l == 6u { v[0][l / 3u] = 1.0; } let all = v[0]; sum += dot(all, all);", [(14, 0)]),
        # A barrier orders the store before the loads.
        ("if l == 3u { x[0] = 1.0; } storageBarrier(); sum += x[0];", []),
        # All load, then one stores: two of the readers are recorded, of which it may be one.
        ("sum += x[0]; if l == 0u { x[0] = 1.0; }", [(1, 0)]),
        ("sum += x[0]; if l == 7u { x[0] = 1.0; }", [(2, 0)]),
        # Workgroup memory, where a first load of no known pattern is examined lane by lane.
        ("t[l] = 1.0; workgroupBarrier(); if l == 3u { t[u32(x[0])] = 2.0; } sum += t[u32(x[0])];", [(7, 0)]),
    ],
)
def test_races_of_lanes_that_load_one_word(steps: str, wanted: list[tuple[int, int]]) -> None:
    assert races(steps) == wanted


def test_races_across_workgroups() -> None:
    """Lane 3 of the first workgroup stores what all 16 invocations load: 7 of its own race with it, and 8 others."""
    assert races("if l == 3u && w.x == 0u { x[0] = 1.0; } sum += x[0];", grid=2) == [(7, 0), (8, 1)]

"""Races behind results of atomics: lockstep takes one branch, and another order the one that races."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

TEXT = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> n: atomic<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {{
    if i == 0u {{ atomicStore(&n, 0u); }}
    t[i] = 0u;
    workgroupBarrier();
    atomicAdd(&n, 1u);
    {barrier}
    if atomicLoad(&n) < 64u {{ {body} }}
    workgroupBarrier();
    y[w.x * 64u + i] = t[0];
}}
"""


def findings(barrier="", body="t[0] = i;", grid=2, **options):
    given = {"y": np.zeros(64 * grid, np.uint32)}
    text = TEXT.format(barrier=barrier, body=body)
    return bankshot.simulate(text, grid=grid, bindings=given, **options).findings


@pytest.mark.parametrize("grid", [2, 100])
@pytest.mark.parametrize("replay", [True, False])
def test_a_race_in_a_branch_that_lockstep_does_not_take_is_found(grid, replay):
    (race,) = [f for f in findings(grid=grid, replay=replay) if f.code == "race"]
    assert race.span is not None
    assert race.span.text == "t[0]"
    assert any("the order of atomic operations decides whether this happens" in n.message for n in race.notes)


def test_it_is_right_where_a_barrier_completes_the_count():
    assert not findings("workgroupBarrier();")


def test_a_branch_that_does_not_race_is_right():
    assert "race" not in {f.code for f in findings(body="t[i] = i;")}


def test_a_comment_may_allow_it():
    allowed = "\n// bankshot: allow(race) because any will do\nt[0] = i;"
    assert "race" not in {f.code for f in findings(body=allowed)}


def test_only_the_probe_of_races_looks_for_it():
    assert not findings(probes=("lanes", "bounds"))

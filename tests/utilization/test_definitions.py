"""The four utilizations from slices made by hand, and what the headline says of them."""

from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.models.devices import DEVICES
from bankshot.sim.models.occupancy import occupancy
from bankshot.sim.run import sliced_workgroups
from bankshot.sim.utilization.slices import Interval, Slice
from bankshot.sim.utilization.tallies import Tally
from bankshot.sim.utilization.utilization import DEFINITIONS, utilization_of
from bankshot.sim.wgsl.source import Source, Span

NVIDIA = DEVICES["nvidia"]


TEXT = Source(20 * "a line of text\n")


def at(line, column=1):
    start = 15 * (line - 1) + column - 1
    return Span(TEXT, start, start + 1)


IDLE = {"behind a guard": 0, "diverged": 0}


def computed(*slices, idle=IDLE, device=NVIDIA, size=1024, workgroups=264, lanes=(0, 0), exact=True, missing=""):
    fits = occupancy(device, size)
    return utilization_of(list(slices), lanes, idle, device, fits, workgroups, exact=exact, missing=missing)


def sliced(tallies, *intervals):
    return Slice(tallies, [Interval(span, issued) for span, issued in intervals] or [Interval(None, [1])])


def test_lines_add_up_and_workgroups_count_as_often_as_they_stand_for():
    span = at(3)
    one = sliced({("fp32", span): Tally(32, 16, 8), ("integer", at(3, 9)): Tally(32, 32, 16)})
    other = sliced({("fp32", at(7)): Tally(64, 64, 64)})
    found = computed((one, 3), (other, 1))
    lines = [(row.line, row.issued, row.active, row.useful) for row in found.lines]
    assert lines == [(3, 192, 144, 72), (7, 64, 64, 64)]
    assert found.lines[0].span is span
    assert (found.lane_efficiency, found.useful_lane_efficiency) == (208 / 256, 136 / 256)
    assert (found.measured, found.workgroups) == (2, 264)


def test_balance_is_of_the_busiest_subgroup_of_each_interval():
    barrier = at(5)
    one = sliced({("fp32", at(1)): Tally(9, 9, 9)}, (barrier, [10, 2, 0]), (None, [1, 1, 1]))
    found = computed((one, 2))
    assert found.workgroup_balance == 15 / 33
    assert (found.headline.key, found.headline.span) == ("workgroup_balance", barrier)
    assert found.headline.cause == "subgroups wait at this barrier"
    late = sliced({("fp32", at(1)): Tally(9, 9, 9)}, (barrier, [1, 1]), (None, [9, 1]))
    assert computed((late, 1)).headline.cause == "subgroups wait for the others to end"


# An NVIDIA H200 has 132 cores, and two workgroups of 1,024 threads fit one.
@pytest.mark.parametrize(
    ("workgroups", "fill", "cause"),
    [
        (264, 1, ""),
        (66, 0.25, "workgroups take 66 of 264 places"),
        (265, 265 / 528, "workgroups take 1 of 264 places in the last of 2 waves"),
        (528, 1, ""),
    ],
)
def test_grid_fill(workgroups, fill, cause):
    found = computed((sliced({("fp32", at(1)): Tally(9, 9, 9)}), 1), workgroups=workgroups)
    assert found.grid_fill == fill
    if fill < 1:
        assert (found.headline.key, found.headline.cause, found.headline.span) == ("grid_fill", cause, None)


def test_grid_fill_is_unknown_without_cores_or_where_no_workgroup_fits():
    one = (sliced({("fp32", at(1)): Tally(9, 9, 9)}), 1)
    assert computed(one, device=NVIDIA.with_(cores=None)).grid_fill is None
    assert computed(one, size=4096).grid_fill is None


def test_the_headline_blames_idle_lanes_or_work_in_vain():
    idle = {"behind a guard": 3, "diverged": 8}
    mostly_idle = sliced({("a", at(1)): Tally(100, 30, 30), ("b", at(2)): Tally(100, 90, 60)})
    found = computed((mostly_idle, 1), idle=idle)
    assert (found.headline.key, found.headline.value) == ("useful_lane_efficiency", 90 / 200)
    assert (found.headline.cause, found.headline.span.line) == ("lanes are diverged", 1)
    in_vain = sliced({("a", at(1)): Tally(100, 80, 80), ("b", at(2)): Tally(100, 90, 10)})
    found = computed((in_vain, 1), idle=idle)
    assert (found.headline.cause, found.headline.span.line) == (
        "nothing that is stored depends on what most of its lanes do", 2
    )  # fmt: skip
    # As many in vain as idle: the lanes that are idle come first.
    even = sliced({("a", at(1)): Tally(100, 80, 60)})
    assert computed((even, 1)).headline.cause == "lanes are idle"


def test_without_slices_lanes_come_from_the_counters():
    found = computed(lanes=(64, 16), exact=False, missing="too long")
    assert (found.lane_efficiency, found.useful_lane_efficiency, found.workgroup_balance) == (0.25, None, None)
    assert (found.headline.key, found.missing, found.measured) == ("lane_efficiency", "too long", 0)
    nothing = computed(device=NVIDIA.with_(cores=None))
    assert nothing.headline is None


def test_each_definition_is_one_sentence_on_the_page():
    page = " ".join((Path(__file__).parents[2] / "docs" / "utilization.md").read_text().split())
    for row in DEFINITIONS:
        assert row.definition.count(". ") == 0
        assert f"**{row.label}**: {row.definition}" in page


LONG = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(256) fn main(@builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 100u; k++) { y[i] += 1.0; }
}"""


def test_a_workgroup_that_is_too_long_is_not_sliced_unless_asked(monkeypatch):
    monkeypatch.setattr(sliced_workgroups, "MOST_NOTES", 1 << 16)
    given = {"y": np.zeros(256, np.float32)}
    short = bankshot.simulate(LONG, bindings=given, grid=1, probes=("lanes",)).utilization
    assert (short.useful_lane_efficiency, short.lane_efficiency, short.exact) == (None, 1, False)
    assert short.missing == "a workgroup takes more than 65,536 steps of its invocations"
    whole = bankshot.simulate(LONG, bindings=given, grid=1, probes=("lanes",), replay="thorough").utilization
    assert (whole.useful_lane_efficiency, whole.exact, whole.missing) == (1, True, "")


def test_a_workgroup_that_does_not_end_by_itself():
    wgsl = """@group(0) @binding(0) var<storage, read_write> c: array<atomic<u32>, 2>;
        @compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
            if w.x == 1u { atomicStore(&c[0], 1u); }
            else { while atomicLoad(&c[0]) == 0u { atomicAdd(&c[1], 1u); } }
        }"""
    given = {"c": np.zeros(2, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=2, probes=("lanes",)).utilization
    assert used.missing == "a workgroup does not end by itself"
    assert used.useful_lane_efficiency is None

"""Units that take turns: workgroups, subgroups or invocations, between barriers and at atomic operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import schedules

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> flag: array<atomic<u32>, 4>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(SIZE)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32, @builtin(num_workgroups) n: vec3u) {
    let at = w.x * SIZEu + i; _ = &y; _ = &x; _ = &flag;
"""
SEEDS = range(12)
DRAWN = [f"random({seed})" for seed in SEEDS] + [f"pct({seed},3)" for seed in SEEDS]


def run(body: str, size: int, groups: int | tuple[int, int], **options: Any) -> bankshot.Run:
    text = HEAD.replace("SIZE", str(size)) + body + "\n}"
    arrays = {"y": np.zeros(256, np.uint32), "x": np.ones(256, np.float32), "flag": np.zeros(4, np.uint32)}
    return bankshot.simulate(text, grid=groups, bindings=arrays, **options)


def seen(body: str, size: int, groups: int, count: int, **options: Any) -> set[tuple[int, ...]]:
    """The outcomes of drawn schedules: the first elements of `y`."""
    runs = (run(body, size, groups, schedule=order, probes="none", **options) for order in DRAWN)
    return {tuple(each.outputs["y"].tolist()[:count]) for each in runs}


GIVES_UP = """
    if w.x == 1u {
        var k = 0u;
        loop { k += 1u; if atomicLoad(&flag[0]) == 1u { break; } if k > 1000u { break; } }
        y[1] = k;
    } else { atomicStore(&flag[0], 1u); y[0] = 7u; }"""


def test_a_loop_that_gives_up_shows_both_outcomes() -> None:
    orders = ("lockstep", "mirrored", "reversed")
    fixed = {order: run(GIVES_UP, 1, 2, schedule=order, probes="none").outputs["y"][:2].tolist() for order in orders}
    assert fixed == {"lockstep": [7, 1], "mirrored": [7, 1001], "reversed": [7, 1001]}
    assert {(7, 1), (7, 1001)} <= seen(GIVES_UP, 1, 2, 2)
    assert "atomic-order" in {finding.code for finding in run(GIVES_UP, 1, 2).findings}


# What two invocations may load, sequentially consistent: each of three outcomes.
LITMUS = {
    "message passing": (
        "atomicStore(&flag[0], 1u); atomicStore(&flag[1], 1u);",
        "let a = atomicLoad(&flag[1]); let b = atomicLoad(&flag[0]); y[0] = a; y[1] = b;",
        {(0, 0), (0, 1), (1, 1)},
    ),
    "store buffering": (
        "atomicStore(&flag[0], 1u); y[0] = atomicLoad(&flag[1]);",
        "atomicStore(&flag[1], 1u); y[1] = atomicLoad(&flag[0]);",
        {(0, 1), (1, 0), (1, 1)},
    ),
    "load buffering": (
        "y[0] = atomicLoad(&flag[0]); atomicStore(&flag[1], 1u);",
        "y[1] = atomicLoad(&flag[1]); atomicStore(&flag[0], 1u);",
        {(0, 0), (0, 1), (1, 0)},
    ),
}


@pytest.mark.parametrize("size", [1, 2, 64], ids=["workgroups", "lanes", "subgroups"])
@pytest.mark.parametrize("litmus", LITMUS)
def test_litmus_tests_show_each_sequentially_consistent_outcome(litmus: str, size: int) -> None:
    one, other, allowed = LITMUS[litmus]
    first, second = {1: ("w.x == 0u", "w.x == 1u"), 2: ("i == 0u", "i == 1u"), 64: ("i == 0u", "i == 32u")}[size]
    body = f"if {first} {{ {one} }} else if {second} {{ {other} }}"
    assert seen(body, size, 2 if size == 1 else 1, 2) == allowed


@pytest.mark.parametrize("order", ["random(7)", "pct(7,3)"])
def test_a_seed_repeats_its_schedule(order: str) -> None:
    body = "for (var k = 0u; k < 3u; k++) { y[at] = y[at] * 31u + atomicAdd(&flag[0], 1u); }"
    one, two = (run(body, 8, 3, schedule=order, probes="none").outputs["y"].tolist() for _ in range(2))
    assert one == two
    other = run(body, 8, 3, schedule=order.replace("7", "8"), probes="none").outputs["y"].tolist()
    assert one != other
    assert run(body, 8, 3, schedule=order, probes="none").outputs["flag"][0] == 72


@pytest.mark.parametrize("order", ["random(3,{})", "pct(3,2,{})"])
def test_a_name_chooses_the_units_that_take_turns(order: str) -> None:
    def breaks(units: str) -> set[int]:
        """After which invocations the numbers that they draw do not go on."""
        drawn = run("y[at] = atomicAdd(&flag[0], 1u);", 64, 4, schedule=order.format(units), probes="none")
        return {int(place) + 1 for place in np.flatnonzero(np.diff(drawn.outputs["y"].astype(np.int64)) != 1)}

    assert set() < breaks("workgroups") <= {64, 128, 192}
    assert {32} < breaks("subgroups") <= set(range(32, 256, 32))
    assert 1 in breaks("invocations")


def test_all_workgroups_load_before_any_stores_side_by_side() -> None:
    hands_on = "if i == 0u { y[w.x] = atomicLoad(&flag[0]); atomicStore(&flag[0], w.x + 1u); }"
    assert not run(hands_on, 64, 100, schedule="side-by-side", probes="none").outputs["y"].any()
    assert run(hands_on, 64, 100, probes="none").outputs["y"].any()


def test_an_update_of_another_workgroup_is_lost() -> None:
    run_ = run("x[at] = x[at] * 2.0;", 1, (4, 3))
    (finding,) = run_.findings
    assert (finding.code, finding.verdict) == ("race", "harmful")
    lost = run("x[at] = x[at] * 2.0;", 1, (4, 3), schedule="random(1)").outputs["x"][:4]
    assert any(value < 8 for value in lost)


WAIT = "if i == 0u { while atomicLoad(&flag[0]) == 0u {} } if i == LASTu { atomicStore(&flag[0], 1u); }"


@pytest.mark.parametrize(("size", "last"), [(64, 40), (32, 9)], ids=["another subgroup", "a lane"])
def test_units_share_barriers_and_workgroup_memory(size: int, last: int) -> None:
    body = WAIT.replace("LAST", str(last)) + "t[i] = at; workgroupBarrier(); y[at] = t[SIZEu - 1u - i];"
    done = run(body.replace("SIZE", str(size)), size, 1)
    assert done.findings == []
    assert done.outputs["y"][:size].tolist() == list(range(size))[::-1]
    wrong = run(body.replace("SIZE", str(size)).replace("workgroupBarrier();", ""), size, 1)
    assert {finding.code for finding in wrong.findings} == {"race"}


def test_a_lane_that_does_not_reach_a_barrier_is_named() -> None:
    body = WAIT.replace("LAST", "40") + "if i != 5u { workgroupBarrier(); } y[at] = 1u;"
    module = bankshot.check(HEAD.replace("SIZE", "64") + body + "\n}", uniformity="off")
    bindings = {"y": np.zeros(64, np.uint32), "x": np.zeros(64, np.float32), "flag": np.zeros(4, np.uint32)}
    found = bankshot.simulate(module, grid=1, bindings=bindings).findings
    (finding,) = [each for each in found if each.code == "barrier-divergence"]
    assert finding.lanes == (5,)


def test_counters_of_subgroups_that_take_turns_are_those_of_lockstep() -> None:
    body = "t[i * 2u % 64u] = i; workgroupBarrier(); y[at] = t[i];"
    alone, waiting = run(body, 64, 2), run(WAIT.replace("LAST", "40") + body, 64, 2)
    assert waiting.counters["shared_wavefronts"] == alone.counters["shared_wavefronts"]
    assert waiting.counters["barriers"] == alone.counters["barriers"]
    assert waiting.counters["working_invocations"] == alone.counters["working_invocations"] == 1


def test_the_finding_names_who_waits_for_what() -> None:
    body = "if i == 3u { while atomicLoad(&flag[2]) != 9u {} } workgroupBarrier();"
    (finding,) = [each for each in run(body, 8, 2).findings if each.code == "endless-loop"]
    assert (finding.workgroup, finding.lanes) == ((0, 0, 0), (3,))
    assert [note.message for note in finding.notes] == [
        "invocation 3 of workgroup (0, 0, 0) and 1 more like it wait for flag[2] here; "
        "all others that could store to flag have ended",
        "14 invocations wait at a barrier in line 8",
    ]


def test_the_finding_names_who_could_end_the_wait() -> None:
    body = """
    if w.x == 0u { while atomicLoad(&flag[0]) == 0u {} atomicStore(&flag[1], 1u); }
    else { while atomicLoad(&flag[1]) == 0u {} atomicStore(&flag[0], 1u); }"""
    (finding,) = run(body, 1, 2).findings
    assert [note.message for note in finding.notes] == [
        f"invocation 0 of workgroup ({w}, 0, 0) waits for flag[{w}] here; "
        f"invocation 0 of workgroup ({1 - w}, 0, 0) could still store to flag, but waits, too"
        for w in (0, 1)
    ]


def test_a_barrier_of_a_large_grid() -> None:
    body = "atomicAdd(&flag[0], 1u); while atomicLoad(&flag[0]) < n.x {} y[0] = 1u;"
    assert run(body, 1, 300, probes="none").outputs["y"][0] == 1


def test_a_barrier_of_more_workgroups_than_run_side_by_side_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether it ends on a GPU depends on how many run there at once."""
    monkeypatch.setattr(schedules, "_MOST_GROUPS", 256)
    body = "atomicAdd(&flag[0], 1u); while atomicLoad(&flag[0]) < n.x {} y[0] = 1u;"
    (finding,) = [each for each in run(body, 1, 300, probes="bounds").findings if each.code == "endless-loop"]
    assert "does not end with 256 workgroups side by side, the most that Bankshot runs here" in finding.message
    assert "44 workgroups have not begun" in finding.message
    assert finding.notes[0].message.endswith("44 workgroups that could store to flag have not begun")
    assert run(body, 1, 256, probes="bounds").findings == []


def test_up_to_four_waits_are_noted() -> None:
    spin = "while atomicLoad(&flag[i & 3u]) != 9u {}"
    (finding,) = run(f"if i < 4u {{ {spin} }} else {{ {spin} }}", 8, 1, probes="bounds").findings
    assert [note.message.partition(" waits for ")[2].partition(" here")[0] for note in finding.notes] == [
        f"flag[{n}]" for n in range(4)
    ]


def test_workgroups_that_have_not_begun_cannot_end_a_wait_for_what_they_do_not_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schedules, "_MOST_GROUPS", 256)
    (finding,) = run("while atomicLoad(&flag[0]) == 0u {} y[0] = 1u;", 1, 300, probes="bounds").findings
    assert finding.code == "endless-loop"
    assert finding.notes[0].message.endswith("; all others that could store to flag have ended")

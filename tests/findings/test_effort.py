"""How many reruns decide a verdict: all where they are cheap, fewer where they take long, and what a note says then."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings import reruns
from bankshot.sim.findings.effort import Effort, limit, probed_work, work
from bankshot.sim.findings.replay import Judge
from bankshot.sim.findings.reruns import Rerun
from bankshot.sim.launch.launch import Filling
from bankshot.sim.launch.schedules import LOCKSTEP, schedule
from bankshot.sim.run import cured

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {
    let at = w.x * 64u + i; _ = &y; _ = &z; _ = &t;
    var v = 0u;
"""
LONG = "for (var k = 0u; k < 3000u; k++) { v = v * 3u + k; }"
ACROSS = "var old = 0u; if w.x == 0u { old = y[0]; } if at == 70u { y[0] = 1u; } z[at] = v + min(old, 0u);"
INSIDE = "t[i] = i; let old = t[63u - i]; z[at] = v + min(old, 0u);"


def run(body: str, groups: int, **options: Any) -> bankshot.Run:
    arrays = {"y": np.zeros(1, np.uint32), "z": np.zeros(groups * 64, np.uint32)}
    return bankshot.simulate(f"{HEAD}{body}\n}}", grid=groups, bindings=arrays, probes="races", cures=False, **options)


def note(body: str, groups: int, **options: Any) -> str:
    (race,) = [finding for finding in run(body, groups, **options).findings if finding.code == "race"]
    assert race.verdict == "unseen"
    return race.notes[-1].message.partition(", nor")[0]


def test_a_cheap_race_is_run_in_every_order() -> None:
    assert note(ACROSS, 2) == "no output changes in any of 6 orders"
    assert note(INSIDE, 2) == "no output changes in any of 5 orders"


def test_a_note_says_how_many_orders_take_too_long() -> None:
    words = "no output changes in any of 4 orders (2 more take too long without --thorough)"
    assert note(LONG + ACROSS, 16) == words


def test_all_are_made_if_asked_for() -> None:
    assert note(LONG + ACROSS, 16, replay="thorough") == "no output changes in any of 6 orders"
    with pytest.raises(bankshot.WgslError, match="replay must be one of thorough, not 'much'"):
        run(INSIDE, 1, replay="much")


@pytest.mark.parametrize(("most", "by"), [(64, ""), (63, ", by subgroups")])
def test_in_orders_of_many_invocations_subgroups_take_turns(
    monkeypatch: pytest.MonkeyPatch, most: int, by: str
) -> None:
    """Of the racing workgroup only: with 64 invocations, of 12,800 in all."""
    monkeypatch.setattr(reruns, "MOST_ONE_BY_ONE", most)
    late = "if w.x == 190u { t[i] = i; z[at] = t[63u - i]; }"
    orders = reruns.REPLAYS["schedules"][0](*run(late, 200).dispatch.run(frozenset(("races",))), Filling())
    assert [each.words for each in orders] == [
        "run mirrored", "run subgroup-serial", f"run reversed{by}", "run random(1)",
    ]  # fmt: skip
    units = [each.changes.get("schedule", LOCKSTEP).granularity for each in orders[1:]]
    assert units == ["subgroup", "subgroup" if by else "invocation", "any"]


def test_a_rerun_has_a_budget_and_one_thread_and_may_have_no_end() -> None:
    asked: list[dict[str, Any]] = []

    def rerun(probes: frozenset[str], **changes: Any) -> Any:
        asked.append(changes)
        return SimpleNamespace(count=2, views=dict), SimpleNamespace(finished=2 if "policy" in changes else 1)

    launch: Any = SimpleNamespace(options=SimpleNamespace(budget=1 << 20), count=2, views=dict)
    judge = Judge(cast(Any, SimpleNamespace(run=rerun)), launch, cast(Any, SimpleNamespace(jumps=10)), Effort(0.0))
    reruns_of: tuple[Any, ...] = ({"schedule": LOCKSTEP}, {"policy": "zero"})
    results = [judge._result(Rerun("", changes, 0)) for changes in reruns_of]
    assert [each.endless for each in results] == [True, False]
    limits = {"budget": 4 * 10 + 1000, "threads": 1}
    assert asked == [{**limits, "schedule": LOCKSTEP}, {**limits, "policy": "zero"}]


def test_a_race_within_workgroups_runs_in_those_that_show_it() -> None:
    assert note(LONG + INSIDE, 200) == "no output changes in any of 5 orders"
    late = "if w.x == 190u { t[i] = i; z[at] = t[63u - i]; }"
    (race,) = run(late, 200).findings
    assert race.verdict == "harmful"
    assert race.notes[-1].message.startswith("run subgroup-serial, 32 of 12,800 elements of z differ")


def test_what_only_small_units_show_is_seen_in_a_few_workgroups() -> None:
    """In lockstep, both ways, each invocation loads before any stores."""
    (race,) = run("t[i] = 0u; workgroupBarrier(); let old = t[63u - i]; t[i] = 1u; z[at] = old;", 200).findings
    assert race.verdict == "harmful"
    assert race.notes[-1].message.startswith("run subgroup-serial, ")


def test_work_grows_with_workgroups_iterations_and_smaller_units() -> None:
    def of(body: str, groups: int, order: str = "lockstep") -> int:
        launch, outcome = run(body, groups).dispatch.run(frozenset())
        return work(launch, outcome, schedule(order))

    assert of(LONG, 20) == 2 * of(LONG, 10)
    assert of(LONG.replace("3000", "6000"), 10) == pytest.approx(2 * of(LONG, 10), rel=0.1)
    assert of(LONG, 10) < of(LONG, 10, "subgroup-serial") < of(LONG, 10, "reversed") < of(LONG, 10, "random(1)")


def test_the_limit_is_a_multiple_of_the_run_and_never_tiny() -> None:
    launch, outcome = run(LONG, 16).dispatch.run(frozenset())
    assert limit(launch, outcome) == 8 * work(launch, outcome)
    effort = Effort.of(launch, outcome)
    assert [effort.take(work(launch, outcome, LOCKSTEP)) for _ in range(9)] == [True] * 8 + [False]
    small, after = run("z[at] = v;", 1).dispatch.run(frozenset())
    assert limit(small, after) > 1000 * work(small, after)


def test_changes_of_the_text_run_less_often_where_each_takes_long() -> None:
    def runs(body: str, workgroups: int | None = None) -> int:
        made = run(body, 16).dispatch.run(frozenset())
        return Effort.of(*made).changed_texts(probed_work(*made, workgroups), 24)

    assert runs("z[at] = v;") == 24
    assert runs(LONG) == 6
    assert runs(LONG, 1) == 24


def test_changes_run_in_the_workgroups_that_race_also_if_two_of_them_do(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[int, ...] | None] = []
    look = cured._look

    def seen(dispatch: Any, probes: frozenset[str]) -> Any:
        ran.append(None if dispatch.how.chosen is None else tuple(dispatch.how.chosen))
        return look(dispatch, probes)

    monkeypatch.setattr(cured, "_look", seen)
    body = "if w.x == 3u { t[i] = i; z[at] = t[63u - i]; } if w.x == 5u { z[64u * 3u + i] = i; }"
    arrays = {"y": np.zeros(1, np.uint32), "z": np.zeros(64 * 64, np.uint32)}
    made = bankshot.simulate(f"{HEAD}{body}\n}}", grid=64, bindings=arrays, probes="races")
    assert {each.epoch is None for each in made.findings} == {True, False}
    assert [cure.sentence for cure in made.cures] == [
        "a workgroupBarrier() after column 24 of line 9 removes this race"
    ]
    assert set(ran) == {(3, 5)}


COUNTED = """
@group(0) @binding(0) var<storage, read_write> n: atomic<u32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) {
    var v = 0u;
    for (var k = 0u; k < 3000u; k++) { v = v * 3u + k; }
    z[g.x] = v + atomicAdd(&n, 1u) / 4096u;
}
"""


def test_coverage_says_how_many_orders_of_atomics_take_too_long() -> None:
    def coverage(text: str, **options: Any) -> Any:
        arrays = {"n": np.zeros(1, np.uint32), "z": np.zeros(1024, np.uint32)}
        made = bankshot.simulate(text, grid=16, bindings=arrays, probes="races", **options)
        assert not made.findings
        return made.coverage

    cut = coverage(COUNTED)
    assert 0 < cut.untried_orders < 26
    more = f"{cut.untried_orders} more orders of atomic operations would take too long without --thorough"
    assert str(cut) == f"all 16 workgroups ran; {more}"
    assert coverage(COUNTED, replay="thorough").untried_orders == 0
    assert str(coverage(COUNTED.replace("3000u", "1u"))) == "all 16 workgroups ran"

"""`simulate(…, schedules=N)`: outputs under many schedules, whose finding a difference is, and what shows it again."""

from __future__ import annotations

import re
from itertools import islice

import numpy as np
import pytest

import bankshot
from bankshot import Schedules
from bankshot.sim.run.schedule_sweep import _smaller

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> n: array<atomic<u32>, 4>;
@compute @workgroup_size({size})
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {{
    _ = &y; _ = &n; let at = w.x * {size}u + i;
{body}
}}
"""


def bindings():
    return {"y": np.zeros(256, np.uint32), "n": np.zeros(4, np.uint32)}


def simulated(body, *, grid=2, size=32, **options):
    return bankshot.simulate(HEAD.format(body=body, size=size), grid=grid, bindings=bindings(), **options)


RIGHT = "y[at] = at * 3u; atomicAdd(&n[0], y[at]);"
RACE = "y[0] = y[0] * 3u + w.x;"
APPEND = "y[atomicAdd(&n[0], 1u)] = at;"
# Which of two workgroups comes first decides; where four are side by side, all four load before any stores.
HANDS_ON = "if i == 0u { y[w.x] = atomicLoad(&n[0]); atomicStore(&n[0], w.x + 1u); }"


def names(count, seed=0, invocations=64):
    return [*Schedules(count, seed).names(invocations)]


def test_fixed_schedules_come_first_and_then_as_many_drawn_ones_as_were_asked_for():
    assert names(3) == ["lockstep", "mirrored", "reversed"]
    for count in (5, 6, 24, 101):
        assert len(names(count)) == len({*names(count)}) == count
    fixed = ["lockstep", "mirrored", "reversed", "serial", "subgroup-serial", "side-by-side"]
    assert names(24)[:6] == fixed
    assert {name.partition("(")[0] for name in names(24)[6:]} == {"random", "turns", "pct"}


def test_the_depths_of_pct_come_in_turn():
    depths = [int(name.rstrip(")").split(",")[1]) for name in names(30) if name.startswith("pct")]
    assert depths == [1, 2, 3, 1, 2, 3, 1, 2]


def test_more_schedules_begin_with_the_same_ones():
    assert names(100)[:24] == names(24)


def test_seeds_count_from_the_one_given():
    assert {int(each) for name in names(24, seed=7) for each in re.findall(r"\((\d+)", name)} == {*range(7, 13)}


def test_every_name_is_a_schedule():
    for name in names(24):
        assert simulated(RIGHT, schedule=name, probes="none").finished == 2


@pytest.mark.parametrize(("size", "grid"), [(1, 1), (1, 3), (3, 1), (32, 1)])
def test_every_schedule_runs_few_invocations_to_the_end(size, grid):
    count = size * grid
    for name in names(24):
        run = simulated(f"{RIGHT} y[at] += 1u;", size=size, grid=grid, schedule=name, probes="none")
        assert run.outputs["y"][:count].tolist() == [3 * at + 1 for at in range(count)]
        assert run.outputs["n"][0] == 3 * count * (count - 1) // 2


def test_many_invocations_are_not_run_one_by_one():
    assert "serial" in names(6, invocations=1 << 16)
    assert "serial" not in names(6, invocations=(1 << 16) + 1)
    assert names(5, invocations=1 << 20) == ["lockstep", "mirrored", "subgroup-serial", "side-by-side", "random(0)"]
    assert len(names(100, invocations=1 << 20)) == 100


@pytest.mark.parametrize(("count", "seed"), [(0, 0), (-1, 0), (1 << 30, 0), (2, -1)])
def test_bad_numbers_are_errors(count, seed):
    with pytest.raises(bankshot.WgslError, match="schedules are 1 to"):
        Schedules(count, seed)


def test_all_schedules_agree_on_a_kernel_that_depends_on_no_order():
    run = simulated(RIGHT, schedules=Schedules(24, seed=5))
    assert not run.findings
    assert run.agreement is not None
    assert run.agreement.complete
    assert not run.agreement.differing
    assert re.fullmatch(r"24 of 24 schedules agree \(seed 5, \d+\.\d s\)", str(run.agreement))


def test_without_schedules_there_is_no_agreement():
    assert simulated(RIGHT).agreement is None


def test_outputs_and_findings_are_those_of_lockstep():
    one, many = simulated(APPEND), simulated(APPEND, schedules=8)
    assert one.outputs["y"].tobytes() == many.outputs["y"].tobytes()
    assert [f.code for f in one.findings] == [f.code for f in many.findings] == ["atomic-order"]


def test_a_budget_of_time_ends_it_after_one_schedule_at_least():
    agreement = simulated(RIGHT, schedules=Schedules(10_000, seconds=1e-9)).agreement
    assert agreement is not None
    assert (agreement.seen, agreement.asked, agreement.complete) == (1, 10_000, False)
    assert str(agreement).startswith("stopped after 1 of 10,000 schedules; 1 of 1 schedules agree")


# ---- whose a difference is ----


def codes(run):
    return [f.code for f in run.findings]


@pytest.mark.parametrize("body", [APPEND, RACE, HANDS_ON])
def test_a_difference_that_a_finding_explains_is_no_finding_of_its_own(body):
    once, run = simulated(body), simulated(body, schedules=12)
    assert run.agreement is not None
    assert run.agreement.differing
    assert codes(run) == codes(once)
    assert [f for f in run.findings if any("shows it again" in note.message for note in f.notes)]


def test_a_comment_that_allows_the_order_explains_it_too():
    run = simulated(f"// bankshot: allow(atomic-order) because it is a set\n{APPEND}", schedules=12)
    assert not run.findings
    assert [f.code for f in run.silenced] == ["atomic-order"]


def test_where_nothing_looks_for_races_a_difference_is_a_finding():
    run = simulated(RACE, schedules=6, probes="none")
    (finding,) = run.findings
    assert (finding.code, finding.severity, finding.outputs) == ("schedule-dependent", "error", ("y",))
    assert finding.span is not None
    assert finding.span.text == "y[0]"
    assert [f.code for f in simulated(RIGHT, schedules=6, probes="none").findings] == []


def test_where_nothing_looks_for_the_order_of_atomics_its_finding_points_at_them():
    (finding,) = simulated(APPEND, schedules=6, probes="none").findings
    assert finding.code == "atomic-order"
    assert finding.span is not None
    assert finding.span.text == "atomicAdd(&n[0], 1u)"


def test_outputs_that_change_for_several_reasons_are_findings_of_their_own():
    run = simulated(f"{RACE} atomicStore(&n[1], at);", schedules=6, probes="none")
    assert {finding.outputs: finding.code for finding in run.findings} == {
        ("y",): "schedule-dependent", ("n",): "atomic-order",
    }  # fmt: skip
    assert all("shows it again" in finding.notes[-1].message for finding in run.findings)


def test_a_comment_may_allow_what_only_schedules_show():
    allowed = f"// bankshot: allow(schedule-dependent) because any will do\n{RACE}"
    run = simulated(allowed, schedules=6, probes="none")
    assert not run.findings
    assert [f.code for f in run.silenced] == ["schedule-dependent"]
    assert not simulated(allowed, probes="none").findings


def test_a_race_that_a_schedule_shows_is_not_unseen(monkeypatch):
    from bankshot.sim.findings import reruns

    def none(launch, outcome, part):
        return []

    monkeypatch.setitem(reruns.REPLAYS, "schedules", (none, "in any of {orders} orders"))
    unseen = simulated(RACE, size=1, cures=False).findings
    seen = simulated(RACE, size=1, schedules=6, cures=False).findings
    assert [(f.severity, f.verdict) for f in unseen] == [("warning", "unseen")] * 2
    assert [(f.severity, f.verdict) for f in seen] == [("error", "harmful")] * 2
    assert not any("in any of" in note.message for f in seen for note in f.notes)


# ---- what shows it again ----


def shown(run):
    notes = [note.message for f in run.findings for note in f.notes]
    return next(note for note in notes if "show" in note or "to see it" in note)


def test_the_argument_that_a_note_names_shows_the_difference():
    run = simulated(RACE, grid=(8, 4), schedules=6, probes="none")
    found = re.fullmatch(r'schedule="(.*)", grid=(\d+) shows it again', shown(run))
    assert found
    grid = int(found[2])
    assert grid < 32
    before, after = (simulated(RACE, grid=grid, schedule=s).outputs["y"] for s in ("lockstep", found[1]))
    assert before.tobytes() != after.tobytes()


def test_the_grid_is_as_small_as_shows_it():
    body = "if w.x >= 5u { y[0] = y[0] * 3u + w.x; }"
    assert "grid=8 shows" in shown(simulated(body, size=1, grid=64, schedules=6, probes="none"))
    assert "grid" not in shown(simulated(body, size=1, grid=7, schedules=6, probes="none"))


def test_a_sample_of_workgroups_shows_it_in_the_whole_grid():
    said = shown(simulated(RACE, grid=8, workgroups=4, schedules=6, probes="none"))
    assert said.startswith('schedule="')
    assert "grid" not in said


def test_the_first_schedule_that_shows_it_is_named():
    run = simulated(RACE, schedules=6, probes="none")
    assert run.agreement is not None
    assert f'schedule="{run.agreement.differing[0]}"' in shown(run)


def test_a_command_is_repeated_with_the_grid_and_the_schedule():
    wanted = Schedules(6, command=("bankshot", "run", "a b.wgsl", "--bind", "y=u32:0"), grid=True)
    said = shown(simulated(RACE, schedules=wanted, probes="none"))
    assert said == """to see it: bankshot run 'a b.wgsl' --bind y=u32:0 --grid 2 --schedule "mirrored\""""


# ---- loops ----


def test_a_schedule_under_which_a_loop_does_not_end_is_counted_apart():
    body = "let v = atomicLoad(&n[0]); atomicStore(&n[0], w.x + 1u); for (var k = 0u; v == 2u; k++) { y[at] = k; }"
    run = simulated(body, size=1, schedules=3)
    assert run.agreement is not None
    assert (run.agreement.differing, run.agreement.endless) == (("mirrored",), ("reversed",))
    words = "1 of 3 schedules agree; 1 with other outputs, the first is mirrored; 1 endless, the first is reversed"
    assert str(run.agreement).startswith(words)


def test_a_run_that_did_not_end_is_not_compared():
    run = simulated("loop { if atomicLoad(&n[0]) == 1u { break; } }", schedules=4, budget=1000)
    assert "endless-loop" in codes(run)
    assert run.agreement is None


def test_names_are_drawn_without_making_all():
    assert [*islice(Schedules(1 << 20).names(64), 2)] == ["lockstep", "mirrored"]


@pytest.mark.parametrize("size", [1, 32])
def test_all_schedules_agree_on_a_look_back_and_none_is_endless(size):
    body = """
    if i == 0u {
        var sum = w.x + 1u;
        if w.x > 0u {
            loop { let before = atomicLoad(&n[w.x - 1u]); if before != 0u { sum += before; break; } }
        }
        atomicStore(&n[w.x], sum);
        y[w.x] = sum;
    }"""
    run = simulated(body, size=size, grid=4, schedules=24)
    assert not run.findings
    assert run.outputs["y"][:4].tolist() == [1, 3, 6, 10]
    assert str(run.agreement).startswith("24 of 24 schedules agree")


def test_a_choice_at_an_atomic_shows_in_drawn_schedules():
    """Two updates that are lost only if another invocation goes on between a load and a store."""
    body = "let v = atomicLoad(&n[0]); atomicStore(&n[0], v + 1u);"
    run = simulated(body, size=2, grid=1, schedules=24)
    assert run.agreement is not None
    assert any(name.startswith("random") for name in run.agreement.differing)
    assert codes(run) == ["atomic-order"]


def test_the_smaller_grids_together_are_no_larger_than_the_grid():
    assert _smaller((4, 4, 1)) == [(1, 1, 1), (1, 2, 1), (2, 1, 1), (1, 4, 1), (2, 2, 1)]  # 13; (4, 1, 1) makes 17
    assert _smaller((3, 1, 1)) == [(1, 1, 1), (2, 1, 1)]  # 3
    assert _smaller((1, 1, 3)) == [(1, 1, 1), (1, 1, 2)]
    assert _smaller((5, 1, 1)) == [(1, 1, 1), (2, 1, 1)]
    assert _smaller((7, 1, 1)) == [(1, 1, 1), (2, 1, 1), (4, 1, 1)]
    assert _smaller((1, 1, 1)) == []

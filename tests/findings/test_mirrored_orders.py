"""Which reruns decide verdicts: those that may change an output, while their work fits the limit.

The reruns of all findings share the limit. What no rerun has shown is not called unseen.
"""

from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings.effort import Effort
from bankshot.sim.findings.reruns import same_if_mirrored
from bankshot.sim.launch.schedules import MIRRORED
from bankshot.sim.run import dispatch as dispatches
from bankshot.sim.run.prepared import dispatch_of
from tests.findings.test_random_accesses import make, make_on_one_word
from tests.findings.test_random_accesses import run as run_steps

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<storage, read_write> z: array<u32>;
@group(0) @binding(3) var<storage, read_write> n: atomic<u32>;
var<workgroup> t: array<u32, 64>;
var<workgroup> s: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) w: vec3u, @builtin(local_invocation_index) i: u32) {
    let at = w.x * 64u + i; _ = &x; _ = &y; _ = &z; _ = &n; _ = &t; _ = &s;
"""
LONG = "var v = 0u; for (var k = 0u; k < 3000u; k++) { v = v * 3u + k; }"


def bindings(groups: int) -> dict[str, Any]:
    count = groups * 64
    return {
        "x": np.arange(count, dtype=np.uint32),
        "y": np.zeros(count, np.uint32),
        "z": np.zeros(count, np.uint32),
        "n": np.zeros(1, np.uint32),
    }


def run(body: str, groups: int = 4, **options: Any) -> bankshot.Run:
    return bankshot.simulate(f"{HEAD}{body}\n}}", grid=groups, bindings=bindings(groups), cures=False, **options)


def proven(body: str, probes: tuple[str, ...] = ("races", "bounds")) -> bool:
    given = dispatch_of(bankshot.check(f"enable subgroups; {HEAD}{body}\n}}"), grid=4, bindings=bindings(4))
    return same_if_mirrored(*given.run(frozenset(probes)))


# ---- mirrored order ----


@pytest.mark.parametrize("seed", range(60))
def test_mirrored_order_changes_nothing_where_that_is_proven(seed: int) -> None:
    size, groups = ((8, 3), (13, 5), (32, 4), (64, 3))[seed % 4]
    done = run_steps((make, make_on_one_word)[seed % 3 == 0](seed, size, groups), size, groups, replay=False)
    if same_if_mirrored(*done.dispatch.run(frozenset(("races", "bounds")))):
        again, _ = done.dispatch.run(frozenset(), schedule=MIRRORED)
        assert {k: v.tobytes() for k, v in again.outputs().items()} == {
            k: np.asarray(v).tobytes() for k, v in done.outputs.items()
        }


def test_mirrored_order_is_proven_where_loads_race_with_stores() -> None:
    assert proven("t[i] = i; z[at] = t[63u - i];")
    assert proven("z[at] = at;")


@pytest.mark.parametrize(
    "body",
    [
        "z[w.x * 64u] = i;",  # one operation stores several values
        "t[i / 2u] = i; workgroupBarrier(); z[at] = t[i / 2u];",
        "z[at % 64u] = w.x;",  # workgroups meet
        "z[at] = atomicAdd(&n, 1u);",  # the order decides what it returns
        "z[at + 60u] = at;",  # all past the end store to the last
        "z[at] = subgroupAdd(i);",  # lanes stay in the order of their subgroup
    ],
)
def test_mirrored_order_is_not_proven_where_it_may_matter(body: str) -> None:
    assert not proven(body)


def test_nothing_is_proven_that_was_not_watched() -> None:
    body = "t[i] = i; z[at] = t[63u - i];"
    assert not proven(body, ("races",))
    assert not proven(body, ("bounds",))


def test_a_proven_order_counts_as_one_that_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    orders: list[str] = []
    runs = dispatches.Dispatch.run

    def noted(self: Any, *args: Any, **changes: Any) -> Any:
        orders.append(changes["schedule"].name if "schedule" in changes else "")
        return runs(self, *args, **changes)

    monkeypatch.setattr(dispatches.Dispatch, "run", noted)
    (race,) = run("t[i] = i; let old = t[63u - i]; z[at] = min(old, 0u);", probes=("races", "bounds")).findings
    assert race.verdict == "unseen"
    assert race.notes[-1].message == "no output changes in any of 5 orders"
    assert "mirrored" not in orders
    assert "reversed" in orders


# ---- the limit ----


def test_reruns_of_all_findings_share_the_limit() -> None:
    effort = Effort(1 << 24)
    assert effort.take(1 << 23)
    assert not effort.take(1 + (1 << 23))
    assert effort.take(1 << 23)
    assert not effort.take(1)


MANY = "".join(f"var<workgroup> u{k}: u32;" for k in range(12))
UNWRITTEN = " ".join(f"if u{k} == 12345u {{ v += 1u; }}" for k in range(12))


def many(**options: Any) -> list[bankshot.Finding]:
    text = f"{MANY}{HEAD}{LONG} {UNWRITTEN} z[at] = v;\n}}"
    found = bankshot.simulate(text, grid=64, bindings=bindings(64), probes="uninit", **options).findings
    assert len(found) == 12
    return found


def test_what_was_not_tried_is_not_called_unseen() -> None:
    found = many()
    verdicts = [each.verdict for each in found]
    assert verdicts == ["unseen"] * verdicts.count("unseen") + [None] * verdicts.count(None)
    assert 0 < verdicts.count(None) < 12
    words = "whether it changes an output was not tried: it takes too long without --thorough"
    assert {each.notes[-1].message for each in found if each.verdict is None} == {words}


def test_fewer_reruns_are_named() -> None:
    partly = [each.notes[-1].message for each in many() if "more take too long" in each.notes[-1].message]
    assert partly
    assert all("no output changes with NaNs in memory that was never written" in each for each in partly)


def test_thorough_runs_decide_all() -> None:
    assert {each.verdict for each in many(replay="thorough")} == {"unseen"}


def test_other_data_that_take_too_long_are_named() -> None:
    (race,) = run(LONG + "z[w.x] = v + x[w.x] * 0u;", 64, probes="races").findings
    assert race.verdict == "same-value"
    assert not any("too long" in note.message for note in race.notes)


# ---- what is found once ----


def test_a_load_of_many_elements_is_one_finding() -> None:
    text = """
        @group(0) @binding(0) var<storage, read_write> y: array<u32, 64>;
        var<workgroup> t: array<u32, 64>;
        @compute @workgroup_size(4) fn main() { y = t; }"""
    found = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(64, np.uint32)}, probes="uninit").findings
    assert [(each.code, each.count, each.verdict) for each in found] == [("uninit", 4, "harmful")]


def test_influences_are_found_once_for_each_program(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Any] = []
    monkeypatch.setattr(
        dispatches, "find_influence", lambda lowered, find=dispatches.find_influence: found.append(1) or find(lowered)
    )
    module = bankshot.check(f"{HEAD}t[i] = i; z[at] = t[63u - i];\n}}")
    for _ in range(3):
        done = bankshot.simulate(module, grid=4, bindings=bindings(4), probes="all")
        assert "race" in {each.code for each in done.findings}
    assert len(found) == 1

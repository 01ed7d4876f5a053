"""When a batch that pauses in a loop goes on with more work, is compared with a snapshot, or stops."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bankshot.sim.launch import long_loops
from bankshot.sim.launch.long_loops import UNLIMITED, LongLoops, PausedBatch
from bankshot.sim.machine import layout as at

WORK = 1 << 20
MEMORY = {"registers": np.arange(4), "workgroup": np.arange(2), "storage": np.arange(10)}


def loops(
    *, awaited: bool = False, ends: Any = None, may_repeat: bool = False, spaces: frozenset[str] = frozenset()
) -> LongLoops:
    program: Any = SimpleNamespace(loops=[(None, ["flag"] if awaited else [])])
    return LongLoops(program, WORK, ends, may_repeat, {0: spaces})


def paused(given: int, left: int = 0, limit: int = WORK, **values: int) -> PausedBatch:
    progress = at.PROGRESS.new()
    progress[at.PAUSED], progress[at.WORK_LEFT] = 1, left
    for name, value in values.items():
        progress[getattr(at, name)] = value
    return PausedBatch(3, progress, given, limit)


def goes_on(of: LongLoops, batch: PausedBatch, memory: Any = None) -> tuple[bool, list[Any]]:
    kept: list[Any] = []
    return of.goes_on(batch, memory or MEMORY, kept.append), kept


@pytest.mark.parametrize(
    ("given", "left", "then"),
    [(100, 0, 200), (100, 40, 120), (WORK // 2, 0, WORK), (WORK // 2 + 9, 0, WORK), (WORK - 1, 0, WORK)],
)
def test_it_goes_on_with_twice_the_work_up_to_the_limit(
    monkeypatch: pytest.MonkeyPatch, given: int, left: int, then: int
) -> None:
    monkeypatch.setattr(long_loops, "_PER_WORD", WORK)  # no snapshot is worth it
    batch = paused(given, left)
    assert goes_on(loops(), batch) == (True, [])
    assert (batch.given, batch.progress[at.WORK_LEFT], batch.is_compared) == (then, then - (given - left), False)


@pytest.mark.parametrize("values", [{"REPEATED": 1}, {"BUDGET_LEFT": -1}])
def test_it_stops_where_its_state_repeats_or_its_budget_ends(values: dict[str, int]) -> None:
    assert goes_on(loops(), paused(100, **values)) == (False, [])
    assert goes_on(loops(), paused(100, BUDGET_LEFT=0))[0]


def test_it_stops_at_the_limit() -> None:
    assert not goes_on(loops(), paused(WORK))[0]
    assert goes_on(loops(), paused(WORK, left=1))[0]


@pytest.mark.parametrize(
    ("awaited", "may_repeat", "given", "on"),
    [
        (True, True, WORK // 16, False),  # others may have to take turns with it
        (True, True, WORK // 16 - 1, True),
        (True, False, WORK // 16, True),
        (False, True, WORK // 16, True),
    ],
)
def test_a_loop_that_waits_stops_earlier(awaited: bool, may_repeat: bool, given: int, on: bool) -> None:
    assert goes_on(loops(awaited=awaited, may_repeat=may_repeat), paused(given))[0] == on


def test_beyond_the_limit_it_goes_on_where_it_ends_without_probes() -> None:
    asked: list[int] = []
    batch = paused(WORK)
    assert goes_on(loops(ends=asked.append), batch)[0]
    assert (asked, batch.limit, batch.unwatched) == ([3], UNLIMITED, None)
    stopped: Any = SimpleNamespace()
    batch = paused(WORK)
    assert not goes_on(loops(ends=lambda place: stopped), batch)[0]
    assert batch.unwatched is stopped


@pytest.mark.parametrize(
    ("spaces", "words"), [(frozenset[str](), 6), (frozenset(("workgroup",)), 6), (frozenset(("storage",)), 16)]
)
def test_a_snapshot_has_what_the_loop_depends_on_and_costs_64_for_a_word(spaces: frozenset[str], words: int) -> None:
    of, whole = loops(spaces=spaces), [*range(4), *range(2), *range(10)][:words]
    assert goes_on(of, paused(64 * words - 1)) == (True, [])
    batch = paused(64 * words)
    on, (snapshot,) = goes_on(of, batch)
    assert (on, snapshot.tolist(), batch.is_compared) == (True, whole, True)
    assert batch.progress[at.AT_LOOP] == 0
    # The next time it has been compared, and goes on without another.
    assert goes_on(of, batch) == (True, [])
    assert not batch.is_compared


@pytest.mark.parametrize(("most", "kept"), [(10, True), (9, False)])
def test_a_snapshot_of_much_storage_is_not_taken(monkeypatch: pytest.MonkeyPatch, most: int, kept: bool) -> None:
    monkeypatch.setattr(long_loops, "_MOST_STORAGE", most)
    assert bool(goes_on(loops(spaces=frozenset(("storage",))), paused(WORK - 1))[1]) == kept
    assert goes_on(loops(), paused(WORK - 1))[1]  # the state does not depend on it


@pytest.mark.parametrize(("turns", "compared"), [(0, 8), (1024, 8), (1280, 10)])
def test_the_state_is_compared_at_a_share_of_the_turns(turns: int, compared: int) -> None:
    batch = paused(WORK - 1)
    batch.progress[at.TURNS] = turns
    goes_on(loops(), batch)
    assert batch.progress[at.TO_COMPARE] == compared
    assert batch.turns is not None
    batch.progress[at.TURNS] += 30
    batch.progress[at.REPEATED] = 1
    turned = batch.stopped().turned
    assert turned is not None
    assert turned[0] == 30


def test_the_first_pause_is_no_later_than_the_limit() -> None:
    program: Any = SimpleNamespace(loops=[])
    assert LongLoops(program, 1 << 20, None, False).first_pause == 1 << 20
    assert LongLoops(program, 1 << 40, None, False).first_pause == 1 << 26

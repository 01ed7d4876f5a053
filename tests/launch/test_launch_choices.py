"""When a launch may use threads, in which order its workgroups begin, and which runs share what earlier ones showed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import bankshot
from bankshot.sim.launch import partition, run_history
from bankshot.sim.launch.launch import Launch
from bankshot.sim.launch.launch_cache import LaunchSetups
from bankshot.sim.launch.run_history import history_of
from bankshot.sim.launch.schedules import LOCKSTEP, SIDE_BY_SIDE, Schedule, schedule
from bankshot.sim.launch.threads import THREADS
from bankshot.sim.mechanisms import without
from bankshot.sim.models.devices import NVIDIA
from bankshot.sim.run.dispatch import Dispatch
from bankshot.sim.run.prepared import dispatch_of

HEAD = """
@group(0) @binding(0) var<storage, read_write> y: array<u32, 1024>;
@group(0) @binding(1) var<storage, read_write> n: atomic<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) { _ = &y; _ = &n;
"""
ALONE = "y[id.x] = id.x;"
SEEN = "y[id.x] = atomicAdd(&n, 1u);"
WAITS = "if id.x == 0u { atomicStore(&n, 1u); } while atomicLoad(&n) == 0u {} y[id.x] = 1u;"


def dispatch(body: str, grid: int = 16) -> Dispatch:
    bindings = {"y": np.zeros(1024, np.uint32), "n": np.zeros(1, np.uint32)}
    return dispatch_of(bankshot.check(f"{HEAD}{body}\n}}"), grid=grid, bindings=bindings)


def launch(body: str, *, grid: int = 16, **options: Any) -> Launch:
    made = dispatch(body, grid)
    how = replace(made.how, **options)
    program = made.run(frozenset())[0].program
    return Launch(program, made.bound, made.grid, made.device, how)


@pytest.mark.parametrize(
    ("body", "order", "asked", "threads"),
    [
        (ALONE, LOCKSTEP, 1, 1),
        (ALONE, LOCKSTEP, 4, 4),
        (ALONE, LOCKSTEP, 16, 16),
        (ALONE, LOCKSTEP, 17, 16),  # one for each workgroup
        (ALONE, schedule("mirrored"), 4, 1),
        (ALONE, SIDE_BY_SIDE, 4, 1),
        (SEEN, LOCKSTEP, 4, 1),  # workgroups see each other
    ],
)
def test_threads_run_workgroups_that_are_independent_in_the_usual_order(
    body: str, order: Schedule, asked: int, threads: int
) -> None:
    assert launch(body, schedule=order, threads=asked)._threads == threads
    with without("threads"):
        assert launch(body, schedule=order, threads=asked)._threads == 1


@pytest.mark.parametrize(
    ("body", "order", "first"),
    [
        (ALONE, "lockstep", 0),
        (ALONE, "reversed", 15),
        (SEEN, "reversed", 15),
        (WAITS, "lockstep", 0),
        (WAITS, "reversed", 0),  # that for which the others wait may not have begun
    ],
)
def test_the_workgroup_that_begins(body: str, order: str, first: int) -> None:
    assert launch(body, schedule=schedule(order)).number(0) == first


def test_a_sample_runs_in_the_order_of_the_schedule() -> None:
    chosen = np.array([3, 5, 11], np.int64)
    assert [launch(ALONE, chosen=chosen).number(place) for place in range(3)] == [3, 5, 11]
    backward = launch(ALONE, chosen=chosen, schedule=schedule("reversed"))
    assert [backward.number(place) for place in range(3)] == [11, 5, 3]


def test_the_outcome_of_one_part_is_that_of_the_run() -> None:
    _, outcome = dispatch(ALONE).run(frozenset(("lanes",)))
    assert partition.total([outcome]) is outcome


def test_runs_of_one_shape_share_their_history() -> None:
    made = dispatch(ALONE)
    program = made.run(frozenset())[0].program

    def known(grid: int = 16, **options: Any) -> object:
        return history_of(program, made.bound, (grid, 1, 1), replace(made.how, **options))

    assert known() is known()
    assert known(8) is not known()
    assert known(threads=2) is not known()
    assert known(schedule=schedule("reversed")) is not known()
    special: dict[str, Any] = {"chosen": np.arange(2), "trace": object(), "ignored": object()}
    for name, value in special.items():
        assert known(**{name: value}) is not known()
        assert known(**{name: value}) is not known(**{name: value})
    with without("history"):
        assert known() is not known()


@pytest.mark.parametrize(("short", "expected"), [(0, [2, 2]), (1e9, [2, 1])])
def test_one_thread_repeats_a_short_run(monkeypatch: pytest.MonkeyPatch, short: float, expected: list[int]) -> None:
    """The others would join too late to make up for what it takes to wake them."""
    monkeypatch.setenv(THREADS, "2")
    monkeypatch.setattr(run_history, "_SHORT", short)
    made = dispatch(ALONE)
    assert [made.run(frozenset())[0]._threads for _ in range(2)] == expected
    with without("history"):
        assert made.run(frozenset())[0]._threads == 2


@pytest.mark.parametrize(
    ("parallel", "serial", "expected"),
    [
        ([], [], False),
        ([6.0], [], True),  # tried once each way, then once more
        ([6.0], [7.0], False),
        ([6.0, 3.0], [7.0], True),
        ([6.0, 3.0], [7.0, 2.0], True),  # the least decides: the first runs may be cold
        ([6.0, 3.0], [7.0, 4.0], False),
        ([9.0], [], False),  # too long to gain by one thread
        ([0.5], [], True),
        ([0.5], [7.0, 7.0], True),
    ],
)
def test_a_short_run_is_tried_on_one_thread_and_on_several(
    monkeypatch: pytest.MonkeyPatch, parallel: list[float], serial: list[float], expected: bool
) -> None:
    monkeypatch.setattr(run_history, "_SHORT", 1)
    assert run_history.History(parallel=parallel, serial=serial).one_thread == expected
    assert run_history.History(parallel=parallel, serial=serial, threads_interfered=True).one_thread


def test_setups_are_dropped_once_they_no_longer_fit() -> None:
    """The least recently used one first."""
    programs = [dispatch(f"y[id.x] = {n}u;").run(frozenset())[0].program for n in range(3)]

    def of(cache: LaunchSetups, number: int) -> object:
        return cache.of(programs[number], NVIDIA, LOCKSTEP, "clamp", {})

    each = cast(Any, of(LaunchSetups(1 << 40), 0)).nbytes
    for room, kept in ((3 * each, 3), (3 * each - 1, 2), (2 * each, 2), (each, 1), (0, 0)):
        cache = LaunchSetups(room)
        made = [of(cache, number) for number in range(3)]
        assert cache.nbytes == kept * each
        assert [of(cache, number) is made[number] for number in range(3)[::-1]][:kept] == [True] * kept

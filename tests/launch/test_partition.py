"""The parts of a run: how many there are, which threads run them, and the order of their outcomes."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest

from bankshot.sim.launch.partition import run_parts, split
from bankshot.sim.machine import layout as at


def outcome(first, ends=False):
    races = at.RACES.new(1)
    races[at.HEADER, at.BARRIER_NEEDED] = ends
    return SimpleNamespace(first=first, races=races, stopped=None)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shadows", [1, 2])
def test_outcomes_come_in_order(threads, shadows):
    parts = [(i, i + 1) for i in range(20)]
    reported = []
    found = run_parts(
        lambda a, b, s: outcome(a), parts, threads, [s for s in range(shadows)], lambda *d: reported.append(d)
    )
    assert [each.first for each in found] == list(range(20))
    assert reported == [(i + 1, 20) for i in range(20)]


def test_the_calling_thread_works_too():
    """Of two threads one is this; they meet at a barrier."""
    both, who = threading.Barrier(2, timeout=30), set()

    def part(first, last, shadow):
        who.add(threading.current_thread())
        both.wait()
        return outcome(first)

    run_parts(part, [(0, 1), (1, 2)], 2, [None], None)
    assert len(who) == 2
    assert threading.current_thread() in who


@pytest.mark.parametrize("threads", [1, 2])
def test_a_part_may_end_the_run(threads):
    found = run_parts(lambda a, b, s: outcome(a, a == 3), [(i, i + 1) for i in range(9)], threads, [None], None)
    assert [each.first for each in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_are_raised(threads):
    def part(first, last, shadow):
        if first == 2:
            raise ZeroDivisionError
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        run_parts(part, [(i, i + 1) for i in range(6)], threads, [None], None)


def test_small_runs_are_one_part():
    assert split(0, 2, 1, 1000, loops=False) == [(0, 0)]
    assert split(64, 2, 1, 1000, loops=False) == [(0, 64)]
    assert split(64, 2, 1, 1000, loops=True) == [(0, 32), (32, 64)]


@pytest.mark.parametrize("workgroups_per_batch", [1, 8])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_parts_are_whole_batches(threads, workgroups_per_batch):
    parts = split(1000, threads, workgroups_per_batch, 1 << 20, True)
    assert [first for first, _ in parts] == [0, *(last for _, last in parts[:-1])]
    assert parts[-1][1] == 1000
    assert all((last - first) % workgroups_per_batch == 0 for first, last in parts)
    assert len(parts) <= 20 * max(2, threads)


@pytest.mark.parametrize("threads", [2, 16])
@pytest.mark.parametrize("slower", [1.0, 1.3, 2.0])
def test_no_thread_waits_long_for_the_last_part(threads, slower):
    """Threads take the next part when they are free; one of them is slower than the others."""
    count = 480
    times = [0.0] * threads
    for first, last in split(count, threads, 1, 1 << 24, True):
        free = times.index(min(times))
        times[free] += (last - first) * (slower if free == 0 else 1.0)
    assert max(times) <= 1.1 * count / (threads - 1 + 1 / slower)


@pytest.mark.parametrize("threads", [2, 3])
def test_each_thread_has_its_own_shadow(threads):
    """All threads meet at a barrier, so each has run a part."""
    everybody, seen = threading.Barrier(threads, timeout=30), []

    def part(first, last, shadow):
        seen.append((threading.current_thread(), shadow))
        everybody.wait()
        return outcome(first)

    run_parts(part, [(i, i + 1) for i in range(2 * threads)], threads, list(range(threads)), None)
    assert sorted({shadow for _, shadow in seen}) == list(range(threads))
    assert len(set(seen)) == threads


def test_the_calling_thread_runs_a_short_run_alone(monkeypatch):
    monkeypatch.setattr("bankshot.sim.launch.partition._PATIENCE", 0.5)
    who = set()

    def part(first, last, shadow):
        who.add(threading.current_thread())
        return outcome(first)

    run_parts(part, [(i, i + 1) for i in range(9)], 3, [0], None)
    assert who == {threading.current_thread()}


def test_no_thread_is_running_after_a_failure():
    """The run waits for parts that have begun."""
    begun, ended = threading.Event(), []

    def part(first, last, shadow):
        if first == 0:
            begun.wait(30)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.05)
        ended.append(first)
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        run_parts(part, [(0, 1), (1, 2)], 2, [0], None)
    assert ended == [1]

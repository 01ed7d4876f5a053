"""The parts of a run: how many there are, which threads run them, and the order of their outcomes."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.sim.launch import partition
from bankshot.sim.launch.partition import run_parts, split
from bankshot.sim.machine import layout as at


def outcome(first, ends=False):
    races = at.RACES.new(1)
    races[at.HEADER, at.BARRIER_NEEDED] = ends
    return SimpleNamespace(first=first, races=races, stopped=None)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_outcomes_come_in_order(threads):
    parts = [(i, i + 1) for i in range(20)]
    reported = []
    found = run_parts(lambda a, b, s: outcome(a), parts, threads, lambda *d: reported.append(d))
    assert [each.first for each in found] == list(range(20))
    assert reported == [(i + 1, 20) for i in range(20)]


def test_the_calling_thread_works_too():
    """Of two threads one is this; they meet at a barrier."""
    both, who = threading.Barrier(2, timeout=30), set()

    def part(first, last, thread):
        who.add(threading.current_thread())
        both.wait()
        return outcome(first)

    run_parts(part, [(0, 1), (1, 2)], 2, None)
    assert len(who) == 2
    assert threading.current_thread() in who


@pytest.mark.parametrize("threads", [1, 2])
def test_a_part_may_end_the_run(threads):
    found = run_parts(lambda a, b, s: outcome(a, a == 3), [(i, i + 1) for i in range(9)], threads, None)
    assert [each.first for each in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_are_raised(threads):
    def part(first, last, thread):
        if first == 2:
            raise ZeroDivisionError
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        run_parts(part, [(i, i + 1) for i in range(6)], threads, None)


def test_small_runs_are_one_part():
    assert split(0, 2, 1, 1000, loops=False) == [(0, 0)]
    assert split(64, 2, 1, 1000, loops=False) == [(0, 64)]
    assert split(64, 2, 1, 1000, loops=True) == [(0, 32), (32, 64)]


WORK = 1 << 22  # what makes a workgroup worth a part of its own; 1 << 28 where one thread runs all


@pytest.mark.parametrize(
    ("count", "threads", "batch", "work", "loops", "sizes"),
    [
        (12, 2, 1, WORK, False, [2, 2, 2, 1, 1, 1, 1, 1, 1]),  # a sixth of what is left
        (12, 2, 4, WORK, False, [4, 4, 4]),
        (10, 2, 4, WORK, False, [4, 4, 2]),
        (12, 1, 1, WORK, False, [12]),
        (12, 1, 1, 64 * WORK, False, [4, 3, 2, 1, 1, 1]),  # a third of what is left
        (12, 2, 1, WORK // 16, True, [2, 2, 2, 1, 1, 1, 1, 1, 1]),  # 16 iterations are assumed
        (12, 2, 1, WORK // 16, False, [12]),
        (12, 2, 1, WORK // 4, False, [4, 4, 4]),  # three parts are worth it
        (12, 2, 1, 1, True, [6, 6]),  # a loop may take long: a part for each thread
        (12, 1, 1, 1, True, [12]),
        (3, 8, 1, 1, True, [1, 1, 1]),
    ],
)
def test_a_part_is_a_share_of_what_is_left(count, threads, batch, work, loops, sizes):
    assert [last - first for first, last in split(count, threads, batch, work, loops)] == sizes


def test_the_smallest_part_is_a_64th_of_what_a_thread_runs():
    sizes = [last - first for first, last in split(1280, 1, 1, 1 << 40, False)]
    assert min(sizes[:-1]) == 20
    assert sizes[0] == 427  # a third
    assert sum(sizes) == 1280


def test_counts_of_parts_add_up_and_the_rest_is_of_the_first_part_that_counts():
    """Columns: a place, how often, a value of the first occurrence."""
    none = np.array([[1, 0, 0], [2, 0, 0], [3, 0, 0]])
    one = np.array([[1, 2, 50], [2, 0, 0], [3, 0, 0]])
    other = np.array([[1, 3, 60], [2, 4, 70], [3, 0, 0]])
    assert partition._added([none, one, other], 1).tolist() == [[1, 5, 50], [2, 4, 70], [3, 0, 0]]
    assert partition._added([other, none, one], 1).tolist() == [[1, 5, 60], [2, 4, 70], [3, 0, 0]]
    assert partition._added([none, none], 1).tolist() == none.tolist()


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
def test_each_thread_has_a_number(threads):
    """All threads meet at a barrier, so each has run a part."""
    everybody, seen = threading.Barrier(threads, timeout=30), []

    def part(first, last, thread):
        seen.append((threading.current_thread(), thread))
        everybody.wait()
        return outcome(first)

    run_parts(part, [(i, i + 1) for i in range(2 * threads)], threads, None)
    assert sorted({number for _, number in seen}) == list(range(threads))
    assert len(set(seen)) == threads


def test_the_calling_thread_runs_a_short_run_alone(monkeypatch):
    monkeypatch.setattr("bankshot.sim.launch.partition._PATIENCE", 0.5)
    who = set()

    def part(first, last, thread):
        who.add(threading.current_thread())
        return outcome(first)

    run_parts(part, [(i, i + 1) for i in range(7)], 3, None)
    assert who == {threading.current_thread()}


def test_other_threads_join_a_long_run_at_once(monkeypatch):
    """The first part of the calling thread ends when another thread has begun, which would otherwise sleep."""
    monkeypatch.setattr("bankshot.sim.launch.partition._PATIENCE", 60)
    joined = threading.Event()

    def part(first, last, thread):
        if threading.current_thread() is not threading.main_thread():
            joined.set()
        assert joined.wait(30)
        return outcome(first)

    run_parts(part, [(i, i + 1) for i in range(8)], 2, None)
    assert joined.is_set()


def test_no_thread_is_running_after_a_failure():
    """The run waits for parts that have begun."""
    begun, ended = threading.Event(), []

    def part(first, last, thread):
        if first == 0:
            begun.wait(30)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.05)
        ended.append(first)
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        run_parts(part, [(0, 1), (1, 2)], 2, None)
    assert ended == [1]

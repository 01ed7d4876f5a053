"""A run in pieces: how many there are, who works on them, and that their outcomes come in order."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from bankshot.sim.launch.partition import in_pieces, in_threads
from bankshot.sim.machine import layout as at


def outcome(first, ends=False):
    races = np.zeros((1, at.RACE_SIZE), np.int64)
    races[0, at.NEEDED] = ends
    return SimpleNamespace(first=first, races=races)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shadows", [1, 2])
def test_outcomes_come_in_order(threads, shadows):
    pieces = [(i, i + 1) for i in range(20)]
    told = []
    found = in_threads(
        lambda a, b, s: outcome(a), pieces, threads, [s for s in range(shadows)], lambda *d: told.append(d)
    )
    assert [each.first for each in found] == list(range(20))
    assert told == [(i + 1, 20) for i in range(20)]


def test_the_thread_that_asks_works_too():
    """Of two threads one is this: both have to be there at once."""
    both, who = threading.Barrier(2, timeout=30), set()

    def piece(first, last, shadow):
        who.add(threading.current_thread())
        both.wait()
        return outcome(first)

    in_threads(piece, [(0, 1), (1, 2)], 2, [None], None)
    assert len(who) == 2
    assert threading.current_thread() in who


@pytest.mark.parametrize("threads", [1, 2])
def test_a_piece_may_end_the_run(threads):
    found = in_threads(lambda a, b, s: outcome(a, a == 3), [(i, i + 1) for i in range(9)], threads, [None], None)
    assert [each.first for each in found] == [0, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_fails_is_told(threads):
    def piece(first, last, shadow):
        if first == 2:
            raise ZeroDivisionError
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        in_threads(piece, [(i, i + 1) for i in range(6)], threads, [None], None)


def test_what_is_little_is_not_cut():
    assert in_pieces(0, 2, 1, 1000, loops=False) == [(0, 0)]
    assert in_pieces(64, 2, 1, 1000, loops=False) == [(0, 64)]
    assert in_pieces(64, 2, 1, 1000, loops=True) == [(0, 32), (32, 64)]


@pytest.mark.parametrize("workgroups_per_batch", [1, 8])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_pieces_are_whole_batches(threads, workgroups_per_batch):
    pieces = in_pieces(1000, threads, workgroups_per_batch, 1 << 20, True)
    assert [first for first, _ in pieces] == [0, *(last for _, last in pieces[:-1])]
    assert pieces[-1][1] == 1000
    assert all((last - first) % workgroups_per_batch == 0 for first, last in pieces)
    assert len(pieces) <= 20 * max(2, threads)


@pytest.mark.parametrize("threads", [2, 16])
@pytest.mark.parametrize("slower", [1.0, 1.3, 2.0])
def test_no_thread_waits_long_for_the_last_piece(threads, slower):
    """Threads that take the next piece when they are free, one of them slower than the others."""
    count = 480
    times = [0.0] * threads
    for first, last in in_pieces(count, threads, 1, 1 << 24, True):
        free = times.index(min(times))
        times[free] += (last - first) * (slower if free == 0 else 1.0)
    assert max(times) <= 1.1 * count / (threads - 1 + 1 / slower)


@pytest.mark.parametrize("threads", [2, 3])
def test_each_thread_has_a_shadow_of_its_own(threads):
    """All threads are there at once, so that each has had a piece."""
    everybody, seen = threading.Barrier(threads, timeout=30), []

    def piece(first, last, shadow):
        seen.append((threading.current_thread(), shadow))
        everybody.wait()
        return outcome(first)

    in_threads(piece, [(i, i + 1) for i in range(2 * threads)], threads, list(range(threads)), None)
    assert sorted({shadow for _, shadow in seen}) == list(range(threads))
    assert len(set(seen)) == threads


def test_a_run_that_is_over_at_once_is_left_to_the_thread_that_asks(monkeypatch):
    monkeypatch.setattr("bankshot.sim.launch.partition._PATIENCE", 0.5)
    who = set()

    def piece(first, last, shadow):
        who.add(threading.current_thread())
        return outcome(first)

    in_threads(piece, [(i, i + 1) for i in range(9)], 3, [0], None)
    assert who == {threading.current_thread()}


def test_nobody_is_at_work_when_a_run_has_failed():
    """What others have begun is waited for."""
    begun, ended = threading.Event(), []

    def piece(first, last, shadow):
        if first == 0:
            begun.wait(30)
            raise ZeroDivisionError
        begun.set()
        time.sleep(0.05)
        ended.append(first)
        return outcome(first)

    with pytest.raises(ZeroDivisionError):
        in_threads(piece, [(0, 1), (1, 2)], 2, [0], None)
    assert ended == [1]

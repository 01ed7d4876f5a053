"""A run in pieces: what the machine needs to work on one, what it leaves, and what all have left together."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from queue import SimpleQueue
from time import sleep

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity
from ..machine import layout as at
from .race_tables import merged_races
from .threads import pool


@entity
class Outcome:
    """What the machine counted: see `layout` for the rows. `finished`: workgroups that ran to their end."""

    blocks: NDArray[np.int64]
    tallies: NDArray[np.int64]
    bounds: NDArray[np.int64]
    reached: NDArray[np.int64]  # of one piece, as are the margins
    margins: NDArray[np.int64]
    events: NDArray[np.int64]
    races: NDArray[np.int64]
    unwritten: NDArray[np.int64]
    checks: NDArray[np.int64]
    trace: NDArray[np.int64]
    worked: int
    finished: int
    jumps: int  # backward, the most that a batch took


_WORTH = 1 << 22  # instructions, by lanes: below, a piece takes as long to hand out as to work on
_PATIENCE = 2e-4  # seconds that other threads leave a run to the one that asks: to work with it costs as much
_TURNS = 16  # that a program with loops is taken to make of them
_SHARE = 3  # a piece is this part of what is left for a thread
_SMALLEST = 64  # of what a thread does in all, the part that the smallest piece is


def in_threads(
    piece: Callable[[int, int, int], Outcome],
    pieces: list[tuple[int, int]],
    threads: int,
    shadows: list[int],
    progress: Callable[[int, int], None] | None,
) -> list[Outcome]:
    """The outcomes of all pieces in order, up to the first that ends the run. A piece is told the number of a shadow:
    one of several is one thread's alone. Of a small run this thread has done all before others begin."""
    outcomes: list[Outcome] = []
    with closing(_outcomes(piece, pieces, threads, shadows)) as found:
        for (_, last), outcome in zip(pieces, found, strict=False):
            outcomes.append(outcome)
            if progress:
                progress(last, pieces[-1][1])
            if outcome.races[0, at.NEEDED]:
                break
    return outcomes


def _outcomes(
    piece: Callable[[int, int, int], Outcome], pieces: list[tuple[int, int]], threads: int, shadows: list[int]
) -> Generator[Outcome]:
    """What comes of the pieces. Where it is closed before its end, those that have not begun do not begin."""
    own = len(shadows) > 1  # each thread has one; else nothing is noted there
    threads = min(threads, len(pieces), len(shadows) if own else threads)
    left = iter(range(len(pieces)))  # whoever has time takes the next; no other thread can come between
    told: SimpleQueue[tuple[int, Outcome | None, BaseException | None]] = SimpleQueue()

    def help_out(shadow: int) -> None:
        sleep(_PATIENCE)
        for place in left:
            try:
                told.put((place, piece(*pieces[place], shadow), None))
            except BaseException as error:
                told.put((place, None, error))

    jobs = [pool(threads - 1).submit(help_out, shadows[i if own else 0]) for i in range(1, threads)]
    known: dict[int, tuple[Outcome | None, BaseException | None]] = {}
    mine = heard = 0
    try:
        for place in range(len(pieces)):
            while place not in known:
                if (taken := next(left, None)) is not None:
                    mine += 1
                    known[taken] = piece(*pieces[taken], shadows[0]), None
                else:
                    number, outcome, error = told.get()
                    heard += 1
                    known[number] = outcome, error
            outcome, error = known.pop(place)
            if outcome is None:
                assert error is not None
                raise error
            yield outcome
    finally:
        mine += len(list(left))  # nobody takes another
        for job in jobs:
            job.cancel()
        for _ in range(len(pieces) - mine - heard):  # those that others are at
            told.get()


def in_pieces(count: int, threads: int, workgroups_per_batch: int, work: int, loops: bool) -> list[tuple[int, int]]:
    """Ranges of workgroups in whole batches, which become smaller, so that no thread waits long for the last of
    another. `work`: instructions of a workgroup, by lanes; where there are loops, how much it is nobody knows."""
    if count == 0:
        return [(0, 0)]  # an empty grid runs nothing, and counts nothing
    threads = max(threads, 2)
    least, turns = (threads, _TURNS) if loops else (1, 1)
    worth = max(least, count * work * turns // _WORTH)  # pieces
    smallest = -(-count // min(count, worth, _SMALLEST * threads))
    ends = [0]
    while (left := count - ends[-1]) > 0:
        size = max(smallest, -(-left // (_SHARE * threads)))
        ends.append(min(count, ends[-1] + -(-size // workgroups_per_batch) * workgroups_per_batch))
    return list(pairwise(ends))


def times(outcome: Outcome, count: int) -> Outcome:
    """What `count` workgroups leave that all do what one of them did."""
    for table, column in (
        *((outcome.blocks, slice(None)), (outcome.tallies, slice(None)), (outcome.bounds, at.OUTSIDE)),
        *((outcome.events[1:], at.TIMES), (outcome.unwritten, at.OUTSIDE), (outcome.checks, at.CHECK_TIMES)),
    ):
        table[:, column] *= count
    return replace(outcome, worked=outcome.worked * count, finished=outcome.finished * count)


def total(outcomes: list[Outcome]) -> Outcome:
    """What several pieces of a run, in its order, have left together."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    events = np.concatenate([first.events[:1], *(each.events[1 : 1 + int(each.events[0, 0])] for each in outcomes)])
    events[0, 0] = len(events) - 1
    return replace(
        first,
        blocks=reduce(np.add, [each.blocks for each in outcomes]),
        tallies=reduce(np.add, [each.tallies for each in outcomes]),
        bounds=_added([each.bounds for each in outcomes]),
        events=events,
        races=reduce(merged_races, [each.races for each in outcomes if each.races[0].any()] or [first.races]),
        unwritten=_added([each.unwritten for each in outcomes]),
        checks=_added([each.checks for each in outcomes]),
        trace=next(
            (each.trace for each in outcomes if each.trace[0, 0]), first.trace
        ),  # of one workgroup, in one piece
        worked=sum(each.worked for each in outcomes),
        finished=sum(each.finished for each in outcomes),
        jumps=max(each.jumps for each in outcomes),
    )


def _added(tables: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Add up what rows count first; what they say of the first time is that of the earliest that has one."""
    if not any(each[:, 0].any() for each in tables):
        return tables[0]
    every = np.stack(tables)
    counts = every[:, :, 0]
    added = every[np.argmax(counts != 0, axis=0), np.arange(counts.shape[1])]
    added[:, 0] = counts.sum(axis=0)
    return added

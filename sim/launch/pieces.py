"""A run in pieces: what the machine needs to work on one, what it leaves, and what all have left together."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Future, wait
from contextlib import closing
from dataclasses import replace
from functools import reduce
from itertools import pairwise, starmap

import numpy as np
from numpy.typing import NDArray

from ..machine import layout as at
from ..machine.records import Shadow
from ..wgsl.records import entity
from .threads import pool
from .watching import merged_races


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
_TURNS = 16  # that a program with loops is taken to make of them
_SHARE = 3  # a piece is this part of what is left for a thread
_SMALLEST = 64  # of what a thread does in all, the part that the smallest piece is


def in_threads(
    piece: Callable[[int, int, Shadow], Outcome],
    pieces: list[tuple[int, int]],
    threads: int,
    shadows: list[Shadow],
    progress: Callable[[int, int], None] | None,
) -> list[Outcome]:
    """The outcomes of all pieces in order, up to the first that ends the run. One thread alone works on a shadow."""
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
    piece: Callable[[int, int, Shadow], Outcome], pieces: list[tuple[int, int]], threads: int, shadows: list[Shadow]
) -> Generator[Outcome]:
    """What comes of the pieces. Where it is closed before its end, so are those that have not begun."""
    work = [(*each, shadows[i % len(shadows)]) for i, each in enumerate(pieces)]
    if min(threads, len(pieces)) == 1:
        yield from starmap(piece, work)
        return
    alone = len(shadows) == 1  # nobody has one of their own, so that this thread may work on any piece
    workers = threads - 1 if alone else threads // len(shadows)
    pools = [pool(number, workers) for number in range(len(shadows))]
    jobs = [pools[i % len(pools)].submit(piece, *each) for i, each in enumerate(work)]
    try:
        yield from _shared_out(piece, work, jobs) if alone else (job.result() for job in jobs)
    finally:
        for job in jobs:
            job.cancel()
        wait(jobs)


def _shared_out(
    piece: Callable[[int, int, Shadow], Outcome], work: list[tuple[int, int, Shadow]], jobs: list[Future[Outcome]]
) -> Generator[Outcome]:
    """What comes of the jobs. While the next is not done, this thread works on those that nobody has begun: of a small
    run it has done them all before another thread wakes up."""
    own: dict[int, Outcome] = {}
    for place, job in enumerate(jobs):
        while place not in own and not job.done():
            left = next((i for i in range(place, len(jobs)) if i not in own and jobs[i].cancel()), None)
            if left is None:
                break
            own[left] = piece(*work[left])
        yield own.pop(place) if place in own else job.result()


def in_pieces(count: int, threads: int, together: int, work: int, loops: bool, dealt: bool) -> list[tuple[int, int]]:
    """Ranges of workgroups in whole batches. `work`: instructions of a workgroup, by lanes; where there are loops, how
    much it is nobody knows. `dealt`: it is settled before who works on which, so that all are alike; else they become
    smaller, and no thread waits long for the last of another."""
    if count == 0:
        return [(0, 0)]  # an empty grid runs nothing, and counts nothing
    threads = max(threads, 2)
    least, turns = (threads, _TURNS) if loops else (1, 1)
    worth = max(least, count * work * turns // _WORTH)  # pieces
    most, share = (8, count) if dealt else (_SMALLEST, _SHARE * threads)
    smallest = -(-count // min(count, worth, most * threads))
    ends = [0]
    while (left := count - ends[-1]) > 0:
        size = max(smallest, -(-left // share))
        ends.append(min(count, ends[-1] + -(-size // together) * together))
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
        blocks=np.sum([each.blocks for each in outcomes], axis=0),
        tallies=np.sum([each.tallies for each in outcomes], axis=0),
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

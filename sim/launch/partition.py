"""Dividing a run into ranges of workgroups, running them on threads, and combining their outcomes."""

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
from .long_loops import Stopped
from .race_tables import merged_races
from .threads import pool


@entity
class Outcome:
    """What the machine counted, in the tables of `layout`. `finished` workgroups ran to their end."""

    blocks: NDArray[np.int64]
    by_workgroup: NDArray[np.int64]
    tallies: NDArray[np.int64]
    bounds: NDArray[np.int64]
    reached: NDArray[np.int64]  # of one part, as are the margins
    margins: NDArray[np.int64]
    events: NDArray[np.int64]
    races: NDArray[np.int64]
    unwritten: NDArray[np.int64]
    checks: NDArray[np.int64]
    trace: NDArray[np.int64]
    worked: int
    finished: int
    jumps: int  # most backward jumps of a batch
    stopped: Stopped | None = None

    @property
    def unwatched(self) -> int:
        """How many accessed grains shadow memory had no record for."""
        return int(self.races[at.HEADER, at.UNWATCHED])


_WORTH = 1 << 22  # instructions by lanes: a smaller part takes over a tenth of its time to hand out
_WORTH_ALONE = 1 << 28  # likewise where one thread runs all parts: they only show progress, and can be interrupted
_PATIENCE = 2e-4  # seconds before other threads join the calling one: joining costs as much
_CALLING = 0  # the number of the calling thread
_LARGE = 8  # parts of a run that other threads join at once
_ITERATIONS = 16  # assumed of a program with loops
_SHARE = 3  # a part is 1/3 of what is left per thread
_SMALLEST = 64  # the smallest part is 1/64 of what a thread runs in all


def run_parts(
    run_part: Callable[[int, int, int], Outcome],
    parts: list[tuple[int, int]],
    threads: int,
    progress: Callable[[int, int], None] | None,
) -> list[Outcome]:
    """Run all parts. Returns their outcomes in order, up to the first that ends the run.

    `run_part` takes the first workgroup, the workgroup after the last, and the number of the thread. A small run is
    done before other threads begin.
    """
    outcomes: list[Outcome] = []
    (_, end), *others = reversed(parts)
    if not others:  # the machinery for threads takes as long as a small run
        (part,) = parts
        outcomes.append(run_part(*part, _CALLING))
        if progress:
            progress(end, end)
        return outcomes
    with closing(_outcomes(run_part, parts, threads)) as found:
        for (_, last), outcome in zip(parts, found, strict=False):
            outcomes.append(outcome)
            if progress:
                progress(last, end)
            if outcome.races[at.HEADER, at.BARRIER_NEEDED] or outcome.stopped is not None:
                break
    return outcomes


def _outcomes(
    run_part: Callable[[int, int, int], Outcome], parts: list[tuple[int, int]], threads: int
) -> Generator[Outcome]:
    """Yield the outcomes of the parts in order. Closing the generator cancels the parts that have not begun."""
    threads = min(threads, len(parts))
    left = iter(range(len(parts)))  # each thread takes the next; `next` is atomic
    done: SimpleQueue[tuple[int, Outcome | None, BaseException | None]] = SimpleQueue()

    def help_out(thread: int) -> None:
        if len(parts) < _LARGE:
            sleep(_PATIENCE)
        for place in left:
            try:
                done.put((place, run_part(*parts[place], thread), None))
            except BaseException as error:
                done.put((place, None, error))

    jobs = [pool(threads - 1).submit(help_out, thread) for thread in range(1, threads)]
    known: dict[int, tuple[Outcome | None, BaseException | None]] = {}
    mine = received = 0
    try:
        for place in range(len(parts)):
            while place not in known:
                if (taken := next(left, None)) is not None:
                    mine += 1
                    known[taken] = run_part(*parts[taken], _CALLING), None
                else:
                    number, outcome, error = done.get()
                    received += 1
                    known[number] = outcome, error
            outcome, error = known.pop(place)
            if outcome is None:
                assert error is not None
                raise error
            yield outcome
    finally:
        mine += len(list(left))  # so that no thread takes another
        for job in jobs:
            job.cancel()
        for _ in range(len(parts) - mine - received):  # those that other threads are running
            done.get()


def split(count: int, threads: int, workgroups_per_batch: int, work: int, loops: bool) -> list[tuple[int, int]]:
    """Divide workgroups into ranges of whole batches, of decreasing size: no thread waits long for the last of another.

    `work` is the number of instructions of a workgroup times its lanes, each loop counted once.
    """
    if count == 0:
        return [(0, 0)]  # an empty grid still has an outcome
    iterations = _ITERATIONS if loops else 1
    least, least_work = (1, _WORTH_ALONE) if threads == 1 else (threads if loops else 1, _WORTH)
    worth = max(least, count * work * iterations // least_work)
    smallest = -(-count // min(count, worth, _SMALLEST * threads))
    ends = [0]
    while (left := count - ends[-1]) > 0:
        size = max(smallest, -(-left // (_SHARE * threads)))
        ends.append(min(count, ends[-1] + -(-size // workgroups_per_batch) * workgroups_per_batch))
    return list(pairwise(ends))


def times(outcome: Outcome, count: int) -> Outcome:
    """Return the outcome of `count` workgroups that do the same as the one of this outcome."""
    for table, column in (
        *((outcome.blocks, slice(at.VISITS)), (outcome.tallies, slice(None)), (outcome.bounds, at.OUTSIDE)),
        *((outcome.events[1:], at.TIMES), (outcome.unwritten, at.OUTSIDE), (outcome.checks, at.CHECK_TIMES)),
    ):
        table[:, column] *= count
    return replace(outcome, worked=outcome.worked * count, finished=outcome.finished * count)


def total(outcomes: list[Outcome]) -> Outcome:
    """Combine the outcomes of the parts of a run, in order."""
    first = outcomes[0]
    if len(outcomes) == 1:
        return first
    events = np.concatenate(
        [first.events[:1], *(each.events[1 : 1 + int(each.events[at.HEADER, at.RECORDED])] for each in outcomes)]
    )
    events[at.HEADER, at.RECORDED] = len(events) - 1
    traced = (each.trace for each in outcomes if each.trace[at.HEADER, at.RECORDED])
    return replace(
        first,
        blocks=_added_blocks([each.blocks for each in outcomes]),
        by_workgroup=reduce(np.add, [each.by_workgroup for each in outcomes]),
        tallies=reduce(np.add, [each.tallies for each in outcomes]),
        bounds=_added([each.bounds for each in outcomes], at.OUTSIDE),
        events=events,
        races=reduce(merged_races, [each.races for each in outcomes if each.races[at.HEADER].any()] or [first.races]),
        unwritten=_added([each.unwritten for each in outcomes], at.OUTSIDE),
        checks=_added([each.checks for each in outcomes], at.CHECK_TIMES),
        trace=next(traced, first.trace),  # of one workgroup, so of one part
        worked=sum(each.worked for each in outcomes),
        finished=sum(each.finished for each in outcomes),
        jumps=max(each.jumps for each in outcomes),
        stopped=outcomes[-1].stopped,
    )


def _added_blocks(tables: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    """Add up what basic blocks counted; of the longest workgroups, keep the longest."""
    added = reduce(np.add, tables)
    added[:, at.LONGEST] = reduce(np.maximum, [each[:, at.LONGEST] for each in tables])
    return added


def _added(tables: list[NDArray[np.int64]], count: int) -> NDArray[np.int64]:
    """Add up column `count` of the tables; the other columns are those of the first table that counts anything."""
    every = np.stack(tables)
    counts = every[:, :, count]
    if not counts.any():
        return tables[0]
    added = every[np.argmax(counts != 0, axis=0), np.arange(counts.shape[1])]
    added[:, count] = counts.sum(axis=0)
    return added

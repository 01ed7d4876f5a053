"""A run in pieces: what the machine needs to work on one, what it leaves, and what all have left together."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..machine import layout as at
from ..machine.records import Shadow
from .watching import merged_races


@dataclass
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


class Desk:
    """What the machine works with, one piece of a run after the other. `ready`: see `native.machine_for`; `arguments`:
    those of `machine.core.run`, in which nothing is counted."""

    def __init__(self, ready: Callable[..., Callable[[], int]], arguments: tuple[Any, ...]) -> None:
        _, self._configs, _, _, _, _, events, _, self._places, _, _, probes, watch, _ = arguments
        self._tables = (
            *(probes.blocks, probes.tallies, probes.bounds, probes.reached, probes.margins),
            *(events, watch.races, watch.unwritten, probes.checks, probes.notes),
        )
        self._worked = probes.worked
        self._empty = [table.copy() for table in self._tables]
        self._run = ready(*arguments)

    def run(self, first: int, last: int) -> Outcome:
        """Run workgroups `first` to `last` of a launch. Registers and known patterns stay from piece to piece, as they
        do from batch to batch."""
        self._configs[:, at.FIRST], self._configs[:, at.LAST] = first, last
        self._worked[:], self._places[:] = 0, 0
        for table, empty in zip(self._tables, self._empty, strict=True):
            table[:] = empty
        finished = self._run()
        return Outcome(
            *(table.copy() for table in self._tables),
            worked=int(self._worked[1]),
            finished=finished,
            jumps=int(self._places[:, at.MOST].max()),
        )


def in_threads(
    piece: Callable[[int, int, Shadow], Outcome],
    pieces: list[tuple[int, int]],
    threads: int,
    shadows: list[Shadow],
    progress: Callable[[int, int], None] | None,
) -> list[Outcome]:
    """The outcomes of all pieces in order, up to the first that ends the run. One thread alone works on a shadow."""
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        workers = threads if len(shadows) == 1 else 1
        pools = [stack.enter_context(ThreadPoolExecutor(workers)) for _ in shadows]
        jobs = [
            pools[i % len(pools)].submit(piece, first, last, shadows[i % len(pools)])
            for i, (first, last) in enumerate(pieces)
        ]
        for (_, last), job in zip(pieces, jobs, strict=True):
            outcomes.append(job.result())
            if progress:
                progress(last, pieces[-1][1])
            if outcomes[-1].races[0, at.NEEDED]:
                for other in jobs:
                    other.cancel()
                break
    return outcomes


def in_pieces(count: int, threads: int, together: int) -> list[tuple[int, int]]:
    """Ranges of workgroups, several for each thread, none smaller than a batch."""
    if count == 0:
        return [(0, 0)]  # an empty grid runs nothing, and counts nothing
    pieces = min(count, 16 if threads == 1 else threads * 8)
    size = -(-count // pieces)
    size = -(-size // together) * together
    return [(first, min(first + size, count)) for first in range(0, count, size)]


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
    for each in outcomes[1:]:
        first.blocks += each.blocks
        first.tallies += each.tallies
        _add(first.bounds, each.bounds)
        kept = [o.events[1 : 1 + int(o.events[0, 0])] for o in (first, each)]
        first.races = merged_races(first.races, each.races)
        _add(first.unwritten, each.unwritten)
        _add(first.checks, each.checks)
        first.events = np.concatenate([first.events[:1], *kept])
        first.events[0, 0] = len(first.events) - 1
        if each.trace[0, 0]:  # one workgroup is traced, in one piece
            first.trace = each.trace
        first.worked += each.worked
        first.finished += each.finished
        first.jumps = max(first.jumps, each.jumps)
    return first


def _add(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> None:
    """Add up what rows count first; what they say of the first time is the earlier one's."""
    fresh = ours[:, 0] == 0
    ours[fresh, 1:] = theirs[fresh, 1:]
    ours[:, 0] += theirs[:, 0]

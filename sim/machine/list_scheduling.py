"""List scheduling: each place of a core takes the next job as soon as it is free."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np
from numba import types

from .compile.units import inlined, part, recorded
from .kinds import LONG, NUMBERS

_recorded = recorded(types.Tuple((NUMBERS, NUMBERS, NUMBERS)))
_FIRST = 0  # of the heap: its least entry


@inlined
def put(heap, hole, entry):
    """Put an entry into a heap from a hole on down, at the first place where no child is less."""
    count = len(heap)
    child = 2 * hole + 1
    while child < count:
        right = child + 1
        child += right < count and heap[right] < heap[child]
        if entry <= heap[child]:
            break
        heap[hole] = heap[child]
        hole, child = child, 2 * child + 1
    heap[hole] = entry


@part(LONG, returns=LONG)
def schedule(address):
    """Schedule jobs, and return the most work of a core.

    `address`: of the headers of three arrays: the work of each job, in order; as many numbers as there are places, for
    the heap; and the work of each core, which is filled in. There are as many jobs as places, or more. Places are the
    cores' in turn. Of several that are free, the first takes the next job.

    An entry of the heap is when a place is free, times the number of places, and its number: so the sum of all works
    times the number of places must be less than 2^63.
    """
    works, free, done = _recorded(address)
    places, cores = len(free), len(done)
    for core in range(cores):
        done[core] = 0
    for place in range(places):
        free[place] = works[place] * places + place
        done[place % cores] += works[place]
    for hole in range(places // 2 - 1, -1, -1):
        put(free, np.int64(hole), free[hole])
    for job in range(places, len(works)):
        soonest = free[_FIRST]
        done[soonest % places % cores] += works[job]
        put(free, np.int64(_FIRST), soonest + works[job] * places)
    most = np.int64(0)
    for core in range(cores):
        most = max(most, done[core])
    return most

"""How the work of a dispatch is divided among its workgroups, and how evenly that loads the cores of a device."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..machine.compile.loader import machine

_EVEN = 1.02  # of the mean: workgroups that execute no more than this are alike


def differing(executed: NDArray[np.int64], grid: int) -> NDArray[np.int64] | None:
    """Return what each workgroup of a grid executes, as `unevenness` takes it: None where all execute the same."""
    used = executed[:grid]
    return None if len(used) > 1 and (used == used[0]).all() else executed


def unevenness(executed: NDArray[np.int64] | None, grid: int, cores: int | None, resident: int) -> float:
    """Return how many times as long the last core takes as if all workgroups executed the same.

    `executed`: what each workgroup executes, in launch order; in a larger grid, neighbours together; None if all
    execute the same. `cores`: None if their number is not known, and they count as evenly loaded. A core holds
    `resident` workgroups, which share it equally, and takes the next one as soon as one ends. The first go to the cores
    in turn. On an H200, a Mandelbrot set of 512x512 takes 1.3 to 2 times as long as an equal division, depending
    on the shape of its workgroups.
    """
    if executed is None or cores is None:
        return 1.0
    used = executed[:grid]
    mean = int(used.sum()) / max(1, len(used))
    if used.max(initial=0) <= _EVEN * mean:
        return 1.0
    beside = max(1, resident * len(used) // grid)
    even = mean * -(-grid // cores) * len(used) / grid
    return max(1.0, _most_work(used, cores, beside) / even)


def middle_of_work(executed: NDArray[np.int64] | None, grid: int) -> int:
    """Return the number of the workgroup before and after which the others execute equally much, beyond what each of
    them executes. `executed`: as of `unevenness`."""
    if executed is None:
        return grid // 2
    used = executed[:grid]
    before = (used - used.min()).cumsum()
    most = int(before[-1])
    place = int(before.searchsorted(most // 2, "right")) if most else len(used) // 2
    return place * grid // len(used)


def _most_work(works: NDArray[np.int64], cores: int, beside: int) -> int:
    """Return the work of the core that has most: the last one to be done, as each always works at the same speed.

    While workgroups wait, each core runs `beside` of them, each at that part of its speed. Later it has fewer, which go
    faster.
    """
    return machine().schedule(np.ascontiguousarray(works), min(cores * beside, len(works)), cores)

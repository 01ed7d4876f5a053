"""The speedup of a compute-bound loop in the first-level cache on all processors: an upper bound for every other run.

Two hardware threads of one core share its execution units, so that they give far less than a speedup of two.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from bankshot.sim.launch.threads import processors

from .ways import Way, timed

WORDS = 2048  # numbers in an array: two arrays fit into the first-level cache
ALL, ONE = "a loop, every processor", "a loop, one processor"


@njit(nogil=True)
def _loop(sums: Any, factors: Any, turns: int) -> None:
    for _ in range(turns):
        for i in range(sums.size):
            sums[i] = sums[i] * factors[i] + np.float32(0.5)


def control(turns: int = 200_000) -> list[Way]:
    """Return two ways to run the loop: one thread for each processor, and the same work on one thread."""
    count = processors()
    arrays: list[NDArray[np.float32]] = [np.full((2, WORDS), 0.5, np.float32) for _ in range(count)]

    def run(pair: NDArray[np.float32]) -> None:
        _loop(pair[0], pair[1], turns)

    def parallel() -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(run, arrays))

    def alone() -> None:
        for pair in arrays:
            run(pair)

    flops = 2.0 * WORDS * turns * count
    what = "control: the speedup of a compute-bound loop"
    return [Way(ALL, flops, lambda: timed(parallel), what), Way(ONE, flops, lambda: timed(alone), what)]

"""What several processors give a loop that only computes, in the nearest cache: no run here can gain more by them.

Processors that are two threads of one core share what computes, and give far less than twice as much.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from bankshot.sim.launch.threads import processors
from numba import njit

from .ways import Way, timed

WORDS = 2048  # numbers of one array: two fit the nearest cache
ALL, ONE = "a loop, every processor", "a loop, one processor"


@njit(nogil=True)
def _loop(sums: Any, factors: Any, turns: int) -> None:
    for _ in range(turns):
        for i in range(sums.size):
            sums[i] = sums[i] * factors[i] + np.float32(0.5)


def control(turns: int = 200_000) -> list[Way]:
    """The same loop by one thread for each processor, and as much of it by one thread."""
    count = processors()
    arrays = [np.full((2, WORDS), 0.5, np.float32) for _ in range(count)]

    def workgroups_per_batch() -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(lambda pair: _loop(pair[0], pair[1], turns), arrays))

    def alone() -> None:
        for pair in arrays:
            _loop(pair[0], pair[1], turns)

    flops = 2.0 * WORDS * turns * count
    what = "control: what these processors give what only computes"
    return [Way(ALL, flops, lambda: timed(workgroups_per_batch), what), Way(ONE, flops, lambda: timed(alone), what)]

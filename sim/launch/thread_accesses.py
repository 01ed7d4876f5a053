"""Which storage each thread of a run has accessed: whether the run is what one thread would have done.

Workgroups run on several threads in no particular order. That shows only where one thread has stored to a grain that
another has stored to or loaded: then the threads interfered, and one thread repeats the run.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity
from ..machine.compile.loader import header

_WORD_BITS = 32
_PART = 1 << 16  # words that are compared at a time: they stay in the cache


@entity
class ThreadAccesses:
    """What a thread has stored to, and loaded from variables that are stored to: a bit for each grain of storage."""

    stored: NDArray[np.uint32]
    loaded: NDArray[np.uint32]

    @cached_property
    def headers(self) -> list[int]:
        """Its arrays as the machine has them in memory."""
        return [*header(self.stored), *header(self.loaded)]


def thread_accesses(grains: int, *, loads: bool) -> ThreadAccesses:
    """Make empty notes of so many grains. `loads`: also of loads. Pages that are never written take no memory."""
    words = 1 + -(-grains // _WORD_BITS)  # more than one: an array of one word is not written
    return ThreadAccesses(np.zeros(words, np.uint32), np.zeros(words if loads else 1, np.uint32))


NOT_NOTED = ThreadAccesses(np.zeros(1, np.uint32), np.zeros(1, np.uint32))
"""For a run on one thread."""


def have_interfered(threads: list[ThreadAccesses]) -> bool:
    """Whether one of these threads has stored to a grain that another has stored to or loaded."""
    first, *others = threads or [NOT_NOTED]
    starts = range(0, len(first.stored) if others else 0, _PART)
    return any(_interfered_in(threads, slice(start, start + _PART)) for start in starts)


def _interfered_in(threads: list[ThreadAccesses], part: slice) -> bool:
    stored = accessed = np.zeros(1, np.uint32)  # by the threads before
    for each in threads:
        stores, loads = each.stored[part], each.loaded[part] if len(each.loaded) > 1 else np.zeros(1, np.uint32)
        if np.any(stores & accessed) or np.any(loads & stored):
            return True
        stored, accessed = stored | stores, accessed | stores | loads
    return False

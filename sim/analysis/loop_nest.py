"""Loops as ranges of positions: how long a value stays in use that enters them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable


class LoopNest:
    """Loops, given by their first and last positions. Of two loops, one contains the other, or they are apart."""

    def __init__(self, loops: Iterable[tuple[int, int]]) -> None:
        self._loops = sorted(loops, key=lambda loop: (loop[0], -loop[1]))
        self._starts = [start for start, _ in self._loops]
        self._around: list[int] = []  # the next larger loop around each; -1: none
        inside: list[int] = []
        for number, (_, end) in enumerate(self._loops):
            while inside and self._loops[inside[-1]][1] < end:
                inside.pop()
            self._around.append(inside[-1] if inside else -1)
            inside.append(number)

    def last_use(self, first: int, last: int) -> int:
        """Return where a value is used last that is defined at `first` and read at `last`.

        A loop that it enters reads it again in each iteration, so to its end.
        """
        loop, found = bisect_right(self._starts, last) - 1, last
        while loop >= 0 and first < self._starts[loop]:
            if found <= self._loops[loop][1]:
                found = self._loops[loop][1]
            loop = self._around[loop]
        return found

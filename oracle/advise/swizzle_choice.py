"""The swizzles of an array that cost fewest wavefronts, by the accesses that were recorded.

Nothing is run here: `layout_search` runs what is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby, islice
from typing import TypeVar

import numpy as np

from ...sim.fast_dataclass import frozen
from .bank_patterns import Patterns
from .swizzles import Swizzle, swizzles

_WORD = 4  # bytes
_T = TypeVar("_T")
Cost = tuple[Swizzle, int]  # and the wavefronts with it


@frozen
class Space:
    """The swizzles of an array of `length` elements that stay in each `unit` of them, and the accesses that decide."""

    patterns: Patterns
    length: int
    unit: int

    def swizzles(self) -> Iterable[Swizzle]:
        lowest = max(0, (_WORD // self.patterns.stride).bit_length() - 1)  # whole words move
        return swizzles(self.length, self.unit, lowest)

    @property
    def work(self) -> int:
        """The addresses that a search of all swizzles looks at."""
        return self.patterns.size * sum(1 for _ in self.swizzles())

    def best(self) -> list[Cost]:
        """Return the swizzle with the fewest wavefronts for each number of operations that saves wavefronts, as `fewer`
        says. Among equals, the simplest."""
        found: dict[int, Cost] = {}
        ideal, written = self.patterns.ideal, self.patterns.wavefronts()
        least = written
        for _, alike in groupby(self.swizzles(), lambda swizzle: len(swizzle.terms)):
            if least == ideal:
                break  # one more term adds operations and saves nothing
            while batch := list(islice(alike, self.patterns.at_once)):
                operations = [swizzle.operations for swizzle in batch]
                most = np.array([min(found[n][1], written) if n in found else written for n in operations])
                costs = self.patterns.of_swizzles(batch, most).tolist()
                for swizzle, n, cost in zip(batch, operations, costs, strict=True):
                    best = found.get(n)
                    if best is None or cost < best[1] or (cost == best[1] and swizzle.complexity < best[0].complexity):
                        found[n] = swizzle, cost
                    least = min(least, cost)
        return fewer(found.values(), lambda each: each, written)


def fewer(found: Iterable[_T], cost: Callable[[_T], Cost], below: int) -> list[_T]:
    """Return those of `found` whose swizzles take fewer wavefronts than `below` and than any with as few operations, by
    operations. The last takes fewest; which is fastest depends on what operations and wavefronts cost."""
    kept: list[_T] = []
    for each in sorted(found, key=lambda each: (cost(each)[0].operations, cost(each)[1])):
        if cost(each)[1] < below:
            kept.append(each)
            below = cost(each)[1]
    return kept

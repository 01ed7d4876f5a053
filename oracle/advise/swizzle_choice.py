"""The swizzle of an array that costs fewest wavefronts, by the accesses that were recorded.

Nothing is run here: `layout_search` runs what is chosen.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...sim.fast_dataclass import frozen
from .bank_patterns import Patterns
from .swizzles import Swizzle, swizzles

_WORD = 4  # bytes


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

    def best(self, below: int | None = None) -> tuple[Swizzle | None, int]:
        """Return the swizzle with the fewest wavefronts, and these; None and `below` if none takes fewer than
        `below`, by default the wavefronts without one. Among equals, the simplest."""
        best, least = None, self.patterns.wavefronts() if below is None else below
        ideal = self.patterns.ideal
        for swizzle in self.swizzles():
            if best and least == ideal and len(swizzle.terms) > len(best.terms):
                break
            cost = self.patterns.wavefronts(swizzle.of)
            if cost < least or (best and cost == least and swizzle.complexity < best.complexity):
                best, least = swizzle, cost
        return best, least

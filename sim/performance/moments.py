"""When something happens in a chain of dependent instructions, and how that delays loads."""

from __future__ import annotations

from collections import Counter
from math import inf
from operator import attrgetter

from ..fast_dataclass import frozen
from .instruction_costs import STEPS, STEPS_OF_SOFTWARE

CYCLES_OF = {**STEPS, **STEPS_OF_SOFTWARE}
_PREDICATES = 6  # for conditional loads: on an H200, loops with 8, 16 and 32 of these wait 2, 3 and 6 times


@frozen
class Moment:
    """When something happens: after these steps, which take this many cycles."""

    cycles: float = 0.0
    steps: tuple[tuple[str, int], ...] = ()

    def after(self, step: str, count: int = 1) -> Moment:
        """Return the moment `count` steps later."""
        steps = dict(self.steps)
        steps[step] = steps.get(step, 0) + count
        return Moment(self.cycles + count * CYCLES_OF[step], tuple(steps.items()))

    def since(self, other: Moment) -> Counter[str]:
        """Return the steps that are not in `other`."""
        steps = Counter(dict(self.steps))
        steps.subtract(dict(other.steps))
        return steps


def latest(*moments: Moment) -> Moment:
    """Return the last of these moments."""
    return max(moments, key=attrgetter("cycles"))


class LoadsInFlight:
    """The loads from storage that a subgroup waits for.

    Loads begin one after the other. No more wait than fill `room` words of registers, nor under more conditions than
    there are predicates: the next one waits for all of them. `conditional`: the next load is the first under a
    condition.
    """

    def __init__(self, room: int) -> None:
        self.room, self.conditional = room, False
        self._words = 0
        self._ready = self._last = Moment(-inf)  # when all are, and when the last one began

    def begin(self, begin: Moment, words: int) -> Moment:
        """Begin a load of so many words, which could begin then. Returns when it begins."""
        if self.conditional:
            self.conditional = False
            words = max(words, self.room // _PREDICATES)
        if self._words + words > self.room:
            begin = latest(begin, self._ready)
        if self._ready.cycles <= begin.cycles:
            self._words = 0
        self._words += words
        self._last = latest(begin, self._last.after("next_load"))
        self._ready = latest(self._ready, self._last.after("storage_load"))
        return self._last

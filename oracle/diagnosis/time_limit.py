"""The time limit of a diagnosis: each run of a large case takes long, and there may be hundreds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import field

from ...sim.fast_dataclass import frozen

SECONDS = 60.0  # for one output


class OutOfTime(Exception):
    """The diagnosis took longer than its limit."""


@frozen
class TimeLimit:
    """Ends `seconds` after it is made, by a `clock` that gives seconds."""

    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    start: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", self.clock())

    def check(self, *_: int) -> None:
        """Raise `OutOfTime` after the end. Runs report their progress here, so a long one is abandoned midway."""
        if self.clock() - self.start > self.seconds:
            raise OutOfTime

"""The time limit of a diagnosis, which may rerun a large case hundreds of times."""

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
    """A limit that ends `seconds` after its creation, by a `clock` in seconds."""

    seconds: float = SECONDS
    clock: Callable[[], float] = time.monotonic
    start: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", self.clock())

    def check(self, *_: int) -> None:
        """Raise `OutOfTime` after the end. As the progress callback of runs, it also aborts a long one."""
        if self.clock() - self.start > self.seconds:
            raise OutOfTime

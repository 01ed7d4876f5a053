"""The order in which a pool of workers starts cases, by their cost. This module runs nothing itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...sim.fast_dataclass import frozen

BYTES_EACH = 3 << 29  # estimated memory for cases, per process; all processes share the sum


@frozen
class Size:
    """The estimated cost of a case: `time`, in arbitrary units, and `bytes`. `kernel`: equal for cases of one kernel,
    which each process builds once."""

    time: float
    bytes: int
    kernel: int = 0


class Scheduler:
    """Chooses the case that a process starts next.

    A case whose time is at least the average share of a process in all the remaining time comes first. Otherwise cases
    run in order, so that rows appear early: the next one of the kernel that the process has built, else of one that no
    other process is running. A case waits while it and the running ones would need too much memory. A case whose
    process died is retried once, alone.
    """

    def __init__(self, sizes: Sequence[Size], processes: int, first: int = 0) -> None:
        self._sizes = sizes
        self._processes = processes
        self.waiting = list(range(first, len(sizes)))
        self._alone: list[int] = []
        self._twice: set[int] = set()

    def take(self, running: Collection[int], after: int | None = None) -> int | None:
        """Return the case to start while others are `running`, on the process that ran `after` before; None if no case
        is left, or none can start now."""
        if self._alone:
            return None if running else self._alone.pop()
        free = self._processes * BYTES_EACH - sum(self._sizes[number].bytes for number in running)
        fitting = [number for number in self.waiting if not running or self._sizes[number].bytes <= free]
        if not fitting:
            return None
        left = sum(self._sizes[number].time for number in self.waiting)
        longest = max(fitting, key=lambda number: self._sizes[number].time)
        urgent = self._sizes[longest].time >= left / self._processes
        chosen = longest if urgent else self._next(fitting, running, after)
        self.waiting.remove(chosen)
        return chosen

    def _next(self, fitting: Sequence[int], running: Collection[int], after: int | None) -> int:
        own = set[int]() if after is None else {self._sizes[after].kernel}
        others = {self._sizes[number].kernel for number in running}
        built = [number for number in fitting if self._sizes[number].kernel in own]
        free = [number for number in fitting if self._sizes[number].kernel not in others]
        return [*built, *free, *fitting][0]

    def again(self, number: int) -> bool:
        """Schedule a retry of a case whose process died, perhaps for lack of memory. Returns False on its second death,
        without a retry."""
        fresh = number not in self._twice
        self._twice.add(number)
        self._alone += [number] if fresh else []
        return fresh

    def end(self, before: int) -> None:
        """Start only cases before this one from now on."""
        self.waiting = [number for number in self.waiting if number < before]
        self._alone = [number for number in self._alone if number < before]

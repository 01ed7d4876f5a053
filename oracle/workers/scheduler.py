"""Which case a pool of workers starts next, by what cases cost: pure bookkeeping, which runs nothing."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ...sim.fast_dataclass import frozen

BYTES_EACH = 3 << 29  # each process's share of what all of them may hold beside themselves, as estimated


@frozen
class Size:
    """An estimate of what a case costs: `time` in units that only compare, and `bytes`. `kernel`: the same for cases of
    one kernel, which each process builds once."""

    time: float
    bytes: int
    kernel: int = 0


class Scheduler:
    """Chooses the case that a process starts next.

    That is the next case of the kernel that the process has built, else of one that no other process is running, in
    order, so that rows come soon; but first a case that alone would take the processes' share of all that is left, or
    more. A case waits while it would hold too many bytes beside those that are running. A case whose process died
    starts again, once, with nothing beside it.
    """

    def __init__(self, sizes: Sequence[Size], processes: int, first: int = 0) -> None:
        self._sizes = sizes
        self._processes = processes
        self.waiting = list(range(first, len(sizes)))
        self._alone: list[int] = []
        self._twice: set[int] = set()

    def take(self, running: Collection[int], after: int | None = None) -> int | None:
        """The case to start beside those that are `running`, on the process that has done `after`; None where there is
        none, or none for now."""
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
        """Start a case once more whose process died, as others may have taken the memory. False where that was done
        before."""
        fresh = number not in self._twice
        self._twice.add(number)
        self._alone += [number] if fresh else []
        return fresh

    def end(self, before: int) -> None:
        """Start only cases before this one from now on."""
        self.waiting = [number for number in self.waiting if number < before]
        self._alone = [number for number in self._alone if number < before]

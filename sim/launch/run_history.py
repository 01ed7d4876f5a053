"""What earlier runs of a program showed about the faster ways to run it, so that none is tried in vain twice.

The way changes no result: a run that turns out to depend on it is repeated in the order of the grid.
"""

from __future__ import annotations

from dataclasses import field
from weakref import WeakKeyDictionary

from ..bindings.binding import Bound
from ..bounded_cache import remember
from ..codegen.program import Program
from ..fast_dataclass import entity
from ..mechanisms import is_on
from .launch import Launch, RunOptions
from .schedules import Schedule

_SHORT = 6e-4  # seconds of a run: other threads join too late to make up for what it takes to wake them
_UNSURE = 8  # times as long: one thread may be faster, if the processors are busy or the parts small
_TRIES = 2  # runs each way that decide: the first one finds cold caches
_MOST_SHAPES = 64  # that are kept for each program: the grid and the sizes of bindings

_Shape = tuple[tuple[int, int, int], tuple[int, ...], Schedule, int | None]


@entity
class History:
    """`interleaved`: how many workgroups to interleave, 0 if the run depended on their order; None before the first
    run. `threads_interfered`: a run on several threads was repeated on one. `parallel`, `serial`: seconds of the first
    runs on several threads, and on one."""

    interleaved: int | None = None
    threads_interfered: bool = False
    parallel: list[float] = field(default_factory=list[float])
    serial: list[float] = field(default_factory=list[float])

    @property
    def one_thread(self) -> bool:
        """Whether one thread should run it."""
        if self.threads_interfered or not self.parallel:
            return self.threads_interfered
        least = min(self.parallel)
        if not _SHORT <= least < _UNSURE * _SHORT:
            return least < _SHORT
        if min(len(self.serial), len(self.parallel)) < _TRIES:
            return len(self.serial) < len(self.parallel)
        return min(self.serial) < least

    def note(self, launch: Launch, seconds: float) -> None:
        """Note how long a run took, and whether threads interfered."""
        self.threads_interfered |= launch.threads_interfered
        times = self.serial if launch.options.threads == 1 else self.parallel
        if len(times) < _TRIES:
            times.append(seconds)


_HISTORIES: WeakKeyDictionary[Program, dict[_Shape, History]] = WeakKeyDictionary()


def history_of(program: Program, bound: list[Bound], grid: tuple[int, int, int], options: RunOptions) -> History:
    """Return the history of runs with these sizes and schedule; a new one for runs that are not repeated."""
    special = options.chosen is not None or options.trace is not None or options.ignored is not None
    if special or not is_on("history"):
        return History()
    shapes = _HISTORIES.setdefault(program, {})
    shape = grid, tuple([len(each.data) for each in bound]), options.schedule, options.threads
    return remember(shapes, shape, History, _MOST_SHAPES)

"""The cases of an audit, one after the other in this process or dealt to several: which is begun when, and how they
come back in their order. What is reported does not depend on it, but for the seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cached_property, partial
from math import prod

from ...sim.dump import debug_level
from ...sim.fast_dataclass import entity, frozen
from ...sim.launch.threads import processors
from ...sim.wgsl.diagnostics import WgslError
from ..errors import Died, GpuError, NoAdapter, UsageError
from ..judge.audit import audit
from ..judge.options import Options
from ..manifests.cases import Broken, Plan
from ..manifests.manifest import Shape
from ..reports.audited import Audited, Wanted, audited, failed
from .pool import Say, TaskError, TaskProgress, TaskResult, WorkerPool
from .progress import Meter

BEGUN, LEFT = 2.0, 4.0  # seconds after which, and for how many more, other processes are worth their start
MOST = 8  # processes that are begun unasked: each holds some 300 MB, and room on every GPU
BYTES_EACH = 3 << 29  # of what all processes hold beside themselves, as estimated, the share of each

# What a case takes, about, as measured with the kernels of shaders/: bytes for each number of what a shader reads
# (drawn as float64, bound, sent to a GPU) and of what it writes (simulated twice, referred to with a bound, compared);
# and how many numbers, and how many turns of a loop over all sizes, take as long as what every case takes.
BYTES_READ, BYTES_WRITTEN = 10, 80
NUMBERS, TURNS = 2e7, 5e8


@entity
class Audits:
    """All cases of `work`, by number from 0; a call audits one. Plain values, that get from one process to another."""

    work: Sequence[Plan]
    options: Options
    wanted: Wanted
    broken: Sequence[Broken] = ()

    @cached_property
    def cases(self) -> list[tuple[Plan, Shape]]:
        return [(plan, shape) for plan in self.work for shape in plan.shapes]

    def title(self, number: int) -> str:
        plan, shape = self.cases[number]
        return f"{plan.kernel.name} {shape}".strip()

    def __call__(self, number: int, say: Say) -> Audited:
        """Raises what is wrong with the machine, or with what was asked for; what is wrong with a case comes of it."""
        plan, shape = self.cases[number]
        try:
            return self._audited(number, plan, shape, say)
        except (NoAdapter, ConnectionError):
            raise
        except UsageError as error:
            if not (plan.request.as_in_manifest or isinstance(error, GpuError)):
                raise
            return self.failed(number, error)
        except Exception as error:
            if debug_level() and not isinstance(error, WgslError | MemoryError):
                raise
            return self.failed(number, error)

    def _audited(self, number: int, plan: Plan, shape: Shape, say: Say) -> Audited:
        first = all(before.kernel.name != plan.kernel.name for before, _ in self.cases[:number])
        result = audit(plan.case(shape), self.options, say).noting(f"assumed {words}" for words in plan.assumed)
        return audited(result, self.wanted, number + 1, first, say)

    def failed(self, number: int, error: Exception) -> Audited:
        """A case that could not be run."""
        plan, shape = self.cases[number]
        kernel = plan.kernel
        return failed(kernel.name, kernel.source, kernel.path, shape, error, self.wanted, number + 1)

    def unplanned(self) -> Iterator[Audited]:
        """Those whose manifest cannot be read, numbered after all cases."""
        for number, each in enumerate(self.broken, len(self.cases) + 1):
            yield failed(each.path.stem, each.path, each.path, Shape({}), each.error, self.wanted, number)

    def sizes(self) -> list[Size]:
        return [size_of(*case) for case in self.cases]


@frozen
class Size:
    """What a case takes, about: `time` in units that only compare, and `bytes`. `kernel`: what is built once for those
    with the same, in each process."""

    time: float
    bytes: int
    kernel: int = 0


def size_of(plan: Plan, shape: Shape) -> Size:
    """By its sizes; of a case that cannot be run, or tells none, the least."""
    read = written = 0
    with suppress(UsageError):
        read, written = plan.numbers(shape)
    time = 1 + (read + written) / NUMBERS + prod(max(size, 1) for size in shape.dims.values()) / TURNS
    return Size(time, read * BYTES_READ + written * BYTES_WRITTEN, id(plan))


def in_turn(audits: Audits, jobs: int | None, progress: Meter) -> Iterator[Audited]:
    """Every case, in order, and what could not be planned: on `jobs` processes; left out, in this one until it is known
    that others, one for each processor up to `MOST`, are worth their start. Raises what the first case that ends the
    audit raises, after those before."""
    sizes = audits.sizes()
    most = min(len(sizes), jobs or min(processors(), MOST))
    start, done = time.perf_counter(), 0
    while done < len(sizes) and not (most > 1 and (jobs or _long(time.perf_counter() - start, sizes, done))):
        yield audits(done, partial(progress.stage, audits.title(done)))
        done += 1
    if done < len(sizes):
        yield from _dealt(audits, Scheduler(sizes, most, done), min(most, len(sizes) - done), progress)
    yield from audits.unplanned()


def _long(seconds: float, sizes: Sequence[Size], done: int) -> bool:
    """Whether, as `done` cases have taken so many seconds, the others will take long."""
    if not done or seconds < BEGUN or len(sizes) - done < 2:
        return False
    before, after = (sum(size.time for size in part) for part in (sizes[:done], sizes[done:]))
    return after / before * seconds > LEFT


class Scheduler:
    """Which case a process begins next: the next of the kernel that it has built, else of one that no other is at, in
    order, that rows come soon; but first one that alone would take the processes' share of all that is left, or more.
    None that, beside those that are being run, would hold too many bytes. One whose process died is begun again, once,
    beside nothing."""

    def __init__(self, sizes: Sequence[Size], processes: int, first: int = 0) -> None:
        self._sizes = sizes
        self._processes = processes
        self.waiting = list(range(first, len(sizes)))
        self._alone: list[int] = []
        self._twice: set[int] = set()

    def take(self, running: Collection[int], after: int | None = None) -> int | None:
        """The case that is to be begun beside those that are `running`, by the process that has done `after`; None
        where none is, or none now."""
        if self._alone:
            return None if running else self._alone.pop()
        room = self._processes * BYTES_EACH - sum(self._sizes[number].bytes for number in running)
        fitting = [number for number in self.waiting if not running or self._sizes[number].bytes <= room]
        if not fitting:
            return None
        left = sum(self._sizes[number].time for number in self.waiting)
        longest = max(fitting, key=lambda number: self._sizes[number].time)
        urgent = self._sizes[longest].time >= left / self._processes
        chosen = longest if urgent else self._next(fitting, running, after)
        self.waiting.remove(chosen)
        return chosen

    def _next(self, fitting: Sequence[int], running: Collection[int], after: int | None) -> int:
        own = set() if after is None else {self._sizes[after].kernel}
        others = {self._sizes[number].kernel for number in running}
        wanted = (own.__contains__, lambda kernel: kernel not in others)
        found = (number for wants in wanted for number in fitting if wants(self._sizes[number].kernel))
        return next(found, fitting[0])

    def again(self, number: int) -> bool:
        """Whether a case whose process died is begun again: others may have taken the memory."""
        fresh = number not in self._twice
        self._twice.add(number)
        self._alone += [number] if fresh else []
        return fresh

    def end(self, before: int) -> None:
        """Begin only cases before this one."""
        self.waiting = [number for number in self.waiting if number < before]
        self._alone = [number for number in self._alone if number < before]


def _dealt(audits: Audits, deal: Scheduler, processes: int, progress: Meter) -> Iterator[Audited]:
    """The cases of a deal in order, on so many processes."""
    order = deque(deal.waiting)
    done: dict[int, TaskResult | TaskError] = {}
    with WorkerPool(processes, audits) as crew:
        while order:
            for worker in crew.idle:
                if (number := deal.take(crew.tasks, worker.last)) is not None:
                    worker.give(number)
            for number, heard in crew.hear():
                if isinstance(heard, TaskProgress):
                    progress.stage(audits.title(number), heard.words, number + 1)
                elif isinstance(heard, TaskError) and isinstance(heard.error, Died) and deal.again(number):
                    progress.stage(audits.title(number), f"{heard.error}; once more, alone", number + 1)
                else:
                    done[number] = heard
                    if isinstance(heard, TaskError) and not isinstance(heard.error, Died):
                        deal.end(number)
            while order and order[0] in done:
                number = order.popleft()
                yield _result(audits, number, done.pop(number))


def _result(audits: Audits, number: int, heard: TaskResult | TaskError) -> Audited:
    if isinstance(heard, TaskResult):
        return heard.result
    if isinstance(heard.error, Died):
        return audits.failed(number, Died(f"{audits.title(number)}: {heard.error}"))
    raise heard.error

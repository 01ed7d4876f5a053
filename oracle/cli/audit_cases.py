"""Audit the cases of some plans, in this process or on several, and return the results in order.

Reports do not depend on how many processes run, but for the seconds.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING

from ...sim.dump import debug_level
from ...sim.fast_dataclass import entity
from ...sim.launch.threads import processors
from ...sim.wgsl.diagnostics import WgslError
from ..errors import Died, GpuError, NoAdapter, UsageError
from ..judge.audit import audit
from ..judge.case_run import Say
from ..judge.options import Options
from ..manifests.cases import Broken, Plan
from ..manifests.manifest import LARGEST, Shape
from ..reports.audited import audited_case, failed_case
from ..reports.protocol import AuditedCase, ReportOptions
from ..workers.pool import TaskError, TaskProgress, TaskResult, WorkerPool
from ..workers.progress import Meter
from ..workers.scheduler import Scheduler, Size

if TYPE_CHECKING:
    from ..judge.verdict import Audit
    from ..wgpu_client import Timing

ALONE, LEFT = 2.0, 4.0  # seconds after which, and with how many more to go, other processes are worth their start
MOST = 8  # processes that start unasked: each holds some 300 MB, and memory on every GPU

# Estimates, measured with the kernels of shaders/: bytes for each number that a shader reads (drawn as float64, bound,
# sent to a GPU) and that it writes (simulated twice, computed by the reference with a bound, compared); and how many
# numbers, and how many iterations of a loop over all sizes, take as long as the fixed part of a case.
BYTES_READ, BYTES_WRITTEN = 10, 80
NUMBERS, ITERATIONS = 2e7, 5e8


@entity
class Audits:
    """All cases of `work`, by number from 0; a call audits one. Can be pickled, for other processes.

    `times`: those of each case, where they were asked for.
    """

    work: Sequence[Plan]
    options: Options
    wanted: ReportOptions
    broken: Sequence[Broken] = ()
    times: Sequence[tuple[Timing, ...]] = ()

    @cached_property
    def cases(self) -> list[tuple[Plan, Shape]]:
        return [(plan, shape) for plan in self.work for shape in plan.shapes]

    def title(self, number: int) -> str:
        plan, shape = self.cases[number]
        return f"{plan.kernel.name} {shape}".strip()

    def __call__(self, number: int, say: Say) -> AuditedCase:
        """Audit one case. An error of the case is its result; errors of the machine or of the request are raised."""
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

    def _audited(self, number: int, plan: Plan, shape: Shape, say: Say) -> AuditedCase:
        first = all(before.kernel.name != plan.kernel.name for before, _ in self.cases[:number])
        result = audit(plan.case(shape), self.options, say).noting(f"assumed {words}" for words in plan.assumed)
        if self.times:
            result = replace(result, times=self.times[number])
        return self.reported(result, number, first)

    def reported(self, result: Audit, number: int, first: bool) -> AuditedCase:
        """What reports need of an audit."""
        return audited_case(result, self.wanted, number + 1, first)

    def failed(self, number: int, error: Exception) -> AuditedCase:
        """The result of a case that could not be run."""
        plan, shape = self.cases[number]
        kernel = plan.kernel
        return failed_case(kernel.name, kernel.source, kernel.path, shape, error, self.wanted, number + 1)

    def unplanned(self) -> Iterator[AuditedCase]:
        """Results for the manifests that cannot be read, numbered after all cases."""
        for number, each in enumerate(self.broken, len(self.cases) + 1):
            yield failed_case(each.path.stem, each.path, each.path, Shape({}), each.error, self.wanted, number)

    def sizes(self) -> list[Size]:
        return [size_of(*case) for case in self.cases]


def size_of(plan: Plan, shape: Shape) -> Size:
    """Estimate the cost of a case by its sizes; the least where the manifest gives none, or the case cannot run."""
    read = written = 0
    with suppress(UsageError):
        read, written = plan.numbers(shape)
    iterations = min(prod(max(size, 1) for size in shape.dims.values()), LARGEST)
    time = 1 + min(read + written, LARGEST) / NUMBERS + iterations / ITERATIONS
    return Size(time, read * BYTES_READ + written * BYTES_WRITTEN, id(plan))


def in_turn(audits: Audits, jobs: int | None, progress: Meter) -> Iterator[AuditedCase]:
    """Audit every case, in order, and report what could not be planned.

    `jobs`: how many processes; left out, this one, until more, one for each processor up to `MOST`, are worth their
    start. An error that ends the audit is raised after the results of the cases before it.
    """
    sizes = audits.sizes()
    most = min(len(sizes), jobs or min(processors(), MOST))
    start, done = time.perf_counter(), 0
    while done < len(sizes) and not (most > 1 and (jobs or _long(time.perf_counter() - start, sizes, done))):
        yield audits(done, partial(progress.stage, audits.title(done)))
        done += 1
    if done < len(sizes):
        yield from _on_processes(audits, Scheduler(sizes, most, done), min(most, len(sizes) - done), progress)
    yield from audits.unplanned()


def _long(seconds: float, sizes: Sequence[Size], done: int) -> bool:
    """Whether the other cases will take long, by the seconds that `done` cases have taken."""
    if not done or seconds < ALONE or len(sizes) - done < 2:
        return False
    before, after = (sum(size.time for size in part) for part in (sizes[:done], sizes[done:]))
    return after / before * seconds > LEFT


def _on_processes(audits: Audits, scheduler: Scheduler, processes: int, progress: Meter) -> Iterator[AuditedCase]:
    """The cases that a scheduler has, in order, on several processes."""
    order = deque(scheduler.waiting)
    done: dict[int, TaskResult | TaskError] = {}
    with WorkerPool(processes, audits) as pool:
        while order:
            for worker in pool.idle:
                if (number := scheduler.take(pool.tasks, worker.last)) is not None:
                    worker.give(number)
            for number, heard in pool.hear():
                if isinstance(heard, TaskProgress):
                    progress.stage(audits.title(number), heard.words, number + 1)
                elif isinstance(heard, TaskError) and isinstance(heard.error, Died) and scheduler.again(number):
                    progress.stage(audits.title(number), f"{heard.error}; once more, alone", number + 1, True)
                else:
                    done[number] = heard
                    if isinstance(heard, TaskError) and not isinstance(heard.error, Died):
                        scheduler.end(number)
            while order and order[0] in done:
                number = order.popleft()
                yield _result(audits, number, done.pop(number))


def _result(audits: Audits, number: int, heard: TaskResult | TaskError) -> AuditedCase:
    if isinstance(heard, TaskResult):
        return heard.result
    if isinstance(heard.error, Died):
        return audits.failed(number, Died(f"{audits.title(number)}: {heard.error}"))
    raise heard.error

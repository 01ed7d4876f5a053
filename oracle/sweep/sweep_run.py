"""Running a sweep: cases go to an executor in groups that share a run, and come back as rows, in whatever order.

Whatever is wrong with a case is in its row. A worker process that dies costs no other case: its own group runs once
more, alone, and if that kills its process too, its rows say so.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait

from ...sim.launch.threads import processors
from ...sim.wgsl.diagnostics import WgslError
from ..errors import Died, UsageError
from ..judge.audit import audit
from ..judge.device_comparison import judged
from ..judge.options import Options
from ..judge.verdict import judged_as
from .columns import Judged, Row, failed, row
from .journal import Journal
from .work import SweepCase, key_now, workgroups_per_batch

Group = Sequence[SweepCase]

CHANGED = "the files, or Bankshot itself, are not what they were when the sweep was planned"
DIED = "the process that ran it died; perhaps there was not enough memory"


def sweep(
    cases: Sequence[SweepCase],
    executor: Executor | None = None,
    *,
    journal: Journal | None = None,
    jobs: int | None = None,
) -> Iterator[Row]:
    """The row of every case, each once, as they come: first those that `journal` has, which are not run again.

    `executor`: anything of `concurrent.futures`, or that looks so (`distributed.Client(…).get_executor()`); left out,
    `jobs` processes, one for each processor (a script that is run guards them with `if __name__ == "__main__":`). Its
    workers need this Bankshot and these files. `journal`: where rows are kept as they are made. Who stops asking for
    rows stops the sweep.
    """
    waiting = []
    for group in workgroups_per_batch(cases):
        rows = [None if journal is None else journal.done(case.key) for case in group]
        yield from (found for found in rows if found is not None)
        waiting.append(tuple(case for case, found in zip(group, rows, strict=True) if found is None))
    groups = deque(group for group in waiting if group)
    for made in _on_processes(groups, jobs) if executor is None else _on(executor, groups):
        for each in made:
            if journal is not None:
                journal.add(each)
            yield each


# ---- one group, where the worker is ------------------------------------------------------------------


def run(group: Group) -> list[Row]:
    """The rows of cases that differ in the device alone, by one simulated run of all probes."""
    start = time.perf_counter()
    try:
        return _run(group)
    except (WgslError, UsageError) as error:
        why = str(error)
    except MemoryError as error:
        why = f"there is not enough memory ({str(error) or 'none is left'})"
    except Exception as error:
        why = f"internal error: {type(error).__name__}: {error}"
    if len(group) > 1:  # whose fault is it?
        return [row for case in group for row in run([case])]
    return [failed(group[0], why, time.perf_counter() - start)]


def _run(group: Group) -> list[Row]:
    first, *others = group
    start = time.perf_counter()
    if key_now(first) != first.key:
        raise UsageError(CHANGED)
    options = Options(first.device, gpu=False, golden=False, also=tuple(case.device for case in others))
    result = audit(first.plan.case(first.shape), options)
    devices = result.devices or (judged(result.run),)
    seconds = (time.perf_counter() - start) / len(group)
    return [
        row(case, Judged(judged_as(result, charged), charged), seconds)
        for case, charged in zip(group, devices, strict=True)
    ]


# ---- executors ---------------------------------------------------------------------------------------


def processes(count: int) -> Executor:
    """An executor of that many processes of the worker pool, which share the processors."""
    from ..workers.executor import PoolExecutor

    return PoolExecutor(count)


def _on_processes(groups: deque[Group], jobs: int | None) -> Iterator[list[Row]]:
    """Rows by group, from processes of this sweep's own."""
    if groups:
        most = min(jobs or processors(), len(groups))
        with processes(most) as executor:
            yield from _on(executor, groups, 2 * most)


def _on(executor: Executor, groups: deque[Group], most: int | None = None) -> Iterator[list[Row]]:
    """Rows by group, with `most` groups submitted at a time. A group whose process died runs once more, alone. Whatever
    else goes wrong is in the group's rows, unless the whole executor is broken: then that is raised."""
    running: dict[Future[list[Row]], Group] = {}
    lost: list[Group] = []
    try:
        while groups or running:
            while groups and len(running) < (most or len(groups) + len(running)):
                future = executor.submit(run, groups[0])
                running[future] = groups.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                group = running.pop(future)
                if not future.cancelled() and isinstance(future.exception(), Died):
                    lost.append(group)
                else:
                    yield _result(future, group)
        for group in lost:  # with all the memory there is
            yield _result(executor.submit(run, group), group)
    finally:
        for future in running:
            future.cancel()


def _result(future: Future[list[Row]], group: Group) -> list[Row]:
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Died:
        return [failed(case, DIED) for case in group]
    except Exception as error:
        return [failed(case, f"the executor failed: {type(error).__name__}: {error}") for case in group]

"""Run a sweep: submit the cases to an executor, in groups that share a run, and yield their rows as they finish.

Errors of a case go into its row. If a worker process dies, its group runs once more, alone; if that process dies too,
the rows of the group say so. No other case is affected.
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
from .work import SweepCase, group_by_run, key_now

Group = Sequence[SweepCase]

CHANGED = "the files, or Bankshot itself, have changed since the sweep was planned"
DIED = "the process that ran it died; perhaps there was not enough memory"


def sweep(
    cases: Sequence[SweepCase],
    executor: Executor | None = None,
    *,
    journal: Journal | None = None,
    jobs: int | None = None,
) -> Iterator[Row]:
    """Yield the row of every case, each once, in order of completion; those in `journal` come first and do not run.

    `executor` is an executor of `concurrent.futures`, or an object with the same interface, such as
    `distributed.Client(…).get_executor()`; its workers need this version of Bankshot and the same files. Without one,
    `jobs` processes (by default one for each processor) run the cases; a script must then guard the call with
    `if __name__ == "__main__":`. New rows are added to `journal`. Closing the iterator stops the sweep.
    """
    waiting: list[Group] = []
    for group in group_by_run(cases):
        rows = [None if journal is None else journal.done(case.key) for case in group]
        yield from (found for found in rows if found is not None)
        waiting.append(tuple(case for case, found in zip(group, rows, strict=True) if found is None))
    groups = deque(group for group in waiting if group)
    for made in _on_processes(groups, jobs) if executor is None else _on(executor, groups):
        for each in made:
            if journal is not None:
                journal.add(each)
            yield each


# ---- one group, in a worker --------------------------------------------------------------------------


def run(group: Group) -> list[Row]:
    """Return the rows of cases that differ only in the device, from one simulated run with all probes."""
    start = time.perf_counter()
    try:
        return _run(group)
    except (WgslError, UsageError) as error:
        why = str(error)
    except MemoryError as error:
        why = f"out of memory ({str(error) or 'none is left'})"
    except Exception as error:
        why = f"internal error: {type(error).__name__}: {error}"
    if len(group) > 1:  # run each case alone to see which ones fail
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
    """Return an executor of `count` processes of the worker pool, which share the processors."""
    from ..workers.executor import PoolExecutor

    return PoolExecutor(count)


def _on_processes(groups: deque[Group], jobs: int | None) -> Iterator[list[Row]]:
    """Yield the rows of each group, from processes that this sweep starts."""
    if groups:
        most = min(jobs or processors(), len(groups))
        with processes(most) as executor:
            yield from _on(executor, groups, 2 * most)


def _on(executor: Executor, groups: deque[Group], most: int | None = None) -> Iterator[list[Row]]:
    """Yield the rows of each group, with at most `most` groups submitted at a time.

    A group whose process died runs once more, alone. Other errors go into the group's rows, except for
    `BrokenExecutor`, which is raised.
    """
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
        for group in lost:  # alone, so that it has all the memory
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

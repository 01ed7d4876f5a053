"""Running a sweep: cases go to an executor in groups that share a run, and come back as rows, in whatever order.

Whatever is wrong with a case is in its row. A worker process that dies takes no other case along: those that were under
way are run again, one by one, and the one that kills its process gets the blame.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager

from ...sim.launch.threads import THREADS, processors
from ...sim.wgsl.diagnostics import WgslError
from ..errors import UsageError
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


def _on(executor: Executor, groups: deque[Group], most: int | None = None) -> Iterator[list[Row]]:
    """Rows by group, `most` groups at a time. An exception that is not the case's own is in its rows, too, unless the
    whole executor is broken: then it is raised, and `groups` holds what is left."""
    running: dict[Future[list[Row]], Group] = {}
    try:
        while groups or running:
            while groups and len(running) < (most or len(groups) + len(running)):
                future = executor.submit(run, groups[0])
                running[future] = groups.popleft()
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                made = _result(future, running[future])
                del running[future]
                yield made
    except BrokenExecutor:
        groups.extendleft(running.values())
        raise
    finally:
        for future in running:
            future.cancel()


def _result(future: Future[list[Row]], group: Group) -> list[Row]:
    try:
        return future.result()
    except BrokenExecutor:
        raise
    except Exception as error:
        return [failed(case, f"the executor failed: {type(error).__name__}: {error}") for case in group]


def _on_processes(groups: deque[Group], jobs: int | None) -> Iterator[list[Row]]:
    """Rows by group. As many groups are under way as there are processes, so that one that dies leaves few to ask."""
    most = min(jobs or processors(), max(1, len(groups)))
    while groups:
        try:
            with processes(most) as executor:
                yield from _on(executor, groups, most)
        except BrokenExecutor:
            for group in [groups.popleft() for _ in range(min(most, len(groups)))]:
                yield _alone(group)


def _alone(group: Group) -> list[Row]:
    try:
        with processes(1) as executor:
            return executor.submit(run, group).result()
    except BrokenExecutor:
        return [failed(case, DIED) for case in group]


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """A pool of processes, which share the processors. Who leaves it early does not wait for what they are at."""
    before = set(multiprocessing.active_children())
    threads = max(1, processors() // count)
    executor = ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), initializer=_start, initargs=(threads,))
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()
        raise
    executor.shutdown()


def _start(threads: int) -> None:
    """In a worker: as many threads as are its share; an interrupt is for who started it."""
    os.environ[THREADS] = str(threads)
    signal.signal(signal.SIGINT, signal.SIG_IGN)

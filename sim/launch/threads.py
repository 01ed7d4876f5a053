"""Number of threads of a run, and the thread pool that runs share."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from ..wgsl.diagnostics import fail

THREADS = "BANKSHOT_THREADS"


def processors() -> int:
    """Return the number of processors to use: `$BANKSHOT_THREADS`, else those available to this process.

    A container or `taskset` may limit the latter. Raises `WgslError` if the variable is not a positive integer.
    """
    if setting := os.environ.get(THREADS):
        if not setting.isdecimal() or int(setting) < 1:
            raise fail("threads", f"{THREADS} is {setting!r}; it must be a positive integer", None)
        return int(setting)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(workers: int) -> ThreadPoolExecutor:
    """Return threads that are kept from run to run: to start them takes as long as a small run.

    A forked process starts its own.
    """
    return _pool(os.getpid(), workers)


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="bankshot")


def run_on_threads(work: Callable[[], None], threads: int) -> None:
    """Call `work` in this thread, and in others as soon as they wake up. Raises what it raises.

    `work` returns when there is nothing left to do.
    """
    others = [pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        begun = [job for job in others if not job.cancel()]
        errors = [error for job in begun if (error := job.exception())]
    for error in errors:
        raise error

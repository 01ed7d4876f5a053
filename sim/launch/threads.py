"""How many threads work on a run, and the threads that are kept for it."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

from ..wgsl.diagnostics import fail

THREADS = "BANKSHOT_THREADS"


def processors() -> int:
    """How many this process is to run on: as `$BANKSHOT_THREADS` says, or as a container, or `taskset`, leaves it."""
    if asked := os.environ.get(THREADS):
        if not asked.isdecimal() or int(asked) < 1:
            raise fail("threads", f"{THREADS} is {asked!r}, and is to be a whole number above 0", None)
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(workers: int) -> ThreadPoolExecutor:
    """Threads that stay from run to run, for to start them takes as long as a small one. A process that is forked off
    has none of its parent's."""
    return _pool(os.getpid(), workers)


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="bankshot")


def workgroups_per_batch(work: Callable[[], None], threads: int) -> None:
    """Have `work` done by this thread, and by others as soon as they wake up, until it has nothing left to do and
    returns. Raises what it raises."""
    others = [pool(threads - 1).submit(work) for _ in range(threads - 1)]
    try:
        work()
    finally:
        begun = [job for job in others if not job.cancel()]
        errors = [error for job in begun if (error := job.exception())]
    for error in errors:
        raise error

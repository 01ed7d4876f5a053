"""Processes that do tasks, one at a time each, and share the processors: what they say meanwhile, what comes of a task,
and whether its process died of it.
"""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from ...sim.fast_dataclass import entity, frozen
from ...sim.launch.threads import THREADS, processors
from ...sim.wgsl.diagnostics import Crash
from ..errors import Died, portable
from ..wgpu_worker.worker_process import ending

if TYPE_CHECKING:
    from multiprocessing.connection import Connection  # which most commands do without, and takes long to import

Say = Callable[[str], None]
Work = Callable[[Any, Say], Any]  # what comes of a task; it may say how far it is

# How many threads others than the simulator begin: NumPy's BLAS, and Mesa's software adapter.
OTHER_THREADS = ("OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")
_MASKS = hasattr(signal, "pthread_sigmask")


@frozen
class TaskProgress:
    """What a task says of how far it is."""

    words: str


@frozen
class TaskResult:
    """What came of a task."""

    result: Any


@frozen
class TaskError:
    """The exception that ended a task; `Died` where it ended the process too."""

    error: Exception


Heard = TaskProgress | TaskResult | TaskError


@entity
class Worker:
    """One of the processes. `task`: what it is at, `last`: what it was at before; None: nothing."""

    process: Any
    pipe: Connection
    task: Any = None
    last: Any = None

    def give(self, task: Any) -> None:
        """Have it begin, if it is idle."""
        self.task = task
        with suppress(OSError):  # that it has died meanwhile is heard
            self.pipe.send(task)


class WorkerPool:
    """`count` processes that do `work`, which is sent to each once. Leaving the context ends them, whatever they do.

    An interrupt is for who made them. A script that makes some is guarded by `if __name__ == "__main__":`.
    """

    def __init__(self, count: int, work: Work) -> None:
        self._work = work
        self._threads = max(1, processors() // count)
        self._workers = [self._hired() for _ in range(count)]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            worker.process.join()

    @property
    def idle(self) -> list[Worker]:
        """Those that have no task."""
        return [worker for worker in self._workers if worker.task is None]

    @property
    def tasks(self) -> list[Any]:
        """Those that are being done."""
        return [worker.task for worker in self._workers if worker.task is not None]

    def hear(self) -> Iterator[tuple[Any, Heard]]:
        """Wait for news, and give them with the tasks that they are of. Who died is replaced."""
        from multiprocessing.connection import wait

        busy: dict[Any, Worker] = {worker.pipe: worker for worker in self._workers if worker.task is not None}
        for pipe in wait(list(busy)):
            worker = busy[pipe]
            task, heard = worker.task, _heard(worker)
            if not isinstance(heard, TaskProgress):
                worker.task, worker.last = None, task
            if isinstance(heard, TaskError) and isinstance(heard.error, Died):
                self._workers[self._workers.index(worker)] = self._hired()
            yield task, heard

    def _hired(self) -> Worker:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        process = context.Process(target=_serve, args=(there, self._work), daemon=True)
        with _inherited(self._threads):
            process.start()
        there.close()
        return Worker(process, here)


def _heard(worker: Worker) -> Heard:
    try:
        return worker.pipe.recv()
    except (EOFError, OSError):
        worker.process.join()
        return TaskError(Died(f"the process that ran it {ending(worker.process.exitcode)}"))


@contextmanager
def _inherited(threads: int) -> Iterator[None]:
    """What processes that are to begin find: how many threads they are to have (of others than the simulator's, what
    the user says counts), and interrupts put off, from their first moment on."""
    before = dict(os.environ)
    os.environ[THREADS] = str(threads)
    for name in OTHER_THREADS:
        os.environ.setdefault(name, str(threads))
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _MASKS else set()
    try:
        yield
    finally:
        if _MASKS:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for name in (THREADS, *OTHER_THREADS):
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


# ---- in the process ----------------------------------------------------------------------------------


def _serve(pipe: Connection, work: Work) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError, ConnectionError):  # who made it is no more
        while True:
            pipe.send(_done(work, pipe.recv(), lambda words: pipe.send(TaskProgress(words))))


def _done(work: Work, task: Any, say: Say) -> Heard:
    try:
        return TaskResult(work(task, say))
    except ConnectionError:
        raise
    except Exception as error:
        error.add_note(traceback.format_exc())
        return TaskError(portable(error, Crash))

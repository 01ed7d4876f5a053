"""A pool of processes that share the processors and run one task at a time each.

The parent receives the progress and the result of each task, and an error where its process died. A script that creates
a pool must guard itself with `if __name__ == "__main__":`, as processes are spawned.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import field
from threading import Thread
from typing import IO, TYPE_CHECKING, Any

from ...sim.child_program import without_interrupts
from ...sim.fast_dataclass import entity, frozen
from ...sim.launch.threads import THREADS, processors
from ...sim.wgsl.diagnostics import Crash
from ..child_process import ending
from ..errors import Died, TookTooLong, UsageError, portable

if TYPE_CHECKING:
    from multiprocessing.connection import Connection  # takes long to import, and most commands do without
    from multiprocessing.process import BaseProcess

Report = Callable[[Any], None]  # sends progress to the parent while a task runs
Work = Callable[[Any, Report], Any]  # runs a task and returns its result

# The environment variables that limit the threads of NumPy's BLAS and of Mesa's software adapter.
OTHER_THREADS = ("OPENBLAS_NUM_THREADS", "LP_NUM_THREADS")
SAFE_PATH = "PYTHONSAFEPATH"  # if set, Python imports nothing from the current folder
STARTING = 900.0  # seconds that a process may take to prepare; the first one may compile the machine


@frozen
class TaskProgress:
    """Progress that a task reported: words, or any value that can be pickled."""

    words: Any


@frozen
class TaskResult:
    """The result of a task."""

    result: Any


@frozen
class TaskError:
    """The exception that ended a task; `Died` or `TookTooLong` where it ended the process too."""

    error: Exception


Heard = TaskProgress | TaskResult | TaskError


@entity
class Worker:
    """One process. `task`: the one that runs, `last`: the one before; None: none. `since`: when it last sent anything
    or was given a task. `stderr`: the file that keeps its stderr, if any."""

    process: BaseProcess
    pipe: Connection
    ready: bool
    stderr: IO[bytes] | None = None
    task: Any = None
    last: Any = None
    since: float = field(default_factory=time.monotonic)

    def give(self, task: Any) -> None:
        """Start a task on an idle worker. Raises where the task cannot be pickled."""
        self.since = time.monotonic()
        with suppress(OSError):  # a process that has died is noticed by `hear`
            self.pipe.send(task)
        self.task = task

    @property
    def busy(self) -> bool:
        """Whether it runs a task, or is not prepared yet."""
        return self.task is not None or not self.ready

    def end(self) -> None:
        """Kill the process and release its resources."""
        self.process.kill()
        self.process.join()
        self.pipe.close()
        if self.stderr is not None:
            self.stderr.close()


class WorkerPool:
    """`count` processes that run `work`, which is sent to each once. Leaving the context kills them.

    `prepare` is called first in each process; the others start when the first is prepared, so that only one process
    compiles what they share. `limit`: seconds without progress after which a task has taken too long. `keep_stderr`:
    add the stderr of a process that died to its error.
    """

    def __init__(
        self,
        count: int,
        work: Work,
        *,
        prepare: Callable[[], None] | None = None,
        limit: float | None = None,
        keep_stderr: bool = False,
    ) -> None:
        self._count = count
        self._work = work
        self._prepare = prepare
        self._limit = limit
        self._keep_stderr = keep_stderr
        self._threads = max(1, processors() // count)
        self._workers = [self._start() for _ in range(count if prepare is None else 1)]

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    @property
    def idle(self) -> list[Worker]:
        """The workers that can be given a task."""
        return [worker for worker in self._workers if not worker.busy]

    @property
    def tasks(self) -> list[Any]:
        """The tasks that are running."""
        return [worker.task for worker in self._workers if worker.task is not None]

    def hear(self, wake: Sequence[Connection] = ()) -> Iterator[tuple[Any, Heard]]:
        """Wait for messages from any worker, and yield each with its task.

        A process that died or took too long is replaced. Returns also when one of `wake` can be read. Raises
        `UsageError` if a process cannot be prepared.
        """
        from multiprocessing.connection import wait

        busy = {worker.pipe: worker for worker in self._workers if worker.busy}
        news = wait([*busy, *wake], self._until_late(list(busy.values())))
        for pipe, worker in busy.items():
            if pipe in news:
                yield from self._hear(worker)
        for worker in busy.values():
            if worker in self._workers and worker.busy and self._left(worker) <= 0:
                yield from self._replace(worker, TookTooLong("did not come back"))

    def _hear(self, worker: Worker) -> Iterator[tuple[Any, Heard]]:
        try:
            heard = worker.pipe.recv()
        except (EOFError, OSError):
            worker.process.join()
            yield from self._replace(worker, self._death(worker))
            return
        worker.since = time.monotonic()
        if not worker.ready:
            worker.ready = True
            self._workers += [self._start() for _ in range(self._count - len(self._workers))]
            return
        task = worker.task
        if not isinstance(heard, TaskProgress):
            worker.task, worker.last = None, task
        yield task, heard

    def _replace(self, worker: Worker, error: Died | TookTooLong) -> Iterator[tuple[Any, Heard]]:
        """End a worker, start another, and yield an error for its task."""
        worker.end()
        if not worker.ready:
            raise UsageError(f"a worker process could not be started: {getattr(error, 'stderr_tail', '') or error}")
        self._workers[self._workers.index(worker)] = self._start()
        yield worker.task, TaskError(error)

    def _death(self, worker: Worker) -> Died:
        code = worker.process.exitcode or 0
        stderr_tail = ""
        if worker.stderr is not None:
            lines = worker.stderr.read().decode("utf-8", errors="replace").strip()
            stderr_tail = lines or f"exit code {code}"
        return Died(f"the process that ran it {ending(code)}", stderr_tail)

    def _left(self, worker: Worker) -> float:
        """Return the seconds until a busy worker has taken too long."""
        limit = STARTING if not worker.ready else self._limit
        return float("inf") if limit is None else worker.since + limit - time.monotonic()

    def _until_late(self, workers: Sequence[Worker]) -> float | None:
        left = min(map(self._left, workers), default=float("inf"))
        return None if left == float("inf") else max(0.0, left)

    def _start(self) -> Worker:
        import multiprocessing

        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        stderr = tempfile.NamedTemporaryFile(prefix="bankshot-") if self._keep_stderr else None  # noqa: SIM115
        safe = os.environ.get(SAFE_PATH)
        arguments = (there, self._work, self._prepare, None if stderr is None else stderr.name, safe)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with _inherited(self._threads):
            process.start()
        there.close()
        return Worker(process, here, ready=self._prepare is None, stderr=stderr)


@contextmanager
def _inherited(threads: int) -> Generator[None]:
    """Set what a process that starts in this context inherits: its number of threads (except for the simulator's, the
    user's setting wins), no imports from the current folder, and blocked interrupts, which only the parent handles."""
    before = dict(os.environ)
    os.environ[THREADS] = str(threads)
    os.environ[SAFE_PATH] = "1"
    for name in OTHER_THREADS:
        os.environ.setdefault(name, str(threads))
    try:
        with without_interrupts():
            yield
    finally:
        for name in (THREADS, SAFE_PATH, *OTHER_THREADS):
            if name in before:
                os.environ[name] = before[name]
            else:
                del os.environ[name]


# ---- in the worker process ---------------------------------------------------------------------------


def _serve(
    pipe: Connection, work: Work, prepare: Callable[[], None] | None, stderr: str | None, safe_path: str | None
) -> None:
    """Run the tasks received through the pipe until the parent closes it, or exits. `safe_path`: the parent's setting,
    for processes that this one starts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_exit_with_parent, daemon=True).start()
    del os.environ[SAFE_PATH]
    if safe_path is not None:
        os.environ[SAFE_PATH] = safe_path
    if stderr is not None:
        os.dup2(os.open(stderr, os.O_WRONLY), 2)
    with suppress(EOFError, ConnectionError):
        if prepare is not None:
            prepare()
            pipe.send(None)
        while True:
            _answer(pipe, _done(work, pipe.recv(), lambda words: pipe.send(TaskProgress(words))))


def _exit_with_parent() -> None:
    """Wait until the parent process has exited, and end this one, also in the middle of a task."""
    from multiprocessing import parent_process

    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _answer(pipe: Connection, heard: Heard) -> None:
    try:
        pipe.send(heard)
    except (ConnectionError, EOFError):
        raise
    except Exception as error:  # a result that cannot be pickled
        pipe.send(TaskError(portable(error, Crash)))


def _done(work: Work, task: Any, report: Report) -> Heard:
    try:
        return TaskResult(work(task, report))
    except ConnectionError:
        raise
    except Exception as error:
        error.add_note(traceback.format_exc())
        return TaskError(portable(error, Crash))

"""The client side of the worker process that runs wgpu.

Each process has one worker, which starts at its first question or at `begin`. If the worker dies, every open question
raises `DriverDied`, and the next question starts another.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from threading import RLock
from typing import Any
from weakref import WeakValueDictionary

from ..errors import DriverDied

_PROGRAM = "import sys; sys.path[:] = {}; from bankshot.oracle.wgpu_worker.serve import main; main()"
_MASKS = hasattr(signal, "pthread_sigmask")


class PendingAnswer:
    """The answer to a question, which may not have arrived yet."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self.arrived: tuple[bool, Any] | None = None  # whether the question succeeded; the answer or the error

    def answer(self) -> Any:
        """Wait for the answer. Raises the error that the question raised in the worker, or `DriverDied`."""
        with _LOCK:
            while self.arrived is None:
                self._worker.receive()
        succeeded, answer = self.arrived
        if not succeeded:
            raise answer
        return answer


class WorkerProcess:
    """A worker process. `owner` is the id of the process that may ask it, 0 once it is dead."""

    def __init__(self) -> None:
        program = _PROGRAM.format([os.path.abspath(place) for place in sys.path])
        self.owner = os.getpid()
        self._open: WeakValueDictionary[int, PendingAnswer] = WeakValueDictionary()  # by number
        self._last_number = 0
        # Interrupts are for the parent; the worker ignores them once it runs.
        mask: set[int | signal.Signals] = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _MASKS else set()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        finally:
            if _MASKS:
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def put(self, question: str, given: tuple[Any, ...], *, silent: bool = False) -> PendingAnswer:
        """Send a question. With `silent`, the worker does not answer it."""
        pending = PendingAnswer(self)
        number = None
        if not silent:
            number = self._last_number = self._last_number + 1
            self._open[number] = pending
        assert self._process.stdin is not None
        try:
            pickle.dump((number, question, given), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError:
            pending.arrived = False, self._died()
        return pending

    def receive(self) -> None:
        """Wait for one answer, to whichever question."""
        assert self._process.stdout is not None
        try:
            number, succeeded, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._died()
            return
        if pending := self._open.pop(number, None):
            pending.arrived = succeeded, answer

    def close(self) -> None:
        """Close the pipes, upon which the worker exits unless another process holds them too."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _died(self) -> DriverDied:
        """Close the pipes, answer every open question with the error, and return it."""
        self.owner = 0
        self.close()
        died = DriverDied(f"the process that ran wgpu {ending(self._process.wait())}")
        for pending in self._open.values():
            pending.arrived = False, died
        return died


_LOCK = RLock()  # one thread uses the pipes at a time
_worker: WorkerProcess | None = None


def begin() -> WorkerProcess:
    """Return the worker of this process, which starts if there is none."""
    global _worker
    with _LOCK:
        if _worker is None or _worker.owner != os.getpid():
            _worker = WorkerProcess()
        return _worker


def ask(question: str, *given: Any) -> Any:
    """Ask one of `serve.QUESTIONS` and wait for the answer. Raises the error of the question, or `DriverDied`."""
    return put(question, *given).answer()


def put(question: str, *given: Any) -> PendingAnswer:
    """Ask a question whose answer is awaited later."""
    with _LOCK:
        return begin().put(question, given)


def tell(question: str, *given: Any) -> None:
    """Have the worker prepare for a later question. There is no answer."""
    with _LOCK:
        begin().put(question, given, silent=True)


def take_over() -> None:
    """In a forked process, use the worker that the parent process started."""
    if _worker is not None and _worker.owner:
        _worker.owner = os.getpid()


def hand_over() -> None:
    """In the process that forked, leave the worker to the child."""
    global _worker
    if _worker is not None:
        _worker.close()
        _worker = None


def ending(code: int) -> str:
    """Describe how a process ended, from its return code."""
    if code >= 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        return f"died of {name}{'; perhaps there was not enough memory' if name == 'SIGKILL' else ''}"
    return f"died of signal {-code}"

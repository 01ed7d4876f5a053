"""Processes that answer questions of this one: what crashes, hangs or prints there harms nothing here.

Questions and answers are pickled. A child exits as soon as its standard input is closed, so that it never outlives its
parent. Imports nothing large, so that children start quickly.
"""

from __future__ import annotations

import io
import os
import pickle
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import SimpleQueue
from threading import RLock, Thread
from typing import IO, Any
from weakref import WeakValueDictionary

from ..sim.child_program import command, without_interrupts
from .errors import UsageError, portable, time_limit

_PATIENCE = 5.0  # seconds for a process whose pipes are closed to end
_LOCK = RLock()  # one thread uses the pipes at a time


class PendingAnswer:
    """The answer to a question, which may not have arrived yet."""

    def __init__(self, child: ChildProcess) -> None:
        self._child = child
        self.arrived: tuple[bool, Any] | None = None  # whether the question succeeded; the answer or the error

    def answer(self) -> Any:
        """Wait for the answer. Raises the error that the question raised in the child, or that it died."""
        with _LOCK:
            while self.arrived is None:
                self._child.receive()
        succeeded, answer = self.arrived
        if not succeeded:
            raise answer
        return answer


class ChildProcess:
    """A process that runs `statements`, which call `serve`.

    `what` it is, for the message of `died`, which every open question raises when it dies or takes longer than
    `time_limit`. `owner` is the id of the process that may ask it, 0 once it is dead.
    """

    def __init__(self, statements: str, what: str, died: type[UsageError]) -> None:
        self._what, self._error = what, died
        self.owner = os.getpid()
        self._open: WeakValueDictionary[int, PendingAnswer] = WeakValueDictionary()  # by number
        self._last_number = 0
        with without_interrupts():
            self._process = subprocess.Popen(command(statements), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._answers = io.BufferedReader(_Patient(self._process.stdout.fileno()))

    def put(self, question: str, given: tuple[Any, ...], *, silent: bool = False) -> PendingAnswer:
        """Send a question. With `silent`, the child does not answer it."""
        with _LOCK:
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
        try:
            number, succeeded, answer = pickle.load(self._answers)
        except TimeoutError:
            self._process.kill()
            self._died(f"did not answer for {time_limit():g} s and was ended; --limit SECONDS gives it longer")
            return
        except Exception:  # it has died, or it has written something else
            self._died()
            return
        if pending := self._open.pop(number, None):
            pending.arrived = succeeded, answer

    def close(self) -> None:
        """Close the pipes, upon which the child exits unless another process holds them too."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _died(self, how: str = "") -> UsageError:
        """Close the pipes, answer every open question with the error, and return it."""
        self.owner = 0
        self.close()
        try:
            code = self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            code = self._process.wait()
        died = self._error(f"{self._what} {how or ending(code)}")
        for pending in self._open.values():
            pending.arrived = False, died
        return died


class _Patient(io.RawIOBase):
    """The reading end of a pipe. Raises TimeoutError where nothing arrives within the limit."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self._descriptor, select.POLLIN)
            if not poll.poll(1000 * time_limit()):
                raise TimeoutError
        data = os.read(self._descriptor, len(buffer))
        buffer[: len(data)] = data
        return len(data)


def ending(code: int) -> str:
    """Describe how a process ended, from its return code."""
    if code >= 0:
        return f"exited with code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        return f"died of {name}{'; perhaps there was not enough memory' if name == 'SIGKILL' else ''}"
    return f"died of signal {-code}"


# ---- in the child ------------------------------------------------------------------------------------


def serve(
    questions: Mapping[str, Callable[..., Any]],
    prepare: Callable[[SimpleQueue[Any]], None] = lambda asked: None,
    stdout: int = 2,
) -> None:
    """Answer questions until standard input is closed, and then exit, even while one is being answered.

    What is printed goes to the descriptor `stdout`. `prepare` runs before the first question. Interrupts are ignored:
    the parent process handles them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers, asking = os.fdopen(os.dup(1), "wb"), os.fdopen(os.dup(0), "rb")
    os.dup2(stdout, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    asked: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(asking, asked), daemon=True).start()
    prepare(asked)
    while True:
        number, question, given = asked.get()
        answer = answered(questions[question], given)
        if number is not None:
            pickle.dump((number, *answer), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
        sys.stderr.flush()


def _listen(questions: IO[bytes], asked: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            asked.put(pickle.load(questions))
    os._exit(0)


def answered(question: Callable[..., Any], given: tuple[Any, ...]) -> tuple[bool, Any]:
    """Answer one question. Returns whether it succeeded, and the answer or the error."""
    try:
        return True, question(*given)
    except Exception as error:
        return False, portable(error, RuntimeError)

"""The process that runs wgpu, from outside: there is one for each process that asks, from its first question on, or
from `begin`. Where it dies, whoever has asked is told, and the next question begins another.
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


class Asked:
    """A question that has been put."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.known: tuple[bool, Any] | None = None

    def answer(self) -> Any:
        """Wait for it. Raises what the question raised there, or `DriverDied`."""
        with _TURN:
            while self.known is None:
                self._driver.hear()
        good, answer = self.known
        if not good:
            raise answer
        return answer


class Driver:
    """One such process. `owner`: the process that may ask it."""

    def __init__(self) -> None:
        program = _PROGRAM.format([os.path.abspath(place) for place in sys.path])
        self.owner = os.getpid()
        self._waiting: WeakValueDictionary[int, Asked] = WeakValueDictionary()
        self._asked = 0
        # An interrupt is for the parent.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if _MASKS else set()
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        finally:
            if _MASKS:
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def put(self, question: str, given: tuple[Any, ...], *, silent: bool = False) -> Asked:
        """Ask a question. `silent`: without an answer."""
        asked = Asked(self)
        number = None
        if not silent:
            number = self._asked = self._asked + 1
            self._waiting[number] = asked
        assert self._process.stdin is not None
        try:
            pickle.dump((number, question, given), self._process.stdin, pickle.HIGHEST_PROTOCOL)
            self._process.stdin.flush()
        except OSError:
            asked.known = False, self._died()
        return asked

    def hear(self) -> None:
        """Take in one answer."""
        assert self._process.stdout is not None
        try:
            number, *known = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self._died()
            return
        if asked := self._waiting.pop(number, None):
            asked.known = known[0], known[1]

    def leave(self) -> None:
        """Ask it nothing any more: it ends, unless another process has it."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _died(self) -> DriverDied:
        """Close the pipes, and answer every open question with the error, which is returned: there is nothing to read
        for a question that was put before the process died."""
        self.owner = 0
        self.leave()
        died = DriverDied(f"the process that ran wgpu {ending(self._process.wait())}")
        for asked in self._waiting.values():
            asked.known = False, died
        return died


_TURN = RLock()  # one thread asks at a time
_driver: Driver | None = None


def begin() -> Driver:
    """The process to ask, started if need be."""
    global _driver
    with _TURN:
        if _driver is None or _driver.owner != os.getpid():
            _driver = Driver()
        return _driver


def ask(question: str, *given: Any) -> Any:
    """The answer to one of `serving.QUESTIONS`. Raises what it raises, or `DriverDied`."""
    return put(question, *given).answer()


def put(question: str, *given: Any) -> Asked:
    """Ask a question, and wait for its answer later."""
    with _TURN:
        return begin().put(question, given)


def tell(question: str, *given: Any) -> None:
    """Have something done that a question to come needs, and do not wait."""
    with _TURN:
        begin().put(question, given, silent=True)


def take_over() -> None:
    """In a process that was forked off: ask the one that its parent has begun."""
    if _driver is not None and _driver.owner:
        _driver.owner = os.getpid()


def hand_over() -> None:
    """In the process that forked: leave it to the other."""
    global _driver
    if _driver is not None:
        _driver.leave()
        _driver = None


def ending(code: int) -> str:
    """How a process has ended."""
    if code >= 0:
        return f"left with exit code {code}"
    with suppress(ValueError):
        name = signal.Signals(-code).name
        return f"died of {name}{'; perhaps there was not enough memory' if name == 'SIGKILL' else ''}"
    return f"died of signal {-code}"

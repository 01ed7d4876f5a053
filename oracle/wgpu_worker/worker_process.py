"""The client side of the worker process that runs wgpu.

Each process has one worker, which starts at its first question or at `begin`. If the worker dies, every open question
raises `DriverDied`, and the next question starts another.
"""

from __future__ import annotations

import os
from threading import RLock
from typing import Any

from ..child_process import ChildProcess, PendingAnswer
from ..errors import DriverDied

_PROGRAM = "from bankshot.oracle.wgpu_worker.serve import main; main()"

_LOCK = RLock()
_worker: ChildProcess | None = None


def begin() -> ChildProcess:
    """Return the worker of this process, which starts if there is none."""
    global _worker
    with _LOCK:
        if _worker is None or _worker.owner != os.getpid():
            _worker = ChildProcess(_PROGRAM, "the process that ran wgpu", DriverDied)
        return _worker


def ask(question: str, *given: Any) -> Any:
    """Ask one of `serve.QUESTIONS` and wait for the answer. Raises the error of the question, or `DriverDied`."""
    return put(question, *given).answer()


def put(question: str, *given: Any) -> PendingAnswer:
    """Ask a question whose answer is awaited later."""
    return begin().put(question, given)


def tell(question: str, *given: Any) -> None:
    """Have the worker prepare for a later question. There is no answer."""
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

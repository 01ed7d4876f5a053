"""The main program of the worker process: reads questions from standard input and writes answers to standard output.

The process exits as soon as its standard input is closed, even while a driver is busy or hangs.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import IO, Any

from ..errors import portable
from . import device_dispatch, wgpu_library

QUESTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (wgpu_library.offers, wgpu_library.abilities, device_dispatch.dispatch, device_dispatch.refusal)
}


def main() -> None:
    """Answer questions until standard input is closed.

    Output that drivers print goes to stderr. Interrupts are ignored: the parent process handles them.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True).start()
    _warm_up(asked)
    while True:
        number, question, given = asked.get()
        answer = answered(question, given)
        if number is not None:
            pickle.dump((number, *answer), answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()


def _listen(questions: IO[bytes], asked: SimpleQueue[Any]) -> None:
    with suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            asked.put(pickle.load(questions))
    os._exit(0)


def _warm_up(asked: SimpleQueue[Any]) -> None:
    """Load what the first question is likely to need, until it arrives. Questions raise the errors ignored here."""
    for step in (wgpu_library.offers, lambda: wgpu_library.abilities(0)):
        with suppress(Exception):
            if asked.empty():
                step()


def answered(question: str, given: tuple[Any, ...]) -> tuple[bool, Any]:
    """Answer one question. Returns whether it succeeded, and the answer or the error."""
    try:
        return True, QUESTIONS[question](*given)
    except Exception as error:
        return False, portable(error, RuntimeError)

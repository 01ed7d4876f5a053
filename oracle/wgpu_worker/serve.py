"""What the process does: questions from its standard input, one after the other, their answers to its standard output.

It ends with the one who asks: as soon as nobody can ask any more, whatever a driver is at.
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
    """Answer until nobody asks. Whoever prints, prints to stderr; an interrupt is for who asks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    asked: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(sys.stdin.buffer, asked), daemon=True).start()
    _get_ready(asked)
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


def _get_ready(asked: SimpleQueue[Any]) -> None:
    """What the first question is likely to need, until it comes. What is wrong is told to who asks."""
    for step in (wgpu_library.offers, lambda: wgpu_library.abilities(0)):
        with suppress(Exception):
            if asked.empty():
                step()


def answered(question: str, given: tuple[Any, ...]) -> tuple[bool, Any]:
    """Whether there is one, and what it is; else the error."""
    try:
        return True, QUESTIONS[question](*given)
    except Exception as error:
        return False, portable(error, RuntimeError)

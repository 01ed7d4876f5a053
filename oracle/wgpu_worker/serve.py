"""The main program of the worker process that runs wgpu."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from ..child_process import serve
from . import device_dispatch, device_times, wgpu_library

QUESTIONS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(wgpu_library.offers, wgpu_library.abilities),
        *(device_dispatch.dispatch, device_dispatch.refusal, device_times.times),
    )
}


def main() -> None:
    """Answer questions until standard input is closed. What drivers print goes to stderr."""
    serve(QUESTIONS, _warm_up)


def _warm_up(asked: SimpleQueue[Any]) -> None:
    """Load what the first question is likely to need, until it arrives. Questions raise the errors ignored here."""
    for step in (wgpu_library.offers, lambda: wgpu_library.abilities(0)):
        with suppress(Exception):
            if asked.empty():
                step()

"""Python processes of our own, which import nothing from the current folder: kernels may lie beside a `json.py`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager

_PACKAGE = __name__.partition(".")[0]
_FIND = (
    "import sys; sys.path[:] = {path}; from importlib import util; "
    "found = util.spec_from_file_location({name!r}, {file!r}, submodule_search_locations=[{folder!r}]); "
    "sys.modules[{name!r}] = made = util.module_from_spec(found); found.loader.exec_module(made); "
)


def command(statements: str, *arguments: str) -> list[str]:
    """Return the command line of a process that runs Python statements, which may import this package.

    `sys.path` is that of this process, without the current folder.
    """
    path = [os.path.abspath(place) for place in sys.path if place]
    file = os.path.abspath(sys.modules[_PACKAGE].__file__ or "")
    find = _FIND.format(path=path, name=_PACKAGE, file=file, folder=os.path.dirname(file))
    return [sys.executable, "-P", "-c", find + statements, *arguments]


@contextmanager
def without_interrupts() -> Generator[None]:
    """Block interrupts for a process that starts in this context, as only its parent handles them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

"""The two ways to compile the machine. `fast` reaches into Numba; `plain` keeps to what Numba documents.

The fast path is for the versions of Numba that `make test-numba` has tried. On others, and where the fast path fails,
Bankshot takes the plain one. The variable BANKSHOT_COMPILE asks for one of them.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FAST, PLAIN = "fast", "plain"
VARIABLE = "BANKSHOT_COMPILE"
OLDEST_TESTED, NEWEST_TESTED = (0, 61), (0, 68)  # versions of Numba that the fast path is for


class CompileError(RuntimeError):
    """The machine cannot be compiled by this path: trying again would not help."""


def requested() -> str | None:
    """The path that the environment asks for. Raises ValueError where there is no such path."""
    path = os.environ.get(VARIABLE) or None
    if path not in (None, FAST, PLAIN):
        raise ValueError(f"{VARIABLE} must be {FAST} or {PLAIN}, not {path!r}")
    return path


def wanted() -> str:
    """The path that is requested, or else the one for this version of Numba."""
    return requested() or (FAST if OLDEST_TESTED <= numba_version() <= NEWEST_TESTED else PLAIN)


@cache
def numba_version() -> tuple[int, int]:
    """Of the installed Numba: major and minor. Importing Numba, or `importlib.metadata`, to ask would take long."""
    pattern = r"(\d+)\.(\d+)"
    found = re.search(rf'"version": "{pattern}', version_file("numba").read_text(encoding="utf-8"))
    if not found:  # in a checkout of Numba, whose file works it out
        from importlib.metadata import version

        found = re.match(pattern, version("numba"))
    assert found is not None
    return int(found[1]), int(found[2])


def version_file(package: str) -> Path:
    """The file of a package, not imported, that says which version it is."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "_version.py"


@cache
def implementation() -> Any:
    """The module `fast` or `plain`, for what is compiled in this process."""
    path = wanted()
    try:
        return import_module(f".{path}", __package__)
    except Exception as error:
        if requested() or path == PLAIN:
            raise
        warn(reason(error))
        return import_module(f".{PLAIN}", __package__)


def reason(error: BaseException) -> str:
    """An error in one line."""
    first = next(iter(str(error).splitlines()), "")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def warn(why: str) -> None:
    """Say that the plain path is taken instead of the fast one."""
    print(f"bankshot: the fast compile path fails with this Numba ({why}); using the plain one", file=sys.stderr)

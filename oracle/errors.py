"""Errors that the user can mend: the command line prints them without a traceback and exits with code 2.

Also how texts of others, such as names, are shown in messages, and the limit after which a process has failed.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# Control characters, and those that reverse the direction of text.
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class UsageError(Exception):
    """Wrong use: a missing file, an invalid manifest, data that does not fit. The message is one sentence."""


class NoAdapter(UsageError):
    """This machine has no adapter that wgpu can run a shader on; the message says what to install."""


class GpuError(UsageError):
    """wgpu refused the shader or the dispatch; the message is naga's or wgpu's own."""


class TooLarge(GpuError):
    """A binding is larger than the adapter can bind."""


class Lacking(GpuError):
    """The adapter lacks a feature that the shader enables."""


class DriverDied(GpuError):
    """The process that runs wgpu has died, usually of its driver."""


class Died(UsageError):
    """The process that did a task has died. `stderr_tail`: what it wrote to stderr, where that was kept."""

    def __init__(self, message: str, stderr_tail: str = "") -> None:
        super().__init__(message)
        self.stderr_tail = stderr_tail


class TookTooLong(UsageError):
    """A task reported nothing for longer than its limit, and its process was ended."""


@contextmanager
def writing(file: object) -> Generator[None]:
    """Raise `UsageError` where a file cannot be written. `file`: its path, or its option and its path."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from None


def check_writable(path: Path, file: object) -> None:
    """Raise `UsageError` if there is no place for a file, before a run, which may be long. `file`: see `writing`."""
    if path.is_dir():
        raise UsageError(f"{file}: cannot be written: it is a folder")
    if not path.parent.is_dir():
        raise UsageError(f"{file}: cannot be written: there is no folder {path.parent}")


def printable(text: str, keep: str = "") -> str:
    """Write control characters as escape sequences, except for those in `keep`."""
    return _CONTROLS.sub(lambda c: c[0] if c[0] in keep else c[0].encode("unicode_escape").decode(), text)


def on_github() -> bool:
    """Whether a GitHub workflow runs this process, and reads what it prints for commands."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def escape_controls(text: str, github: bool = False) -> str:
    """Escape the control characters of a text for a terminal, except for line breaks, tabs and colours.

    With `github`, also the start of lines that a workflow would obey.
    """
    parts = _STYLES.split(text)
    parts[::2] = (printable(part, keep="\n\t") for part in parts[::2])
    plain = "".join(parts)
    return _COMMAND.sub(r"\1\\\2", plain) if github else plain


LIMIT = "BANKSHOT_LIMIT"
_STYLES = re.compile(r"(\x1b\[[0-9;]*m)")  # escape sequences that set colours
_COMMAND = re.compile(r"^(\s*)(::|##\[)", re.MULTILINE)  # the start of a line that GitHub takes for a command
SECONDS, _LONGEST = 300.0, 1e6


def time_limit() -> float:
    """Return the seconds after which a process that does not answer is ended. Raises `UsageError`."""
    text = os.environ.get(LIMIT) or str(SECONDS)
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= _LONGEST:
        raise UsageError(f"{LIMIT} must be a number of seconds above 0 and at most {_LONGEST:,.0f}, not {text!r}")
    return seconds


def portable(error: Exception, instead: type[Exception]) -> Exception:
    """Return the error, or its words in another one where it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return instead(f"{type(error).__name__}: {error}")
    return error

"""The standard streams of a command: a reader that leaves, a full disk or a poor encoding never ends its work.

What cannot be written is dropped, and `finish` says so when the command has ended. Imports nothing large.
"""

from __future__ import annotations

import io
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EPIPE
from functools import cached_property
from typing import Any, TextIO, cast

from ..errors import escape_controls, on_github
from ..exit_codes import WRONG_USE

_NAMES = ("stdin", "stdout", "stderr")
_closed: set[str] = set()
_outputs: dict[str, Output] = {}


class _Raw(io.RawIOBase):
    """A file descriptor whose writes never fail. `failure`: why what was written last is lost."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.failure: OSError | None = None

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: Any, /) -> int:
        while self.failure is None:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:  # a pipe that another program has made non-blocking
                select.select([], [self._descriptor], [])
            except OSError as error:
                self.failure = error
        return len(data)


class Output(io.TextIOWrapper):
    """Text for a file descriptor, for people who read a terminal or a log.

    Control characters, and those that the encoding lacks, are written as escape sequences, and no line is a command for
    GitHub, but for what is written to `unescaped`.
    """

    def __init__(self, stream: io.TextIOWrapper) -> None:
        self.raw = _Raw(stream.fileno())
        # Click writes UTF-8 to a stream that says it is ASCII.
        self.is_ascii = stream.encoding.lower().replace("-", "") in ("ascii", "usascii", "ansi_x3.41968", "646")
        super().__init__(
            io.BufferedWriter(self.raw),
            encoding="utf-8" if self.is_ascii else stream.encoding,
            errors="backslashreplace",
            line_buffering=stream.line_buffering,
            write_through=stream.write_through,
        )

    def write(self, text: str, /) -> int:
        self.unescaped.write(escape_controls(text, on_github()))
        return len(text)

    @cached_property
    def unescaped(self) -> TextIO:
        """The stream for text that may hold control characters: progress bars, and commands for GitHub."""
        return cast("TextIO", _Unescaped(self, super().write))


class _Unescaped(io.TextIOBase):
    def __init__(self, output: Output, write: Callable[[str], int]) -> None:
        self._output, self._write = output, write

    def write(self, text: str, /) -> int:
        return self._write(text.encode("ascii", "backslashreplace").decode() if self._output.is_ascii else text)

    def flush(self) -> None:
        self._output.flush()

    def fileno(self) -> int:
        return self._output.fileno()

    def isatty(self) -> bool:
        return self._output.isatty()


def occupy() -> None:
    """Open the null device for each standard stream that is closed, so that no other file takes its number."""
    for descriptor, name in enumerate(_NAMES):
        try:
            os.fstat(descriptor)
        except OSError:
            _closed.add(name)
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))


def install() -> None:
    """Replace stdout and stderr by streams that never fail."""
    for name in _NAMES[1:]:
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Output):
            plain = cast("io.TextIOWrapper[Any]", stream)
            with suppress(OSError, ValueError):
                plain.flush()
            _outputs[name] = Output(plain)
            setattr(sys, name, _outputs[name])


def finish(code: int) -> int:
    """Flush the streams, say on stderr what could not be printed, and return the exit code of a command that ends with
    `code`: a reader that left early does not change it, and a stream that failed otherwise makes it `WRONG_USE` at
    least."""
    for name, stream in _outputs.items():
        stream.flush()
        failure = stream.raw.failure
        if name in _closed and name == "stdout":
            print("note: stdout is closed, so that the report was printed nowhere", file=sys.stderr)
        elif failure is not None and failure.errno != EPIPE:
            print(f"error: {name} could not be written: {failure.strerror}", file=sys.stderr)
            code = max(code, WRONG_USE)
    with suppress(KeyError):
        _outputs["stderr"].flush()
    return code

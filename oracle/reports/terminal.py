"""What reports print on a terminal, or in a pipe 120 columns wide: lines, headings, verdicts, and numbers."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from errno import EPIPE
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

from ..errors import printable

if TYPE_CHECKING:
    from ...sim.cures.patches import Patch
    from ..manifests.manifest import Case

WIDTH = 120  # columns of a report that does not go to a terminal


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise BrokenPipeError(EPIPE, os.strerror(EPIPE))  # rich would end the process with 1, whatever the verdict


def console(stream: TextIO | None = None) -> Console:
    """A console on a stream, by default stdout."""
    target = sys.stdout if stream is None else stream
    return _Console(file=target, width=None if target.isatty() else WIDTH, highlight=False, emoji=False)


def print_command(line: str, stream: TextIO | None = None) -> None:
    """Print a line that GitHub's runner obeys, whose text must be escaped. All other lines it must not obey."""
    target = sys.stdout if stream is None else stream
    target = getattr(target, "unescaped", target)
    target.write(f"{printable(line)}\n")
    target.flush()


def say(out: Console, words: str | Text, style: str = "") -> None:
    """Print a line without breaking it, so that paths stay whole and carets stay below what they point at."""
    out.print(Text(words, style) if isinstance(words, str) else words, soft_wrap=True)


def show_unmapped(out: Console, patch: Patch, indent: str = "  ") -> None:
    """Print which changes of the preprocessed text are not in the diff of the files."""
    for words in patch.unmapped:
        say(out, f"{indent}not in the diff: {words}", "yellow")


def show_heading(out: Console, case: Case, tail: str) -> None:
    """Print the title of a case, and its source, entry point and grid."""
    kernel = case.kernel
    title = f"{kernel.name}  {case.shape}".rstrip()
    say(out, title, "bold")
    grid = " x ".join(map(str, case.grid))
    entry = f" entry {kernel.entry}," if kernel.entry else ""
    say(out, f"  {kernel.source},{entry} grid {grid}, {tail}", "dim")


def verdict(ok: bool) -> Text:
    """The start of a line that says how a check went."""
    return Text.assemble(("  ok       ", "green")) if ok else Text.assemble(("  DIFFERS  ", "bold red"))


def show_seconds(out: Console, seconds: Mapping[str, float]) -> None:
    say(out, f"  took: {', '.join(f'{what} {duration(s)}' for what, s in seconds.items())}", "dim")
    out.print()


def duration(seconds: float) -> str:
    """A duration in a few digits of seconds, milliseconds or microseconds."""
    scales = ((0.1, "{:.2f} s", 1), (1e-3, "{:.0f} ms", 1e3), (0, "{:.0f} us", 1e6))
    return next(words.format(seconds * scale) for least, words, scale in scales if seconds >= least)


def amount(value: float, unit: str) -> str:
    """A number with its unit; `%` and `ratio` are not written as units."""
    if unit == "%":
        return f"{value:.1%}"
    if unit == "ratio":
        return f"{value:.3g}"
    return f"{value:,} {unit}".rstrip()

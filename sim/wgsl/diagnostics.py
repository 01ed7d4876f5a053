"""Diagnostics: immutable data with one renderer, and the two exceptions.

A message is one sentence in lower case without a full stop, and points at the source rather than quoting it. A second
place is a `note:`, advice is a `hint:`. `WgslError` means that the shader is wrong, `Crash` that Bankshot is.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import takewhile

from ..fast_dataclass import sealed
from .source import Span


@sealed
class Note:
    """A second place that explains the first."""

    message: str
    span: Span | None = None


@sealed
class Diagnostic:
    """One message. `severity` is error, warning or info; `code` is a short stable name (`unresolved-name`)."""

    severity: str
    code: str
    message: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    hint: str | None = None

    def render(self) -> str:
        """Render `file:line:col: error: message`, the line, carets under the span, then the notes and the hint."""
        parts = [_headed(self.severity, self.message, self.span)]
        parts += [_headed("note", note.message, note.span) for note in self.notes]
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


def _headed(word: str, message: str, span: Span | None) -> str:
    if span is None:
        return f"{word}: {message}"
    place = span.place
    head = f"{place.file}:{place.line}:{place.column}: {word}: {message}"
    index = span.source.line_index(span.start)
    line = span.source.line_text(index)
    offset = span.start - span.source.line_start(index)
    width = max(1, min(span.end - span.start, len(line) - offset))
    # A tab under each tab keeps the caret aligned, whatever the tab width.
    indent = "".join("\t" if c == "\t" else " " for c in line[:offset])
    return f"{head}\n{line}\n{indent}{'^' * width}"


class WgslError(Exception):
    """The shader, or an argument of its run, is wrong. `diagnostics` has every error; the first is the cause."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n\n".join(d.render() for d in diagnostics))

    def __reduce__(self) -> tuple[type[WgslError], tuple[Diagnostic, ...]]:
        """Pickle by the arguments of the constructor, so that the exception can cross processes."""
        return type(self), self.diagnostics


class Crash(Exception):
    """An internal error of Bankshot. The message asks for a report."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.message = message
        self.span = span
        super().__init__(_headed("internal error", message, span) + "\nplease report this, with the shader")

    def __reduce__(self) -> tuple[type[Crash], tuple[str, Span | None]]:
        """Pickle by the arguments of the constructor, so that the exception can cross processes."""
        return type(self), (self.message, self.span)


def fail(code: str, message: str, span: Span | None, *notes: Note, hint: str | None = None) -> WgslError:
    """Make a `WgslError` of one error diagnostic: `raise fail("unresolved-name", "…", span)`."""
    return WgslError(Diagnostic("error", code, message, span, notes, hint))


def counted(least: int, most: int, noun: str) -> str:
    """Format a range of counts: `1 argument`, `1 or 2 arguments`, `1 to 3 arguments`."""
    if least == most:
        return f"{least} {noun}" if least == 1 else f"{least} {noun}s"
    return f"{least} {'or' if most == least + 1 else 'to'} {most} {noun}s"


def first_words(text: str, limit: int = 40) -> str:
    """Return the start of a piece of source, for messages that must quote it."""
    line = "".join(takewhile(lambda c: c not in "\r\n", text.strip()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint that names the candidate with the spelling closest to `name`, or None."""
    close = get_close_matches(name, list(candidates), n=1, cutoff=0.7)
    return f"did you mean '{close[0]}'?" if close else None

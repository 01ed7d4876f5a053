"""What is said to people about their shader: frozen data, and one renderer.

Messages are lower case, one sentence, no full stop, and point rather than quote. A second place is a `note:`,
advice is a `hint:`. `WgslError` is the shader's fault; `Crash` is ours.
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
    """One thing to say. `severity` is error, warning or info; `code` is a short stable name (`unresolved-name`)."""

    severity: str
    code: str
    message: str
    span: Span | None
    notes: tuple[Note, ...] = ()
    hint: str | None = None

    def render(self) -> str:
        """`file:line:col: error: message`, the line, a caret under the span, then notes and hint."""
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
    # Tabs are kept under tabs, so that the caret stands where the eye expects it.
    indent = "".join("\t" if c == "\t" else " " for c in line[:offset])
    return f"{head}\n{line}\n{indent}{'^' * width}"


class WgslError(Exception):
    """The shader, or what was given to run it, is wrong.

    `diagnostics` holds every complaint, the first is the reason.
    """

    def __init__(self, *diagnostics: Diagnostic) -> None:
        self.diagnostics = diagnostics
        super().__init__("\n\n".join(d.render() for d in diagnostics))

    def __reduce__(self) -> tuple[type[WgslError], tuple[Diagnostic, ...]]:
        """So that it gets from one process to another."""
        return type(self), self.diagnostics


class Crash(Exception):
    """Bankshot is wrong: an internal error that asks for a report."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        self.message = message
        self.span = span
        super().__init__(_headed("internal error", message, span) + "\nplease report this, with the shader")

    def __reduce__(self) -> tuple[type[Crash], tuple[str, Span | None]]:
        """So that it gets from one process to another."""
        return type(self), (self.message, self.span)


def fail(code: str, message: str, span: Span | None, *notes: Note, hint: str | None = None) -> WgslError:
    """A `WgslError` of one error diagnostic: `raise fail("unresolved-name", "…", span)`."""
    return WgslError(Diagnostic("error", code, message, span, notes, hint))


def counted(least: int, most: int, noun: str) -> str:
    """How many of something: `1 argument`, `1 or 2 arguments`, `1 to 3 arguments`."""
    if least == most:
        return f"{least} {noun}" if least == 1 else f"{least} {noun}s"
    return f"{least} {'or' if most == least + 1 else 'to'} {most} {noun}s"


def first_words(text: str, limit: int = 40) -> str:
    """The start of a piece of source, for messages that must quote it."""
    line = "".join(takewhile(lambda c: c not in "\r\n", text.strip()))
    return line if len(line) <= limit else line[: limit - 1] + "…"


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A hint that names the candidate spelled most like `name`, or None."""
    close = get_close_matches(name, list(candidates), n=1, cutoff=0.7)
    return f"did you mean '{close[0]}'?" if close else None

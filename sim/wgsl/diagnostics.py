"""Diagnostics: immutable data with one renderer, and the two exceptions.

A message is one sentence in lower case without a full stop, and points at the source rather than quoting it. A second
place is a `note:`, advice is a `hint:`. `WgslError` means that the shader is wrong, `Crash` that Bankshot is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from functools import wraps
from typing import ParamSpec, TypeVar

from ..fast_dataclass import sealed
from .source import Span

P = ParamSpec("P")
R = TypeVar("R")


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
            parts.append(f"hint: {clipped(self.hint)}")
        return "\n".join(parts)


_LONGEST_LINE = 240  # characters of the source line that are shown
_LONGEST_MESSAGE = 1000
_LONGEST_NAME = 100  # for which similar names are looked for
_MOST_CANDIDATES = 1000  # that are compared with one name


def _headed(word: str, message: str, span: Span | None) -> str:
    message = clipped(message)
    if span is None:
        return f"{word}: {message}"
    place = span.place
    head = f"{place.file}:{place.line}:{place.column}: {word}: {message}"
    index = span.source.line_index(span.start)
    line = span.source.line_text(index)
    offset = span.start - span.source.line_start(index)
    width = max(1, min(span.end - span.start, len(line) - offset))
    if len(line) > _LONGEST_LINE:
        line, offset, width = _window(line, offset, width)
    # A tab under each tab keeps the caret aligned, whatever the tab width.
    indent = "".join("\t" if c == "\t" else " " for c in line[:offset])
    return f"{head}\n{line}\n{indent}{'^' * width}"


def _window(line: str, offset: int, width: int) -> tuple[str, int, int]:
    """Return the part of a long line around a span, with the offset and width of the span in it."""
    start = max(0, min(offset - _LONGEST_LINE // 3, len(line) - _LONGEST_LINE))
    end = min(start + _LONGEST_LINE, len(line))
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}", offset - start + len(before), min(width, end - offset)


def clipped(text: str) -> str:
    """Leave out the middle of a long text: a name, or a type, may be of any length."""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]}…{text[-half:]}"


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


def limits_are_errors(what: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: `RecursionError` and `MemoryError` of the function become a `WgslError`."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def call(*given: P.args, **named: P.kwargs) -> R:
            try:
                return function(*given, **named)
            except RecursionError:
                raise fail("limit", f"the module nests too deeply to be {what}", None) from None
            except MemoryError as error:
                detail = f" ({error})" if str(error) else ""
                raise fail("limit", f"there is not enough memory for the module to be {what}{detail}", None) from None

        return call

    return decorate


def counted(least: int, most: int, noun: str) -> str:
    """Format a range of counts: `1 argument`, `1 or 2 arguments`, `1 to 3 arguments`."""
    if least == most:
        return f"{least} {noun}" if least == 1 else f"{least} {noun}s"
    return f"{least} {'or' if most == least + 1 else 'to'} {most} {noun}s"


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: `one, two and three`."""
    *before, last = words or ("",)
    return f"{', '.join(before)} and {last}" if before else last


def first_words(text: str, limit: int = 40) -> str:
    """Return the start of a piece of source, for messages that must quote it."""
    line = text.strip().partition("\n")[0].partition("\r")[0]
    return line if len(line) <= limit else line[: limit - 1] + "…"


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """Return a hint that names the candidate with the spelling closest to `name`, or None."""
    if len(name) > _LONGEST_NAME:
        return None
    words = list(candidates)
    if same := next((word for word in words if word.lower() == name.lower()), None):
        return f"did you mean '{same}'?"
    near = [word for word in words if max(len(word), len(name)) <= 3 * min(len(word), len(name))]
    close = get_close_matches(name, near[:_MOST_CANDIDATES], n=1, cutoff=0.65)
    return f"did you mean '{close[0]}'?" if close else None

"""Change a source text at many places at once: insert around nested spans, or replace spans that do not overlap."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from dataclasses import field

from ..fast_dataclass import entity, frozen
from .source import Span

_OUTERMOST = 1 << 20  # added to an end: sorts an insertion before all others at its place

_Insertion = tuple[int, int, str]


@entity
class Edits:
    """Insertions into a text. At one place, ends come before beginnings, inner ends first, outer beginnings first."""

    ends: list[_Insertion] = field(default_factory=list[_Insertion])  # place, start of the span that ends, text
    begins: list[_Insertion] = field(default_factory=list[_Insertion])  # place, end of the span that begins, text

    def around(self, span: Span, before: str, after: str) -> None:
        """Enclose a span in two texts."""
        self.begins.append((span.start, span.end, before))
        self.ends.append((span.end, span.start, after))

    def after(self, span: Span, text: str) -> None:
        """Insert after a statement, before the semicolon that ends it."""
        self.ends.append((span.end, -1, text))

    def before(self, span: Span, text: str) -> None:
        """Insert before a statement."""
        self.begins.append((span.start, _OUTERMOST + span.end, text))

    def at(self, place: int, text: str) -> None:
        """Insert at a place."""
        self.begins.append((place, _OUTERMOST, text))

    def apply(self, text: str) -> str:
        """Return the text with all insertions."""
        ends = sorted(self.ends, key=lambda e: (e[0], -e[1]))
        begins = sorted(self.begins, key=lambda b: (b[0], -b[1]))
        places = sorted({place for place, _, _ in (*ends, *begins)})
        out: list[str] = []
        done = 0
        for place in places:
            out.append(text[done:place])
            before = len(out)
            for edits in (ends, begins):
                first = bisect.bisect_left(edits, place, key=lambda e: e[0])
                last = bisect.bisect_right(edits, place, key=lambda e: e[0])
                out += [inserted for _, _, inserted in edits[first:last]]
            if (
                text[done:place][-1:].isalpha() and out[before][:1].isalpha()
            ):  # a keyword, as in `while(x)`, `return(x)`
                out.insert(before, " ")
            done = place
        return "".join([*out, text[done:]])


@frozen
class Replacement:
    """Characters `start` to `end` (exclusive) of a text, and what replaces them; an insertion where they are none."""

    start: int
    end: int
    text: str


def replaced(text: str, replacements: Iterable[Replacement]) -> str:
    """Return the text with these replacements, which do not overlap. Insertions at one place keep their order.

    >>> replaced("a = b;", [Replacement(4, 5, "c"), Replacement(6, 6, " d();")])
    'a = c; d();'
    """
    out: list[str] = []
    done = 0
    for each in sorted(replacements, key=_place):
        out += [text[done : each.start], each.text]
        done = each.end
    return "".join([*out, text[done:]])


def original_offset(replacements: Iterable[Replacement], offset: int) -> int:
    """Return where a character of the changed text was; for one that was inserted, where it was inserted.

    >>> original_offset([Replacement(1, 1, "xyz")], 4), original_offset([Replacement(1, 1, "xyz")], 2)
    (1, 1)
    """
    moved = 0
    for each in sorted(replacements, key=_place):
        if offset < each.start + moved:
            break
        if offset < each.start + moved + len(each.text):
            return each.start
        moved += len(each.text) - (each.end - each.start)
    return offset - moved


def _place(replacement: Replacement) -> tuple[int, int]:
    return replacement.start, replacement.end

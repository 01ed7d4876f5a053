"""Insert text into a source text at many places at once."""

from __future__ import annotations

import bisect
from dataclasses import field

from ...sim.fast_dataclass import entity
from ...sim.wgsl.source import Span

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

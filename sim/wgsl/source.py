"""Source text, and positions in it.

A `Span` is a pair of character offsets into one `Source`; lines and columns are computed on demand. A `Source` made by
the preprocessor maps each of its lines to the original file and line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from ..fast_dataclass import entity, frozen

# \n, \v, \f, \r, \r\n, NEL, LS and PS (spec, "Blankspace and Line Breaks").
LINE_BREAKS = "\n\v\f\r\x85\u2028\u2029"
_LINE_BREAK = re.compile(rf"\r\n|[{LINE_BREAKS}]")


class Place(NamedTuple):
    """A position for messages: 1-based line and column, in characters."""

    file: str
    line: int
    column: int


@entity
class Source:
    """The text of one module. `name` is what messages call it; `origin[i]` is (file, line) of text line i + 1."""

    text: str
    name: str = "shader.wgsl"
    origin: list[tuple[str, int]] | None = None

    @cached_property
    def _starts(self) -> list[int]:
        """The offsets of the lines. Few modules have an error, and need them."""
        return [0, *(found.end() for found in _LINE_BREAK.finditer(self.text))]

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self.text)} characters)"

    def line_index(self, offset: int) -> int:
        """Return the 0-based line of the text that contains `offset`."""
        return bisect_right(self._starts, offset) - 1

    def line_text(self, index: int) -> str:
        """Return the text of 0-based line `index`, without its line break."""
        end = self._starts[index + 1] if index + 1 < len(self._starts) else len(self.text)
        return self.text[self._starts[index] : end].rstrip(LINE_BREAKS)

    def lines(self) -> list[str]:
        """List the lines, each with its line break; joined they are the text."""
        return [self.text[start:end] for start, end in pairwise([*self._starts, len(self.text)])]

    def line_start(self, index: int) -> int:
        """Return the offset of the first character of 0-based line `index`."""
        return self._starts[index]

    @property
    def line_count(self) -> int:
        return len(self._starts)

    def place(self, offset: int) -> Place:
        """Return the original file, line and column of a character offset."""
        index = self.line_index(offset)
        column = offset - self._starts[index] + 1
        if self.origin is not None and index < len(self.origin):
            file, line = self.origin[index]
            return Place(file, line, column)
        return Place(self.name, index + 1, column)


@frozen(slots=True)
class Span:
    """Characters `start` to `end` (exclusive) of `source`."""

    source: Source
    start: int
    end: int

    @property
    def place(self) -> Place:
        return self.source.place(self.start)

    @property
    def line(self) -> int:
        """The 1-based line of the first character, in its original file."""
        return self.place.line

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line_text(self) -> str:
        """The whole line of the first character, without its line break."""
        return self.source.line_text(self.source.line_index(self.start))

    def to(self, other: Span) -> Span:
        """Return the span from the start of this one to the end of `other`."""
        return Span(self.source, self.start, other.end)

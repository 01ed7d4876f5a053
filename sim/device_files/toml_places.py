"""Where the keys and values of a TOML text are: `tomllib` returns values without their places.

    >>> places("[a]\\nb = {c = 1}")["a", "b", "c"]
    Extent(key=(9, 10), value=(13, 14))

The text must be one that `tomllib` accepts. In an array, only the array itself has a place; where a table of an array
of tables repeats a key, the last has.
"""

from __future__ import annotations

import re
import tomllib
from typing import NamedTuple

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_GAP = re.compile(r"[ \t]*")
_STRING = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL)
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\n]*")

Range = tuple[int, int]  # offsets of the first character and behind the last


class Extent(NamedTuple):
    """The characters of a key, and of its value; of a table's header, both are the name in it."""

    key: Range
    value: Range


def places(text: str) -> dict[tuple[str, ...], Extent]:
    """Return the place of each key, by the names of its tables and its own."""
    scanner = _Scanner(text)
    scanner.file()
    return scanner.found


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: dict[tuple[str, ...], Extent] = {}

    def file(self) -> None:
        table: tuple[str, ...] = ()
        while self.skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                brackets = 2 if self.text.startswith("[[", self.at) else 1
                self.at += brackets
                start = self.skip(_GAP)
                table = self.key()
                self.found[table] = Extent((start, self.at), (start, self.at))
                self.skip(_GAP)
                self.at += brackets
            else:
                self.pair(table)

    def pair(self, table: tuple[str, ...]) -> None:
        """Read `key = value`."""
        start = self.at
        name = (*table, *self.key())
        key = (start, self.at)
        self.skip(_GAP)
        self.at += 1  # the equals sign
        begin = self.skip(_GAP)
        self.value(name)
        self.found[name] = Extent(key, (begin, self.at))

    def key(self) -> tuple[str, ...]:
        """Read a key of one part or several: `a.b`."""
        parts: list[str] = []
        while True:
            bare = self.text[self.at] not in "\"'"
            found = (_BARE_KEY if bare else _STRING).match(self.text, self.at)
            assert found
            self.at = found.end()
            parts.append(found[0] if bare else next(iter(tomllib.loads(f"{found[0]} = 0"))))
            dot = _GAP.match(self.text, self.at)
            assert dot
            if not self.text.startswith(".", dot.end()):
                return tuple(parts)
            self.at = dot.end() + 1
            self.skip(_GAP)

    def value(self, name: tuple[str, ...]) -> None:
        """Read a value; `name` is that of an inline table's keys."""
        first = self.text[self.at]
        if first in "\"'":
            found = _STRING.match(self.text, self.at)
            assert found
            self.at = found.end()
        elif first in "[{":
            self.at += 1
            while self.text[self.skip(_BLANK)] not in "]}":
                if self.text[self.at] == ",":
                    self.at += 1
                elif first == "[":
                    self.value((*name, ""))
                else:
                    self.pair(name)
            self.at += 1
        else:
            found = _BARE_VALUE.match(self.text, self.at)
            assert found
            self.at += len(found[0].rstrip())

    def skip(self, pattern: re.Pattern[str]) -> int:
        """Go behind what the pattern matches here, and return the offset."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return self.at

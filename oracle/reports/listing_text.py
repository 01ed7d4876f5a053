"""The source of a shader on the terminal, with counters beside each line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from ...sim.wgsl.syntax.lexer import KEYWORDS
from .source_listing import Line, against_ideal, compact
from .tables import IDLE, idle_letters
from .terminal import say

GUTTER = "{:>5} {:>6} {:>5}{} {:>11} {:>11}  {}"
IDLE_GUTTER = " {:>11}"  # of a listing in which lanes are idle
HEADINGS = ("wavefronts", "sectors", "source  (subgroups that issued; charged/ideal)")

# The colours of source; where two match, the later row wins.
COLOURS = (
    ("bright_blue", re.compile(rf"\b({'|'.join(sorted(KEYWORDS))})\b")),
    ("blue", re.compile(r"\b(0[xX][0-9a-fA-F.]+([pP][+-]?\d+)?|\d+\.?\d*([eE][+-]?\d+)?)[iufh]?\b")),
    ("bright_black", re.compile(r"//.*")),
)


def show_listing(out: Console, lines: Sequence[Line]) -> None:
    """Print source behind a gutter: subgroups that issued, active lanes, why others idle, and memory charges with their
    ideal."""
    idle = any(line.lanes not in (None, 1.0) for line in lines)
    column = IDLE_GUTTER.format("idle") if idle else ""
    rows = [Text(GUTTER.format("line", "issued", "lanes", column, *HEADINGS), "dim")]
    rows += [Text(_gutter(line, idle)).append_text(_highlighted(line.text)) for line in lines]
    if idle:
        causes = ", ".join(f"{letter} {words}" for _, words, letter in IDLE)
        rows.append(Text(f"  idle, in percent: {causes}", "dim"))
    width = out.width
    for row in rows:
        row.truncate(width, overflow="ellipsis")
        row.rstrip()
    say(out, Text("\n").join([Text(), *rows, Text()]))  # all at once: line by line takes five times as long


def _gutter(line: Line, idle: bool) -> str:
    """The gutter of a line of source. `idle`: with the column of idle lanes."""
    c = line.counters
    if c is None:
        return GUTTER.format(line.number, "", "", IDLE_GUTTER.format("") if idle else "", "", "", "")
    causes = IDLE_GUTTER.format(idle_letters(c, line.issued)) if idle else ""
    wavefronts = against_ideal(c["shared_wavefronts"], c["shared_ideal_wavefronts"])
    sectors = against_ideal(c["global_sectors"], c["global_ideal_sectors"])
    return GUTTER.format(line.number, compact(c["executions"]), f"{line.lanes:.0%}", causes, wavefronts, sectors, "")


def _highlighted(text: str) -> Text:
    code = Text(text.expandtabs(4))
    for style, pattern in COLOURS:
        code.highlight_regex(pattern, style)
    return code

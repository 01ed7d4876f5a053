"""Where the cost of a run is, on the terminal: each place in full, or in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .prediction import line_words
from .terminal import say

if TYPE_CHECKING:
    from ...sim.run.line_times import LineTime
    from .cost_places import CostPlace

TITLE = "where the cost is"
TIME_TITLE = "where the predicted time goes"
NOTHING = "no place has much excess"


def show_time(out: Console, lines: Sequence[LineTime]) -> None:
    """Print the lines that take most of the predicted time, each with its share, what limits it, and its source."""
    if not lines:
        return
    say(out, f"  {TIME_TITLE}", "bold")
    for line in lines:
        say(out, f"  {line_words(line)}")
        if line.code:
            say(out, Text.assemble(("     | ", "cyan"), line.code))
    out.print()


def show_cost(out: Console, places: Sequence[CostPlace]) -> None:
    """Print each place with its line of source, why it costs, and what helps."""
    out.print()
    if not places:
        say(out, f"  {TITLE}: {NOTHING}", "dim")
        return
    say(out, f"  {TITLE}", "bold")
    for number, place in enumerate(places, 1):
        part = place.part + (f", {place.weight:.0%} of the predicted time" if place.saved_us is not None else "")
        say(out, Text.assemble(f"  {number}  ", (place.at, "bold cyan"), f"  {place.what}, ", (part, "bold")))
        say(out, Text.assemble(("     | ", "cyan"), place.code))
        say(out, f"     {place.reason}")
        say(out, Text.assemble(("     help: ", "green"), place.help))
    out.print()


def show_cost_rows(out: Console, places: Sequence[CostPlace]) -> None:
    """Print a line for each place, and what helps at the first."""
    for number, place in enumerate(places):
        words = Text.assemble(
            ("  cost     ", "cyan"), (place.at, "bold cyan"), f"  {place.what}, {place.part}: {place.why}"
        )
        say(out, words)
        if number == 0:
            say(out, Text.assemble(("           help: ", "green"), place.help))

"""Where the cost of a run is, on the terminal: each place in full, or in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .terminal import say

if TYPE_CHECKING:
    from .cost_places import CostPlace

TITLE = "where the cost is"
NOTHING = "no place has much excess"


def show_cost(out: Console, places: Sequence[CostPlace]) -> None:
    """Print each place with its line of source, why it costs, and what helps."""
    out.print()
    if not places:
        say(out, f"  {TITLE}: {NOTHING}", "dim")
        return
    say(out, f"  {TITLE}", "bold")
    for number, place in enumerate(places, 1):
        say(out, Text.assemble(f"  {number}  ", (place.at, "bold cyan"), f"  {place.what}, ", (place.part, "bold")))
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

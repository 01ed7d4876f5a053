"""Checks of outputs on the terminal, with the elements that differ most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from ..judge.coverage import CaseOutcome
from .check_words import comparison_words
from .run_text import finding_summary
from .terminal import say, verdict

if TYPE_CHECKING:
    from ..comparison.compare import Difference
    from ..judge.coverage import Coverage
    from ..judge.output_checks import OutputCheck

_ANY_WIDTH = 1000


def show_output_check(out: Console, check: OutputCheck, most: int | None = None) -> None:
    """Print one line, and the worst elements below it if some differ; `most` of them."""
    words = f"{check.output} against {check.against}: {comparison_words(check.comparison)}"
    if check.allowed:
        words = f"{words}; within bounds: {check.allowed}"
    say(out, _mark(check).append(words))
    if check.comparison.worst:
        show_differences(out, check.comparison.worst[:most])
    if check.advice:
        say(out, f"           {check.advice}")
    if check.likely is not None:
        say(out, f"           {check.likely}")
    for finding in check.doubts:
        say(out, f"  {finding_summary(finding)}")


def _mark(check: OutputCheck) -> Text:
    """The verdict; a dash for a check that could not fail where another could."""
    if check.outcome is CaseOutcome.UNCHECKED:
        return Text.assemble(("  UNCHECKED ", check.outcome.style))
    if check.ok and check.comparison.vacuous:
        return Text.assemble(("  -        ", "yellow"))
    return verdict(check.ok)


def show_outcome(out: Console, outcome: CaseOutcome, coverage: Coverage) -> None:
    """Print the outcome of a case, and what it was compared with."""
    words = f"compared with {', '.join(coverage.truths)}" if coverage.truths else "nothing compared"
    say(out, Text.assemble((f"  {outcome}", outcome.style)).append(f": {words}"))


def show_unchecked(out: Console, unchecked: Iterable[str]) -> None:
    """Print what nothing could have failed."""
    for each in unchecked:
        say(out, Text.assemble(("  UNCHECKED ", CaseOutcome.UNCHECKED.style)).append(each))


def show_excused(out: Console, coverage: Coverage) -> None:
    """Print the outputs that the manifest leaves unchecked."""
    for each in coverage.outputs:
        if each.unchecked and not each.left:
            say(out, f"  note: {each}")


def show_differences(out: Console, worst: Sequence[Difference]) -> None:
    """Print a table as wide as it needs to be: an index that is cut is useless."""
    table, width = _differences(worst), out.width
    out.width = max(width, Measurement.get(out, out.options.update(width=_ANY_WIDTH), table).maximum)
    out.print(table)
    out.width = width


def _differences(worst: Sequence[Difference]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 0, 0, 2), header_style="dim")
    table.add_column(" " * 7)  # below the words of the line above
    headings = ["index", "ours", "theirs", "our bits", "their bits", "ULP" if worst[0].is_float else "apart"]
    owners, bounds = any(d.owner for d in worst), any(d.bound is not None for d in worst)
    for heading in (*headings, *(["bound", "used"] if bounds else []), *(["written by"] if owners else [])):
        table.add_column(heading, justify="left" if heading == "written by" else "right", no_wrap=True)
    for d in worst:
        ulp = "NaN" if d.ulp is None else f"{d.ulp:,}"
        index = ", ".join(map(str, d.index))
        cells = (f"[{index}]", *d.numbers, d.actual_bits, d.expected_bits, ulp)
        if bounds and d.bound is not None and d.used is not None:
            cells += (f"{d.bound:.3g}", f"{d.used:.3g}")
        table.add_row("", *(Text(cell) for cell in cells), *([Text(d.owner or "")] if owners else []))
    return table

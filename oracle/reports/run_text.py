"""What a run did, on the terminal: totals, tables, devices side by side, and findings in one line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from ...sim.run.counters import COUNTERS
from ..judge.counter_checks import with_derived
from .tables import CHARGES, FORMATS, TOTALS, Table, idle_words
from .terminal import amount, say

if TYPE_CHECKING:
    from ...sim import Finding, Run
    from ..judge.device_comparison import Charged


def _row(name: str, heading: str = "") -> tuple[str, Callable[[Charged], str]]:
    row = COUNTERS[name]
    return heading or row.title, lambda charged: amount(charged.counters[name], FORMATS.get(row.unit, ""))


# The rows of devices side by side: a heading, and the text of one device.
DEVICE_ROWS: tuple[tuple[str, Callable[[Charged], str]], ...] = (
    ("lanes of a subgroup", lambda charged: str(charged.device.subgroup_size)),
    ("adjacent scalar accesses", lambda charged: "merged" if charged.device.merge_adjacent else "as written"),
    _row("shared_wavefronts"),
    _row("shared_ideal_wavefronts", "ideal"),
    _row("global_sectors"),
    _row("global_ideal_sectors", "ideal"),
    ("bytes of these sectors", lambda charged: f"{charged.sector_bytes:,}"),
    _row("global_lines"),
    _row("executions"),
    _row("simt_efficiency"),
    _row("barriers", "barriers"),
    ("resident workgroups per core", lambda charged: str(charged.occupancy.workgroups)),
    ("occupancy, registers unknown", lambda charged: amount(charged.occupancy.fraction, "%")),
    ("limited by", lambda charged: ", ".join(charged.occupancy.limited_by)),
)


def totals_table(counters: Mapping[str, float]) -> RichTable:
    """The totals of a run, a row each."""
    table = RichTable(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(justify="left", min_width=38)
    table.add_column(justify="left")
    values = with_derived(counters)
    for name, label, unit in TOTALS:
        if name in values:  # shares of lanes are counted by a probe
            table.add_row(f"  {label}", amount(values[name], unit))
    if words := idle_words(values):
        table.add_row("  idle lanes, of those issued", words)
    if values["idle_skipped"]:
        table.add_row(f"  {COUNTERS['idle_skipped'].title}", f"{values['idle_skipped']:,}")
    for actual, ideal, label in CHARGES:
        words = f"{values[actual]:,}"
        if values[actual] != values[ideal]:
            words += f", ideal {values[ideal]:,} (x{values[actual] / max(values[ideal], 1):.3g})"
        table.add_row(f"  {label}", words)
    return table


def show_table(out: Console, given: Table) -> None:
    """Print a table, and its notes below it."""
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2))
    for number, heading in enumerate((f"  {given.caption}", *given.headings[1:])):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for first, *rest in given.rows:
        table.add_row(f"  {first}", *rest)
    out.print(table)
    for note in given.notes:
        say(out, f"  {note}")
    if given.notes:
        out.print()


def show_devices(out: Console, devices: Sequence[Charged]) -> None:
    """Print a column for each device, if there are several."""
    if not devices:
        return
    table = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 2))
    table.add_column("  on each device", no_wrap=True)
    for charged in devices:
        table.add_column(charged.device.name, justify="right")
    for label, text in DEVICE_ROWS:
        table.add_row(f"  {label}", *map(text, devices))
    out.print(table)


def finding_text(finding: Finding) -> str:
    """A finding in full, with how often it occurred."""
    return finding.render() + (f"\n  {finding.count:,} times in all" if finding.count > 1 else "")


def finding_summary(finding: Finding) -> str:
    """A finding in one line."""
    place = finding.span.place if finding.span else None
    at = f" at {place.file}:{place.line}" if place else ""
    return f"{finding.code}{at}, {finding.count:,} times: {finding.message}"


def show_silenced(out: Console, run: Run) -> None:
    """Print the findings that comments in the shader allow."""
    for finding in run.silenced:
        say(out, f"  allowed by a comment: {finding_summary(finding)}")

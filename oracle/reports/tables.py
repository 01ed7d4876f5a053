"""What a run did, as totals and tables of words that the terminal and the HTML page both show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from ...sim.models.roofline import place
from ...sim.run import counters
from ...sim.run.counters import IDLE_CAUSES, SUMMARY
from ...sim.run.executed_instructions import by_class
from ...sim.run.traffic import intensities
from ...sim.utilization.utilization import DEFINITIONS
from .source_listing import compact

if TYPE_CHECKING:
    from ...sim import Run
    from ...sim.wgsl.source import Span

_MOST_LINES = 5
_MOST_CODE = 60

# How a value of a unit is written; as a plain number where the unit has no row.
FORMATS = {"bytes": "bytes", "share": "%", "FLOP/byte": "ratio"}

# The totals of a run: name, heading, format.
TOTALS = tuple((row.key, row.title, FORMATS.get(row.unit, "")) for row in SUMMARY)

# Pairs of counters: what was charged, the least that the access width needs, heading.
CHARGES = tuple((row.key, row.ideal, row.title) for row in counters.CHARGES)

# Why lanes of an issuing subgroup are idle: counter, words, and the letter beside a line.
IDLE = tuple((row.key, *row.cause) for row in IDLE_CAUSES)

# The bytes that intensities are relative to.
BYTES = {"asked": "requested", "moved": "of sectors touched", "distinct": "that must move"}


@frozen
class Table:
    """A table of text: the first column is words, the others are numbers. Rows are as long as `headings`."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def idle_words(totals: Mapping[str, float]) -> str:
    """The share of issued lanes that are idle, and why: `31.0%: 25.0% behind a guard, 6.0% past the workgroup`; empty
    if none are."""
    idle = sum(totals[name] for name, _, _ in IDLE)
    if not idle:
        return ""
    issued = idle + totals["active_lanes"]
    causes = ", ".join(f"{totals[name] / issued:.1%} {words}" for name, words, _ in IDLE if totals[name])
    return f"{idle / issued:.1%}: {causes}"


def idle_letters(totals: Mapping[str, float], issued: float) -> str:
    """The causes of idle lanes as letters beside a line, in percent of the lanes that were issued: `25g 6o`."""
    found = [(100 * totals[name] / issued, letter) for name, _, letter in IDLE if totals[name]]
    return " ".join(f"{share:.0f}{letter}" if share > 0.5 else f"<1{letter}" for share, letter in found)


def useful(run: Run) -> dict[str, float]:
    """The share of a run's FLOPs whose results can reach a store (see `sim.analysis.dead_flops`); empty if it has no
    FLOPs."""
    flops = run.counters["flops"]
    return {"useful_flops": 1 - run.padding_flops / flops} if flops else {}


def tables(run: Run) -> list[Table]:
    """The tables of a run that have rows."""
    found = (utilization_table(run), line_table(run), instruction_table(run), atomic_table(run), traffic_table(run))
    return [table for table in found if table.rows]


def utilization_table(run: Run) -> Table:
    """A row for each utilization; as notes, why the least of them is not higher, and what was measured."""
    found = run.utilization
    shares = {row.label: getattr(found, row.key) for row in DEFINITIONS}
    rows = tuple((label, f"{share:.1%}") for label, share in shares.items() if share is not None)
    caption = "utilization"
    notes: list[str] = []
    if found.headline is not None:
        caption += f": {found.headline.value:.1%}, {found.headline.label}"
        notes.append(found.headline.cause + ("" if found.headline.span is None else f" ({at(found.headline.span)})"))
    if found.missing:
        notes.append(f"useful lanes are not measured: {found.missing}")
    elif not found.exact:
        notes.append(f"from {found.measured:,} of {found.workgroups:,} workgroups, a sample")
    return Table(caption, ("", "share"), rows, tuple(notes))


def line_table(run: Run) -> Table:
    """A row for each of the lines that lose the most issue slots: its share of all slots, and how much of it is active
    and useful."""
    lines = run.utilization.lines
    all_slots = sum(row.issued for row in lines)
    worst = sorted(lines, key=lambda row: row.useful - row.issued)[:_MOST_LINES]
    rows = [
        (f"{at(row.span)} {row.span.line_text.strip()[:_MOST_CODE]}", f"{row.issued / all_slots:.1%}",
         f"{row.active / row.issued:.1%}", f"{row.useful / row.issued:.1%}")
        for row in worst
        if row.useful < row.issued
    ]  # fmt: skip
    return Table("lines that lose issue slots", ("line", "of all slots", "active", "useful"), tuple(rows))


def at(span: Span) -> str:
    return f"{Path(span.place.file).name}:{span.line}"


def instruction_table(run: Run) -> Table:
    """A row for each class of executed instructions."""
    counts = by_class(run.instructions)
    all_lanes = sum(lanes for _, lanes in counts.values())
    rows = [
        (kind.replace("_", " "), f"{issued:,}", f"{lanes:,}", f"{lanes / all_lanes:.1%}")
        for kind, (issued, lanes) in counts.items()
    ]
    return Table("instructions, as written", ("class", "by subgroups", "by lanes", "share"), tuple(rows))


def atomic_table(run: Run) -> Table:
    """A row for each place where atomic lanes are serialized: the mean number on the busiest word of a request."""
    rows = [
        (f"{Path(site.span.place.file).name}:{site.line} {site.name}", f"{site.executions:,}", f"{site.atomics:,}",
         f"{site.turns_per_request:.3g}-way")
        for site in run.sites
        if site.atomic_turns
    ]  # fmt: skip
    return Table("atomic operations", ("place", "by subgroups", "by lanes", "on one word"), tuple(rows))


def traffic_table(run: Run) -> Table:
    """A row for each storage buffer that the kernel accesses; as notes, where that puts the kernel under a roofline."""
    rows = [
        (each.buffer, compact(each.asked), compact(each.moved), compact(each.distinct), f"{each.reuse:.3g}",
         f"{each.again:.3g}")
        for each in run.traffic
        if each.asked
    ]  # fmt: skip
    headings = ("buffer", "requested", "of sectors", "touched", "reuse: requested / touched", "sectors / touched")
    return Table("bytes of storage", headings, tuple(rows), tuple(roofline_words(run)) if rows else ())


def roofline_words(run: Run) -> list[str]:
    """FLOP per byte of storage, and where that puts the kernel under the roofline of a device that has peaks; empty for
    a kernel without FLOPs. The roof is that of the bytes that must move: caches may serve all others."""
    flops, device = run.counters["flops"], run.device
    found = intensities(flops, run.traffic) if flops else {}
    words = [f"{intensity:.3g} FLOP per byte {BYTES[name]}" for name, intensity in found.items()]
    if "distinct" in found and device.peak_flops and device.peak_bandwidth:
        at = place(flops, flops / found["distinct"], device.peak_flops, device.peak_bandwidth)
        roof = f"bound by {at.bound}, at most {compact(at.attainable)} FLOP/s"
        words[-1] += f": under the roofline of {device.name} {roof}"
    return words

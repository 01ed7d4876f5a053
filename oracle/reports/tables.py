"""What a run did, as tables of words that the text report and the HTML page both show."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...sim.fast_dataclass import frozen
from ...sim.models.roofline import place
from ...sim.run.counters import IDLE_CAUSES
from ...sim.run.executed_instructions import by_class
from ...sim.run.traffic import intensities
from .source_listing import compact

# Why lanes of subgroups that issue are idle: counter, in words, and as a letter beside a line.
IDLE = tuple((row.key, *row.cause) for row in IDLE_CAUSES)

# What intensities count bytes of.
BYTES = {"asked": "asked for", "moved": "of sectors touched", "distinct": "that have to move"}


@frozen
class Table:
    """`headings` and `rows` are equally long; the first column is words, the others are numbers."""

    caption: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def idle_words(counters: Mapping[str, float]) -> str:
    """The share of issued lanes that are idle, and why: `31.0%: 25.0% behind a guard, 6.0% past the workgroup`; nothing
    where none are."""
    idle = sum(counters[name] for name, _, _ in IDLE)
    if not idle:
        return ""
    issued = idle + counters["active_lanes"]
    causes = ", ".join(f"{counters[name] / issued:.1%} {words}" for name, words, _ in IDLE if counters[name])
    return f"{idle / issued:.1%}: {causes}"


def idle_letters(counters: Mapping[str, float], issued: float) -> str:
    """The same beside a line, in letters: `25g 6o`, in percent of the lanes that were issued."""
    found = [(100 * counters[name] / issued, letter) for name, _, letter in IDLE if counters[name]]
    return " ".join(f"{share:.0f}{letter}" if share >= 0.5 else f"<1{letter}" for share, letter in found)


def useful(run: Any) -> dict[str, float]:
    """The share of a run's FLOPs that may be for something (see `sim.analysis.dead_flops`), where there are any."""
    flops = run.counters["flops"]
    return {"useful_flops": 1 - run.padding_flops / flops} if flops else {}


def tables(run: Any) -> list[Table]:
    """The tables of a run; those with nothing in them are left out."""
    return [table for table in (instruction_table(run), atomic_table(run), traffic_table(run)) if table.rows]


def instruction_table(run: Any) -> Table:
    """A row for each class of instructions that were executed."""
    counts = by_class(run.instructions)
    all_lanes = sum(lanes for _, lanes in counts.values())
    rows = [
        (kind.replace("_", " "), f"{issued:,}", f"{lanes:,}", f"{lanes / all_lanes:.1%}")
        for kind, (issued, lanes) in counts.items()
    ]
    return Table("instructions, as written", ("class", "by subgroups", "by lanes", "share"), tuple(rows))


def atomic_table(run: Any) -> Table:
    """A row for each place whose lanes take turns: how many, on the busiest word of a request, on average."""
    rows = [
        (f"{Path(site.span.place.file).name}:{site.line} {site.name}", f"{site.executions:,}", f"{site.atomics:,}",
         f"{site.turns_per_request:.3g}-way")
        for site in run.sites
        if site.atomic_turns
    ]  # fmt: skip
    return Table("atomic operations", ("place", "by subgroups", "by lanes", "on one word"), tuple(rows))


def traffic_table(run: Any) -> Table:
    """A row for each storage buffer that is touched; below it, where that puts the kernel under a roofline."""
    rows = [
        (each.buffer, compact(each.asked), compact(each.moved), compact(each.distinct), f"{each.reuse:.3g}",
         f"{each.again:.3g}")
        for each in run.traffic
        if each.asked
    ]  # fmt: skip
    headings = ("buffer", "asked for", "of sectors", "touched", "reuse: asked / touched", "sectors / touched")
    return Table("bytes of storage", headings, tuple(rows), tuple(roofline_words(run)) if rows else ())


def roofline_words(run: Any) -> list[str]:
    """Operations per byte of storage, and what bounds a kernel with so many on this device, where its peaks are
    claimed; nothing of a kernel that does no operations."""
    flops, device = run.counters["flops"], run.device
    found = []
    for name, intensity in intensities(flops, run.traffic).items() if flops else ():
        words = f"{intensity:.3g} FLOP per byte {BYTES[name]}"
        if device.peak_flops and device.peak_bandwidth:
            at = place(flops, flops / intensity, device.peak_flops, device.peak_bandwidth)
            words += (
                f": under the roofline of {device.name} bound by {at.bound}, at most {compact(at.attainable)} FLOP/s"
            )
        found.append(words)
    return found

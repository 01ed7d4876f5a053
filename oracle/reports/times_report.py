"""Times on an adapter: a line for people, an entry for programs; of `bankshot time`, and beside other figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .json_document import Entry
from .json_entries import adapter_entry, case_entry
from .terminal import duration, say

if TYPE_CHECKING:
    from ..kernel_timing import CaseTime
    from ..wgpu_client import KernelTimes, Timing
    from .kernel_rows import CaseRow

_MICROSECONDS = 1e6
_SLOW = 1.03  # a slowdown of the clocks that is worth a note


def show_time(out: Console, timed: CaseTime) -> None:
    """Print the median of a case and its quartiles, in a line."""
    show_timing(out, f"{timed.case.kernel.name}  {timed.case.shape}".rstrip(), timed.timing)


def show_timing(out: Console, title: str, timing: Timing) -> None:
    """Print the median of a time and its quartiles under a title, in a line."""
    times = timing.times
    if times is None:
        say(out, Text.assemble(("  NOT TIMED  ", "yellow"), f"{title}: {timing.not_timed}"))
    else:
        say(out, Text.assemble((f"{duration(times.median):>10}", "bold"), f"  {title}  ({spread_words(times)})"))


def spread_words(times: KernelTimes) -> str:
    """The quartiles, of how many passes, and whether the clocks were slow."""
    low, high = times.quartiles
    slow = f", clocks slowed arithmetic by {times.slowdown - 1:.0%}" if times.slowdown > _SLOW else ""
    return f"{duration(low)} to {duration(high)}, {len(times.passes)} passes{slow}"


def timing_words(timing: Timing) -> str:
    """A time in a line, with the adapter: `3 us (2 us to 4 us, 50 passes) on card`."""
    on = f" on {timing.adapter.name}" if timing.adapter else ""
    if timing.times is None:
        return f"not timed{on}: {timing.not_timed}"
    caches = ", cold caches" if timing.cold else ""
    return f"{duration(timing.times.median)} ({spread_words(timing.times)}{caches}){on}"


def show_adapter(out: Console, timed: CaseTime | Timing) -> None:
    """Print what the times were taken on, before the first of them."""
    caches = "cold caches" if timed.cold else "warm caches"
    launch = f", launch {duration(timed.times.launch)} taken off" if timed.times else ""
    say(out, f"{timed.adapter}: median and quartiles by its clock, {caches}{launch}", "dim")


def show_times(out: Console, rows: Sequence[CaseRow]) -> None:
    """Print the times of audited cases, by adapter; nothing where none were asked for."""
    times: dict[str, list[tuple[str, Timing]]] = defaultdict(list)
    for row in rows:
        for timing in row.times:
            times[str(timing.adapter)].append((f"{row.kernel}  {row.shape}".rstrip(), timing))
    for group in times.values():
        first = next((timing for _, timing in group if timing.times), group[0][1])
        if first.adapter is not None:
            show_adapter(out, first)
        for title, timing in group:
            show_timing(out, title, timing)
    if times:
        out.print()


def time_entry(timed: CaseTime) -> Entry:
    return {**case_entry(timed.case), "ok": timed.ok, **timing_entry(timed.timing)}


def timing_entry(timing: Timing) -> Entry:
    times = timing.times
    return {
        "gpu": adapter_entry(timing.adapter),
        "caches": "cold" if timing.cold else "warm",
        "not_timed": timing.not_timed,
        "median_us": None if times is None else times.median * _MICROSECONDS,
        "quartiles_us": None if times is None else [each * _MICROSECONDS for each in times.quartiles],
        "least_us": None if times is None else times.least * _MICROSECONDS,
        "launch_us": None if times is None else times.launch * _MICROSECONDS,
        "clock_slowdown": None if times is None else times.slowdown,
        "passes_us": None if times is None else [each * _MICROSECONDS for each in times.passes],
    }

"""The result of `bankshot time`: a line for people, an entry for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .json_document import Entry
from .json_entries import adapter_entry, case_entry
from .terminal import duration, say

if TYPE_CHECKING:
    from ..kernel_timing import CaseTime

_MICROSECONDS = 1e6


def show_time(out: Console, timed: CaseTime) -> None:
    """Print the median of a case and its quartiles, in a line."""
    title = f"{timed.case.kernel.name}  {timed.case.shape}".rstrip()
    times = timed.times
    if times is None:
        say(out, Text.assemble(("  NOT TIMED  ", "yellow"), f"{title}: {timed.not_timed}"))
        return
    low, high = times.quartiles
    spread = f"{duration(low)} to {duration(high)}, {len(times.passes)} passes"
    say(out, Text.assemble((f"{duration(times.median):>10}", "bold"), f"  {title}  ({spread})"))


def show_adapter(out: Console, timed: CaseTime) -> None:
    """Print what the times were taken on, before the first of them."""
    caches = "cold caches" if timed.cold else "warm caches"
    launch = f", launch {duration(timed.times.launch)} taken off" if timed.times else ""
    say(out, f"{timed.adapter}: median and quartiles by its clock, {caches}{launch}", "dim")


def time_entry(timed: CaseTime) -> Entry:
    times = timed.times
    return {
        **case_entry(timed.case),
        "ok": timed.ok,
        "gpu": adapter_entry(timed.adapter),
        "caches": "cold" if timed.cold else "warm",
        "not_timed": timed.not_timed,
        "median_us": None if times is None else times.median * _MICROSECONDS,
        "quartiles_us": None if times is None else [each * _MICROSECONDS for each in times.quartiles],
        "least_us": None if times is None else times.least * _MICROSECONDS,
        "launch_us": None if times is None else times.launch * _MICROSECONDS,
        "passes_us": None if times is None else [each * _MICROSECONDS for each in times.passes],
    }

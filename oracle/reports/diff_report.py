"""The result of `bankshot diff`: text for people, an entry for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from .check_text import show_excused, show_outcome, show_output_check, show_unchecked
from .json_document import Entry
from .json_entries import adapter_entry, case_entry, output_coverage_entry, output_entry
from .terminal import say, show_heading, show_seconds, verdict

if TYPE_CHECKING:
    from ..judge.counter_diff import CounterDiff, CounterDifference
    from ..judge.diff import Diff

MOST_DIFFERENCES = 20  # of counters that are shown


def show_diff(out: Console, diff: Diff) -> None:
    """Print how each output compares, and the counters."""
    show_heading(out, diff.case, f"simulated as {diff.device}")
    say(out, f"  GPU: {diff.adapter}")
    for check in diff.outputs:
        show_output_check(out, check)
    show_outcome(out, diff.outcome, diff.coverage)
    show_unchecked(out, () if diff.not_run else diff.unchecked)
    show_excused(out, diff.coverage)
    for note in diff.notes:
        say(out, f"  note: {note}")
    if diff.counters is not None:
        _counters(out, diff.counters)
    for what, reason in (("run", diff.not_run), ("counted", diff.not_counted)):
        if reason:
            say(out, Text.assemble((f"  NOT {what.upper()}  ", "yellow"), reason))
    if diff.seconds:
        show_seconds(out, diff.seconds)


def _counters(out: Console, diff: CounterDiff) -> None:
    ran = "the whole grid" if not diff.cut else f"cut to a grid of {' x '.join(map(str, diff.grid))}"
    counted = f"{diff.compared:,} counters of {diff.rows:,} recorded events, {ran}"
    words = "all equal" if not diff.differences else f"{len(diff.differences):,} differ"
    say(out, verdict(not diff.differences).append(f"counters as {diff.device}: {counted}: {words}"))
    if diff.zeroed:
        say(out, "           wgpu does not zero workgroup memory: counted where the shader does")
    if not diff.outputs_equal:
        changed = f"the probes changed {', '.join(map(str, diff.changed))} by more than rounding errors"
        say(out, verdict(False).append(f"{changed}, so these are the counters of a different run"))
    for each in diff.differences[:MOST_DIFFERENCES]:
        say(out, f"           {_where(each)}: {each.counter} {each.simulated:,} simulated, {each.counted:,} counted")
    say(out, f"  not compared: {'; '.join(f'{name} ({why})' for name, why in diff.not_compared.items())}")


def _where(difference: CounterDifference) -> str:
    site = difference.site
    if site is None:
        return "the run"
    place = site.span.place
    what = f"{site.kind} of {site.variable}" if site.variable else site.name or site.kind
    return f"{place.file}:{place.line}:{place.column}: {what}"


def diff_entry(diff: Diff) -> Entry:
    return {
        **case_entry(diff.case),
        "device": diff.device,
        "ok": diff.ok,
        "outcome": diff.outcome,
        "compared": [output_coverage_entry(each) for each in diff.coverage.outputs],
        "unchecked": list(diff.unchecked),
        "gpu": adapter_entry(diff.adapter),
        "outputs": [output_entry(check) for check in diff.outputs],
        "counters": None if diff.counters is None else _counters_entry(diff.counters),
        "not_run": diff.not_run,
        "not_counted": diff.not_counted,
        "notes": list(diff.notes),
        "seconds": diff.seconds,
    }


def _counters_entry(diff: CounterDiff) -> Entry:
    return {
        "ok": diff.ok,
        "grid": list(diff.grid),
        "cut": diff.cut,
        "rows": diff.rows,
        "passes": diff.passes,
        "compared": diff.compared,
        "not_compared": dict(diff.not_compared),
        "outputs_equal": diff.outputs_equal,
        "zeroed": diff.zeroed,
        "differences": [
            {
                "file": each.site.span.place.file if each.site else None,
                "line": each.site.span.line if each.site else None,
                "kind": each.site.kind if each.site else "run",
                "name": (each.site.variable or each.site.name) if each.site else None,
                "counter": each.counter,
                "simulated": each.simulated,
                "counted": each.counted,
            }
            for each in diff.differences
        ],
    }

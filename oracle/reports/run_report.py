"""The result of `bankshot run`: text for people, an entry for programs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from rich.console import Console

from ..judge.schedule_options import agreement_entry
from ..manifests.rendering_stages import stage_notes
from .cost_places import cost_places
from .cost_text import show_cost, show_time
from .json_document import Entry
from .json_entries import (
    case_entry,
    coverage_entry,
    device_entry,
    finding_entry,
    instructions_entry,
    site_entry,
    utilization_entry,
)
from .prediction import longest_lines, prediction_entry, prediction_words
from .run_text import finding_text, show_devices, show_silenced, totals_table
from .terminal import say, show_heading

if TYPE_CHECKING:
    from ...sim import Trace
    from ..judge.run_result import RunResult


def show_run(out: Console, result: RunResult) -> None:
    """Print the outputs in short, the trace, totals and findings."""
    order = "" if result.schedule == "lockstep" else f", outputs under {result.schedule}"
    show_heading(out, result.case, f"simulated as {result.device}{order}")
    for name, s in result.changed.items():
        nan = f", {s['nan']:,} NaN" if s["nan"] else ""
        first = ", ".join(f"{value:.7g}" for value in s["first"])
        extremes = "" if s["min"] is None else f", {s['min']:.7g} to {s['max']:.7g}"
        say(out, f"  {name}: {s['dtype']}{s['shape']}{extremes}{nan}; {first}, …")
    out.print()
    if result.trace is not None:
        _trace(out, result, result.trace)
    show_cost(out, cost_places(result.run))
    show_time(out, longest_lines(result.run))
    out.print(totals_table(result.run.counters))
    for words in prediction_words(result.run):
        say(out, f"  {words}")
    say(out, f"  {result.run.coverage}", "dim")
    if result.run.agreement is not None:
        say(out, f"  {result.run.agreement}")
    show_devices(out, result.devices)
    for finding in result.run.findings:
        say(out, finding_text(finding))
    show_silenced(out, result.run)
    for note in stage_notes(result.run.pipeline.module):
        say(out, f"  note: {note}")
    out.print()


def _trace(out: Console, result: RunResult, trace: Trace) -> None:
    for row in result.run.trace:
        say(out, str(row))
    if result.run.trace_missed:
        say(out, f"  {result.run.trace_missed:,} more values were not recorded; trace fewer lanes", "yellow")
    if not result.run.trace:
        say(out, f"  the traced lanes give {trace.variable} no value", "dim")
    out.print()


def run_entry(result: RunResult) -> Entry:
    allow = result.case.kernel.allow
    return {
        **case_entry(result.case),
        "device": result.device,
        "ok": result.ok,
        "outcome": result.outcome,
        "compared": [],
        "outputs": result.changed,
        "coverage": coverage_entry(result.run.coverage),
        "schedule": result.schedule,
        "schedules": agreement_entry(result.run),
        "counters": dict(result.run.counters),
        "cost": [place.entry() for place in cost_places(result.run)],
        "sites": [site_entry(site) for site in result.run.sites],
        "instructions": instructions_entry(result.run),
        "utilization": utilization_entry(result.run),
        **prediction_entry(result.run),
        "findings": [finding_entry(f, allowed=f.code in allow) for f in result.run.findings],
        "silenced": [finding_entry(f, allowed=True) for f in result.run.silenced],
        "devices": [device_entry(charged) for charged in result.devices],
        "notes": list(stage_notes(result.run.pipeline.module)),
        **({} if result.trace is None else {"trace": _trace_entry(result, result.trace)}),
    }


def _trace_entry(result: RunResult, trace: Trace) -> Entry:
    rows = [
        {"file": row.span.place.file, "line": row.line, "lane": row.lane, "name": row.name, "old": row.old,
         "new": row.new, "function": row.function}
        for row in result.run.trace
    ]  # fmt: skip
    return {**dataclasses.asdict(trace), "rows": rows, "missed": result.run.trace_missed}

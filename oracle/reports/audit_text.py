"""An audited case on the terminal: what is wrong, where the cost is, what passed, totals, and the source with counters.

A case that is not clean also has a short text, which fits a screen: what is wrong, and the costliest places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..judge.coverage import CaseOutcome
from ..judge.options import SEVERITIES
from .check_text import show_differences, show_excused, show_outcome, show_output_check, show_unchecked
from .check_words import counter_words
from .cost_places import cost_places
from .cost_text import show_cost, show_cost_rows, show_time
from .listing_text import show_listing
from .prediction import longest_lines, prediction_words, time_check_words
from .run_text import finding_summary, finding_text, show_devices, show_silenced, show_table, totals_table
from .source_listing import listings
from .tables import tables, useful
from .terminal import say, show_heading, show_seconds, verdict
from .times_report import timing_words

if TYPE_CHECKING:
    from ..goldens.golden_store import Verdict
    from ..judge.counter_checks import CounterCheck
    from ..judge.time_check import TimeCheck
    from ..judge.verdict import Audit, FindingCheck
    from .protocol import ReportOptions

SHORT = 3  # elements, places and the like in a short text


def audit_text(audit: Audit, options: ReportOptions, listing: str) -> str:
    """What `show_audit` prints, for the stdout that the options describe."""
    return _text(options, partial(show_audit, audit=audit, listing=listing))


def failure_text(audit: Audit, options: ReportOptions) -> str:
    """What `show_failure` prints, for the stdout that the options describe."""
    return _text(options, partial(show_failure, audit=audit))


def _text(options: ReportOptions, show: Callable[[Console], None]) -> str:
    text = StringIO()
    show(Console(file=text, width=options.width, force_terminal=options.terminal, highlight=False, emoji=False))
    return text.getvalue()


def show_audit(out: Console, audit: Audit, listing: str) -> None:
    """Print one case. `listing`: full, counted (only lines that were charged) or none."""
    show_heading(out, audit.case, f"charged as {audit.device}")
    _problems(out, audit)
    show_cost(out, cost_places(audit.run))
    show_time(out, longest_lines(audit.run))
    _passed(out, audit)
    _notes(out, audit)
    out.print()
    out.print(totals_table({**audit.run.counters, **useful(audit.run)}))
    for timing in audit.times:
        say(out, f"  measured time  {timing_words(timing)}")
    for words in prediction_words(audit.run):
        say(out, f"  {words}")
    say(out, f"  {audit.run.coverage}", "dim")
    for table in tables(audit.run):
        show_table(out, table)
    show_devices(out, audit.devices)
    if listing != "none":
        _sources(out, audit, listing)
    show_seconds(out, audit.seconds)


def show_failure(out: Console, audit: Audit, cost: bool = True) -> None:
    """Print what is wrong with a case, wrong outputs first, and where its cost is, in short."""
    show_heading(out, audit.case, f"charged as {audit.device}")
    _problems(out, audit, SHORT)
    if cost:
        show_cost_rows(out, cost_places(audit.run, SHORT))
    out.print()


# ---- what is wrong -----------------------------------------------------------------------------------


def _problems(out: Console, audit: Audit, most: int | None = None) -> None:
    """Print the outcome and what is wrong: outputs, findings, limits, counters, the golden, what is unchecked. `most`:
    how many of the worst elements and of the changes of a golden."""
    show_outcome(out, audit.outcome, audit.coverage)
    for check in audit.outputs:
        if not check.ok:
            show_output_check(out, check, most)
    found = [item.finding for item in _by_severity(audit.findings) if not item.allowed]
    for number, finding in enumerate(found):
        whole = most is None or number == 0
        say(out, finding_text(finding) if whole else f"  {finding.severity:8} {finding_summary(finding)}")
    for check in audit.limits:
        if not check.ok:
            say(out, f"  EXCEEDS  what {audit.device} allows, {check.exceeded}", "bold red")
    for check in audit.counters:
        if not check.ok:
            _show_counter(out, check)
    if audit.predicted is not None and not audit.predicted.ok:
        _show_time(out, audit.predicted)
    if audit.golden is not None and not audit.golden.ok:
        show_golden(out, audit.golden, most)
    show_unchecked(out, audit.unchecked)


def _by_severity(findings: Iterable[FindingCheck]) -> list[FindingCheck]:
    return sorted(findings, key=lambda item: SEVERITIES.index(item.finding.severity))


def _show_counter(out: Console, check: CounterCheck) -> None:
    say(out, verdict(check.ok).append(f"{check.counter}  {counter_words(check)}"))


def _show_time(out: Console, check: TimeCheck) -> None:
    say(out, verdict(check.ok).append(f"predicted time  {time_check_words(check)}"))


def show_golden(out: Console, golden: Verdict, most: int | None = None) -> None:
    """Print one line; what changed, and what to do about it, below it."""
    unchecked = Text.assemble(("  UNCHECKED ", CaseOutcome.UNCHECKED.style))
    say(out, (unchecked if golden.unchecked else verdict(golden.ok)).append(golden.headline))
    said = golden.sentences if most is None else golden.sentences[: 2 * most]
    more = len(golden.sentences) - len(said)
    for words in (*said, f"{more} more" if more else "", golden.advice):
        if words:
            say(out, f"           {words}")
    for change in golden.outputs:
        if change.comparison is not None:
            show_differences(out, change.comparison.worst[:most])


# ---- what is not -------------------------------------------------------------------------------------


def _passed(out: Console, audit: Audit) -> None:
    """Print the checks that passed, and the findings that are accepted."""
    for check in audit.outputs:
        if check.ok:
            show_output_check(out, check)
    for check in audit.counters:
        if check.ok:
            _show_counter(out, check)
    if audit.predicted is not None and audit.predicted.ok:
        _show_time(out, audit.predicted)
    if audit.golden is not None and audit.golden.ok:
        show_golden(out, audit.golden)
    for item in audit.findings:
        if item.allowed:
            say(out, f"  accepted by the manifest: {finding_summary(item.finding)}")
    show_silenced(out, audit.run)
    if not audit.findings:
        say(out, "  no findings")


def _notes(out: Console, audit: Audit) -> None:
    for check in audit.limits:
        if check.ok:
            say(out, f"  note: beyond WebGPU's defaults, {check.exceeded}")
    show_excused(out, audit.coverage)
    for note in audit.notes:
        say(out, f"  note: {note}")
    for adapter in audit.adapters:
        say(out, f"  GPU: {adapter}")


def _sources(out: Console, audit: Audit, listing: str) -> None:
    source = audit.case.kernel.source
    for file, lines in listings(audit.run.sites, source, audit.subgroup_size).items():
        if file != source:
            say(out, f"  {file}", "dim")
        show_listing(out, [line for line in lines if listing == "full" or line.counters])

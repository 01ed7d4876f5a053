"""An audited case on the terminal: verdicts, totals, tables, the source with counters, and findings."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from ..judge.coverage import CaseOutcome
from .check_text import show_coverage, show_differences, show_output_check
from .check_words import counter_words
from .listing_text import show_listing
from .run_text import finding_summary, finding_text, show_devices, show_silenced, show_table, totals_table
from .source_listing import listings
from .tables import tables, useful
from .terminal import say, show_heading, show_seconds, verdict

if TYPE_CHECKING:
    from ..goldens.golden_store import Verdict
    from ..judge.verdict import Audit
    from .protocol import ReportOptions


def audit_text(audit: Audit, options: ReportOptions, listing: str) -> str:
    """What `show_audit` prints, for the stdout that the options describe."""
    text = StringIO()
    out = Console(file=text, width=options.width, force_terminal=options.terminal, highlight=False, emoji=False)
    show_audit(out, audit, listing)
    return text.getvalue()


def show_audit(out: Console, audit: Audit, listing: str) -> None:
    """Print one case. `listing`: full, counted (only lines that were charged) or none."""
    show_heading(out, audit.case, f"charged as {audit.device}")
    _checks(out, audit)
    show_coverage(out, audit.outcome, audit.coverage, audit.unchecked)
    for note in audit.notes:
        say(out, f"  note: {note}")
    for adapter in audit.adapters:
        say(out, f"  GPU: {adapter}")
    out.print()
    out.print(totals_table({**audit.run.counters, **useful(audit.run)}))
    say(out, f"  {audit.run.coverage}", "dim")
    for table in tables(audit.run):
        show_table(out, table)
    show_devices(out, audit.devices)
    if listing != "none":
        _sources(out, audit, listing)
    if not audit.findings:
        say(out, "  no findings")
    for item in audit.findings:
        if item.allowed:
            say(out, f"  accepted by the manifest: {finding_summary(item.finding)}")
        else:
            say(out, finding_text(item.finding))
    show_silenced(out, audit.run)
    show_seconds(out, audit.seconds)


def _sources(out: Console, audit: Audit, listing: str) -> None:
    source = audit.case.kernel.source
    for file, lines in listings(audit.run.sites, source, audit.subgroup_size).items():
        if file != source:
            say(out, f"  {file}", "dim")
        show_listing(out, [line for line in lines if listing == "full" or line.counters])


def _checks(out: Console, audit: Audit) -> None:
    for check in audit.outputs:
        show_output_check(out, check)
    for check in audit.limits:
        if check.ok:
            say(out, f"  note: beyond WebGPU's defaults, {check.exceeded}")
        else:
            say(out, f"  EXCEEDS  what {audit.device} allows, {check.exceeded}", "bold red")
    for check in audit.counters:
        say(out, verdict(check.ok).append(f"{check.counter}  {counter_words(check)}"))
    if audit.golden is not None:
        _golden(out, audit.golden)


def _golden(out: Console, golden: Verdict) -> None:
    """Print one line; what changed, and what to do about it, below it."""
    unchecked = Text.assemble(("  UNCHECKED ", CaseOutcome.UNCHECKED.style))
    say(out, (unchecked if golden.unchecked else verdict(golden.ok)).append(golden.headline))
    for words in (*golden.sentences, golden.advice):
        if words:
            say(out, f"           {words}")
    for change in golden.outputs:
        if change.comparison is not None:
            show_differences(out, change.comparison.worst)

"""The result of `bankshot fix`: a diff, and the verdict before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from ...sim.cures.patches import unified
from .json_document import Entry
from .json_entries import case_entry, finding_entry
from .run_text import finding_text
from .terminal import say, show_heading, show_unmapped

if TYPE_CHECKING:
    from ...sim.cures.search import Cure
    from ..fix import Fixed
    from ..judge.verdict import Audit


def show_fix(out: Console, result: Fixed) -> None:
    """Print the changes, what they end, and what is left."""
    show_heading(out, result.case, f"simulated as {result.before.device}")
    races = [check.finding for check in result.before.findings if check.finding.code == "race"]
    if result.after is None:
        for finding in races:
            say(out, finding_text(finding))
        say(out, "  no cure was found" if races else "  no race was found")
        out.print()
        return
    for cure in result.before.run.cures:
        say(out, f"  {cure.says_to_remove(_races(cure))}")
    show_unmapped(out, result.patch)
    out.print()
    if result.written:
        say(out, f"  changed: {', '.join(result.written)}")
    else:
        say(out, unified(result.patch).rstrip("\n"))
    out.print()
    say(out, f"  before: {_summary(result.before)}")
    say(out, f"  after:  {_summary(result.after)}")
    for check in result.after.findings:
        say(out, finding_text(check.finding))
    out.print()


def _races(cure: Cure) -> str:
    first = cure.races[0].span
    at = f"line {first.line}" if first else "the text"
    return f"the race in {at}" if len(cure.races) == 1 else f"all {len(cure.races)} races, the first in {at}"


def _summary(audit: Audit) -> str:
    """Return the outcome of an audit, with its findings and wrong outputs."""
    codes = [check.finding.code for check in audit.findings]
    found = ", ".join(f"{codes.count(code)} {code}" for code in dict.fromkeys(codes))
    wrong = [check.output for check in audit.outputs if not check.comparison.ok]
    outputs = f"; {', '.join(dict.fromkeys(wrong))} differs" if wrong else ""
    return f"{audit.outcome.value}, {found or 'no findings'}{outputs}"


def fix_entry(result: Fixed) -> Entry:
    return {
        **case_entry(result.case),
        "ok": result.ok,
        "outcome": result.outcome,
        "cures": [
            {"words": cure.words, "races": [finding_entry(race, allowed=False) for race in cure.races]}
            for cure in result.before.run.cures
        ],
        "diff": "" if result.written else unified(result.patch),
        "unmapped": list(result.patch.unmapped),
        "written": list(result.written),
        "before": _audit_entry(result.before),
        "after": None if result.after is None else _audit_entry(result.after),
    }


def _audit_entry(audit: Audit) -> Entry:
    findings = [finding_entry(check.finding, allowed=check.allowed) for check in audit.findings]
    return {"outcome": audit.outcome, "findings": findings}

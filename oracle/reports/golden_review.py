"""Goldens that changed, for a review: each in words, and what the review did."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import entity, frozen
from ..goldens.golden_store import CHANGED, MISSING
from .audit_text import show_golden
from .check_words import counted
from .remarks import entry_of
from .terminal import say

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from ..goldens.golden_store import Verdict
    from ..judge.verdict import Audit
    from .json_document import Entry

OF_ONE_RUN = ("shared_wavefronts", "global_sectors", "barriers", "flops")  # counters of a new golden that are shown
MOST = 5  # changes of one golden that are shown, twice as many sentences


class Decision(StrEnum):
    """What a review decided on a golden; on one that is not offered, `NOT_OFFERED`."""

    ACCEPTED = "accepted"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    NOT_OFFERED = "not offered"


@entity
class ReviewedGolden:
    """A golden that is missing or that its run no longer equals. `why_not`: why it cannot be accepted, if so."""

    title: str
    verdict: Verdict
    why_not: str = ""
    decision: Decision = Decision.SKIPPED

    @property
    def headline(self) -> str:
        return f"{self.title}  {self.verdict.path}"

    @property
    def offered(self) -> bool:
        return not self.why_not

    @property
    def accepted(self) -> bool:
        return self.decision is Decision.ACCEPTED

    def decide(self, decision: Decision) -> None:
        """Take a decision; write the golden if it is accepted. Raises OSError."""
        if decision is Decision.ACCEPTED and self.verdict.new is not None:
            self.verdict.new.write(self.verdict.path)
        self.decision = decision


@frozen
class UnusedGolden:
    """A golden that nothing uses, and its owner. `removed`: the review deleted it."""

    path: Path
    owner: str
    removed: bool = False


def to_review(audit: Audit) -> ReviewedGolden | None:
    """The golden of an audit, unless the run equals it or the manifest asks for none."""
    verdict = audit.golden
    if verdict is None or verdict.ok:
        return None
    title = f"{audit.case.kernel.name} {audit.case.shape}".strip()
    if verdict.state not in (CHANGED, MISSING):
        return ReviewedGolden(title, verdict, f"{verdict.headline}: {verdict.advice}", Decision.NOT_OFFERED)
    others = replace(audit, golden=None)
    if others.differs:
        worst = min(entry_of(others).remarks, key=lambda remark: remark.rank)
        why_not = f"another check fails: {worst.message.splitlines()[0]}"
        return ReviewedGolden(title, verdict, why_not, Decision.NOT_OFFERED)
    return ReviewedGolden(title, verdict)


def show_change(out: Console, golden: ReviewedGolden, number: int, total: int) -> None:
    """Print what changed: outputs with their worst elements, then counters by line."""
    say(out, f"[{number}/{total}] {golden.headline}", "bold")
    show_golden(out, replace(golden.verdict, advice=""), MOST)
    new = golden.verdict.new
    if golden.verdict.state == MISSING and new is not None:
        totals = ", ".join(f"{name} {new.counters[name]:,}" for name in OF_ONE_RUN if name in new.counters)
        say(out, f"           {totals}; outputs: {', '.join(new.outputs) or 'none'}")
    elif any(change.comparison is None and change.before and change.after for change in golden.verdict.outputs):
        say(out, '           with [expect] golden = "outputs", a golden shows which elements differ', "dim")


def closing_lines(
    found: Sequence[ReviewedGolden], compared: int, errors: int, left: Sequence[UnusedGolden] = ()
) -> list[str]:
    """What a review of `compared` goldens wrote, what it did not offer and why, and how many of each decision.
    `errors`: cases that could not be run. `left`: goldens that nothing uses."""
    lines = [f"not offered: {golden.title}: {golden.why_not}" for golden in found if not golden.offered]
    lines += [f"wrote {golden.verdict.path}" for golden in found if golden.accepted]
    lines += [f"{'removed' if each.removed else 'unused:'} {each.path}, of {each.owner}" for each in left]
    counts = {each: sum(golden.decision is each for golden in found) for each in Decision}
    decided = ", ".join(f"{count} {decision}" for decision, count in counts.items() if count)
    parts = [f"golden review: {counted(compared, 'golden')} compared"]
    parts += [decided or "none has changed"] if compared else []
    parts += [f"{counted(errors, 'case')} could not be run"] if errors else []
    if left:
        parts.append(f"{len(left)} unused, {'removed' if left[0].removed else '--prune removes them'}")
    return [*lines, "; ".join(parts)]


def review_entries(found: Iterable[ReviewedGolden], left: Iterable[UnusedGolden] = ()) -> list[Entry]:
    """The goldens for a JSON document."""
    changed: list[Entry] = [
        {
            "title": golden.title,
            "golden": str(golden.verdict.path),
            "state": golden.verdict.state,
            "changes": list(golden.verdict.sentences),
            "decision": golden.decision.value,
            "why_not": golden.why_not,
        }
        for golden in found
    ]
    unused: list[Entry] = [
        {
            "title": each.owner,
            "golden": str(each.path),
            "state": "unused",
            "decision": "removed" if each.removed else "",
        }
        for each in left
    ]
    return changed + unused

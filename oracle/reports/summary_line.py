"""The last line of a command: how many cases are clean, what was compared, and what was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from ...sim.fast_dataclass import entity
from ..goldens.golden_store import CHANGED, MISSING, OTHER_OWNER, UNCHANGED, WRITTEN
from ..judge.coverage import CaseOutcome, Compared
from .check_words import counted
from .protocol import Outcome
from .remarks import Entry
from .terminal import duration

MOST_REASONS = 4  # for comparisons that were not made


@entity
class Tally:
    """Counts results for the last line. `good`: how a result that passes is called; `bad`: one that fails."""

    good: str = "clean"
    bad: str = "failed"
    passed: int = 0
    outcomes: Counter[CaseOutcome] = field(default_factory=Counter[CaseOutcome])
    truths: Counter[str] = field(default_factory=Counter[str])
    not_compared: Counter[str] = field(default_factory=Counter[str])
    excused: int = 0

    def add(self, ok: bool, outcome: CaseOutcome, compared: Compared) -> None:
        self.passed += ok
        self.outcomes[outcome] += 1
        self.truths.update(compared.truths)
        self.not_compared.update(compared.not_compared)
        self.excused += compared.excused

    def line(self, verb: str, total: int, heavy: int = 0) -> str:
        """`audit: 337 of 337 cases clean; compared with reference (337), wgpu (325); 12 not compared with wgpu: ...`"""
        failed, unchecked, errors = (
            self.outcomes[each] for each in (CaseOutcome.FAILED, CaseOutcome.UNCHECKED, CaseOutcome.ERROR)
        )
        parts = [f"{verb}: {self.passed} of {total} cases {self.good}"]
        parts += [f"{errors} could not be run"] if errors else []
        parts += [f"{heavy} heavy left out, --sweep runs all"] if heavy else []
        parts += [f"{failed} {self.bad}"] if failed else []
        parts += [f"{unchecked} unchecked"] if unchecked and self.good == "clean" else []
        return "; ".join([*parts, *self._compared(total - errors)])

    def _compared(self, ran: int) -> list[str]:
        words = ", ".join(f"{truth} ({count})" for truth, count in self.truths.items())
        parts = [f"compared with {words}" if words else "nothing compared"] if ran else []
        reasons = self.not_compared.most_common()
        parts += [f"{count} not compared {reason.splitlines()[0]}" for reason, count in reasons[:MOST_REASONS]]
        if rest := sum(count for _, count in reasons[MOST_REASONS:]):
            parts.append(f"{rest} more comparisons not made")
        if self.excused:
            parts.append(f"{self.excused} outputs unchecked, with a reason in the manifest")
        return parts


def last_lines(outcome: Outcome, more: str = "") -> list[str]:
    """The last words of a command for people: also how long it took, and where there is more."""
    *before, last = outcome.lines or ("",)
    took = [f"took {duration(outcome.seconds)}"] if outcome.seconds is not None else []
    return [*before, "; ".join([last, *took, *filter(None, [more])])]


def golden_words(entries: Iterable[Entry]) -> str:
    """How many goldens an update wrote, and which it did not, with the reason; empty where none is compared."""
    goldens = [(entry.title, entry.golden) for entry in entries if entry.golden]
    if not goldens:
        return ""
    states = Counter(state for _, state in goldens)
    parts = [f"{counted(states[WRITTEN], 'golden')} written", f"{states[UNCHANGED]} unchanged"]
    for why, of in (("another check fails", (MISSING, CHANGED)), ("it belongs to another test", (OTHER_OWNER,))):
        if titles := [title for title, state in goldens if state in of]:
            more = f" and {len(titles) - MOST_REASONS} more" if len(titles) > MOST_REASONS else ""
            parts.append(f"not written, because {why}: {', '.join(titles[:MOST_REASONS])}{more}")
    return "; ".join(parts)


def tally_of(entries: Iterable[Entry]) -> Tally:
    """Count the cases of remarks."""
    tally = Tally()
    for entry in entries:
        compared = Compared(tuple(entry.truths), tuple(entry.not_compared))
        tally.add(entry.ok, CaseOutcome(entry.outcome), compared)
    return tally

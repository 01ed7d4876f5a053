"""Whether a finding matters: the dispatch is run again, with what it leaves open decided otherwise.

Races: other schedules. Memory that nobody wrote: filled with NaNs. Accesses out of bounds: the other policies. The
verdict is `harmful` where an output changes by a bit, `unseen` where none does. A race in which both always store the
same value is `same-value`, whatever the rest does; one that only a barrier of another kind stands in the way of is
`wrong-barrier`, for every order keeps to barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..bindings.binding import Key
from ..fast_dataclass import frozen
from ..launch.launch import Launch
from ..launch.machine_arrays import POLICIES
from ..launch.partition import Outcome
from ..launch.schedules import Schedule, schedule
from ..wgsl.diagnostics import Note
from .finding import Finding

Runner = Callable[..., tuple[Launch, Outcome]]

POISON = 0x7FC07FC0  # a NaN to f32, two NaNs to f16, and a large number to integers
_FEW = 1 << 16  # invocations that are still run one by one
_SLACK = 1000  # backward jumps of a loop that a run may take beyond four times those of the first


@frozen
class _Try:
    """One way to run again, in words and as changes to `How`."""

    words: str
    changes: dict[str, Any]


class Judge:
    """Judges the findings of one finished run. `run` runs the dispatch without probes, with changes to `How`."""

    def __init__(self, run: Runner, launch: Launch, outcome: Outcome) -> None:
        self._run = run
        self._launch = launch
        self._outcome = outcome
        self._seen: dict[str, Note | None] = {}
        self._before = launch.outputs()

    def judge(self, findings: Iterable[Finding]) -> list[Finding]:
        """The same findings, with verdicts and what changed as notes."""
        return [self._judged(finding) for finding in findings]

    def _judged(self, finding: Finding) -> Finding:
        match finding.code:
            case "race" if finding.verdict is None:
                tries, few = self._schedules(), "in any of {} orders"
            case "uninit":
                tries, few = [_Try("with NaNs for what nobody stored", {"filling": POISON})], "with NaNs there"
            case "out-of-bounds":
                tries, few = self._policies(), "whether it is kept inside or left out"
            case _:
                return finding
        found = self._first_change(finding.code, tries)
        verdict = "unseen" if found is None else "harmful"
        note = found or Note(f"no output changes {few.format(1 + len(tries))}")
        severity = _SEVERITY.get((finding.code, verdict), finding.severity)
        return replace(finding, verdict=verdict, severity=severity, notes=(*finding.notes, note))

    def _schedules(self) -> list[_Try]:
        orders = [schedule(name) for name in ("subgroup-serial", "reversed", "random(1)")]
        if self._launch.invocations > _FEW:
            orders = [replace(each, alone="subgroup") for each in orders]
        return [_Try(_words(each), {"schedule": each}) for each in orders]

    def _policies(self) -> list[_Try]:
        words = {"clamp": "kept at the last element", "zero": "left out", "wrap": "wrapped around"}
        others = [p for p in POLICIES if p != self._launch.how.policy]
        return [_Try(f"with what is out of bounds {words[p]}", {"policy": p}) for p in others]

    def _first_change(self, code: str, tries: list[_Try]) -> Note | None:
        if code not in self._seen:
            notes = (self._change(each) for each in tries)
            self._seen[code] = next((note for note in notes if note), None)
        return self._seen[code]

    def _change(self, each: _Try) -> Note | None:
        """What is different, if anything."""
        budget = min(self._launch.how.budget, 4 * self._outcome.jumps + _SLACK)
        launch, outcome = self._run(frozenset(), budget=budget, threads=1, **each.changes)
        if outcome.finished < self._outcome.finished:
            return Note(f"{each.words}, it does not come to an end")
        for _, changed in differences(self._before, launch.outputs()):
            return Note(f"{each.words}, {changed}")
        return None


_SEVERITY = {("uninit", "unseen"): "info", ("race", "unseen"): "warning"}


def _words(order: Schedule) -> str:
    return f"run {order.name}" + (", by subgroups" if order.alone == "subgroup" and order.seed else "")


def differences(before: Mapping[Key, Any], after: Mapping[Key, Any]) -> Iterator[tuple[Key, str]]:
    """The outputs of two runs that differ, and in words, which of their elements."""
    for name, data in before.items():
        if changed := _difference(str(name), data, after[name]):
            yield name, changed


def _difference(name: str, before: Any, after: Any) -> str | None:
    """In words, which elements of an output differ in their bits; None where none does."""
    ours, theirs = (np.frombuffer(x, np.uint8) if isinstance(x, bytes) else np.asarray(x) for x in (before, after))
    if ours.tobytes() == theirs.tobytes():
        return None
    ours, theirs = ours.reshape(-1), theirs.reshape(-1)
    bits = np.dtype((np.void, ours.dtype.itemsize))
    places = np.flatnonzero(ours.view(bits) != theirs.view(bits))
    first = int(places[0])
    share = f"{len(places):,} of {len(ours):,} elements of {name} differ"
    return f"{share}, the first is {name}[{first}]: {theirs[first]} instead of {ours[first]}"

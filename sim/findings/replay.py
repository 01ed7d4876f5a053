"""Verdicts: whether a finding matters, decided by running the dispatch again with what WGSL leaves open changed.

Races are run in other schedules, unwritten memory is filled with several bit patterns, and accesses out of bounds
follow the other policies. The verdict is `harmful` where any bit of an output changes, and `unseen` where none does.
Two verdicts need no rerun: a race in which both invocations store the same value is `same-value`, and one that only a
barrier for another kind of memory separates is `wrong-barrier`, because every schedule respects barriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Key, Output
from ..fast_dataclass import frozen
from ..ir.sites import SourceSite
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..launch.schedules import Schedule, schedule
from ..launch.tracing import Trace
from ..wgsl.diagnostics import Note
from .finding import Finding
from .table import KINDS

# What unwritten memory is filled with, by what it is called. No value shows every use: a NaN has even bits, and words
# that are all equal cancel in a difference.
FILLINGS = {
    "NaNs": Filling(0x7FC07FC0),  # also of f16, and large integers
    "all bits set": Filling(0xFFFFFFFF),
    "another value in each word": Filling(0x3F800001, 0x00C54321),
}
_MOST_SERIAL = 1 << 16  # invocations that a rerun may still run one by one
_SLACK = 1000  # backward jumps that a rerun may make beyond four times those of the first run


class Changes(TypedDict, total=False):
    """The members of `RunOptions` that a rerun may change."""

    policy: str
    budget: int
    schedule: Schedule
    filling: Filling
    ignored: SourceSite | None
    threads: int | None
    trace: Trace | None
    poisoned: frozenset[int]
    chosen: NDArray[np.int64] | None


class Runner(Protocol):
    """Runs the dispatch again, with these probes and changes."""

    def __call__(
        self, probes: frozenset[str], progress: Callable[[int, int], None] | None = None, /, **changes: Unpack[Changes]
    ) -> tuple[Launch, Outcome]: ...


@frozen
class _Rerun:
    """One way to run again, in words and as changes to `RunOptions`."""

    words: str
    changes: Changes


class Judge:
    """Decides the verdicts of the findings of one finished run, by `run`."""

    def __init__(self, run: Runner, launch: Launch, outcome: Outcome) -> None:
        self._run = run
        self._launch = launch
        self._outcome = outcome
        self._changes: dict[str, Note | None] = {}
        self._before = launch.outputs()

    def judge(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings with their verdicts, and notes on what changed."""
        return [self._judged(finding) for finding in findings]

    def _judged(self, finding: Finding) -> Finding:
        kind = KINDS[finding.code]
        if kind.replay is None or finding.verdict is not None:
            return finding
        reruns_of, unchanged = _REPLAYS[kind.replay]
        reruns = reruns_of(self._launch)
        change = self._first_change(kind.replay, reruns)
        verdict = "unseen" if change is None else "harmful"
        note = change or Note(f"no output changes {unchanged.format(orders=1 + len(reruns))}")
        severity = kind.severity_of(verdict) or finding.severity
        return replace(finding, verdict=verdict, severity=severity, notes=(*finding.notes, note))

    def _first_change(self, replay: str, reruns: list[_Rerun]) -> Note | None:
        if replay not in self._changes:
            notes = (self._change(rerun) for rerun in reruns)
            self._changes[replay] = next((note for note in notes if note), None)
        return self._changes[replay]

    def _change(self, rerun: _Rerun) -> Note | None:
        """Say what a rerun changes, if anything."""
        changes: Changes = {"budget": rerun_budget(self._launch, self._outcome), "threads": 1, **rerun.changes}
        launch, outcome = self._run(frozenset(), **changes)
        if outcome.finished < self._outcome.finished:
            return Note(f"{rerun.words}, {NO_END}")
        for _, changed in differences(self._before, launch.outputs()):
            return Note(f"{rerun.words}, {changed}")
        return None


def rerun_budget(launch: Launch, outcome: Outcome) -> int:
    """Return how many backward jumps a rerun of a finished run may make."""
    return min(launch.options.budget, 4 * outcome.jumps + _SLACK)


NO_END = "it does not terminate"


def _schedules(launch: Launch) -> list[_Rerun]:
    orders = [schedule(name) for name in ("mirrored", "subgroup-serial", "reversed", "random(1)")]
    if launch.invocations > _MOST_SERIAL:
        serial = [each for each in orders if each.granularity == "invocation"]
        orders = [replace(each, granularity="subgroup") if each in serial else each for each in orders]
    return [_Rerun(_words(order), {"schedule": order}) for order in orders]


def _words(order: Schedule) -> str:
    return f"run {order.name}" + (", by subgroups" if order.granularity == "subgroup" and order.seed else "")


def _poison(launch: Launch) -> list[_Rerun]:
    return [_Rerun(f"with {words} in memory that was never written", {"filling": f}) for words, f in FILLINGS.items()]


_POLICY_WORDS = {"clamp": "clamped to the last element", "zero": "discarded", "wrap": "wrapped around"}


def _policies(launch: Launch) -> list[_Rerun]:
    others = [policy for policy in _POLICY_WORDS if policy != launch.options.policy]
    return [_Rerun(f"with accesses out of bounds {_POLICY_WORDS[policy]}", {"policy": policy}) for policy in others]


# By `Kind.replay`: the reruns, and how to say that none changes an output.
_REPLAYS: dict[str, tuple[Callable[[Launch], list[_Rerun]], str]] = {
    "schedules": (_schedules, "in any of {orders} orders"),
    "poison": (_poison, f"with {', '.join(FILLINGS)} there"),
    "policies": (_policies, "under any permitted policy"),
}


def differences(before: Mapping[Key, Output], after: Mapping[Key, Output]) -> Iterator[tuple[Key, str]]:
    """Yield the outputs that differ between two runs, and in words, which of their elements do."""
    for name, data in before.items():
        if changed := _difference(str(name), data, after[name]):
            yield name, changed


def _difference(name: str, before: Output, after: Output) -> str | None:
    """Say which elements of an output differ in their bits; None where none does."""
    ours, theirs = (np.frombuffer(x, np.uint8) if isinstance(x, bytes) else np.asarray(x) for x in (before, after))
    if ours.tobytes() == theirs.tobytes():
        return None
    ours, theirs = ours.ravel(), theirs.ravel()
    bits = np.dtype((np.void, ours.dtype.itemsize))
    places = np.flatnonzero(ours.view(bits) != theirs.view(bits))
    first = int(places[0])
    share = f"{len(places):,} of {len(ours):,} elements of {name} differ"
    return f"{share}, the first is {name}[{first}]: {theirs[first]} instead of {ours[first]}"

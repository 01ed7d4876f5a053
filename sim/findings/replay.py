"""Verdicts: whether a finding matters, decided by running the dispatch again with what WGSL leaves open changed.

Races are run in other schedules, unwritten memory is filled with several bit patterns, and accesses out of bounds
follow the other policies. The verdict is `harmful` where any bit of an output changes, and `unseen` where none does.
Two verdicts need no rerun: a race in which both invocations store the same value is `same-value`, and one that only a
barrier for another kind of memory separates is `wrong-barrier`, because every schedule respects barriers.

Each finding is judged by the outputs that the values it leaves open can influence, so that one does not take the blame
for another. Data that are all equal hide races, so those that change nothing are judged once more with other data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from ..analysis.influence import Influence, Node
from ..bindings.binding import Key, Output
from ..fast_dataclass import frozen
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..launch.race_tables import race_rows
from ..launch.schedules import MIRRORED, MOST_ONE_BY_ONE, Schedule, schedule, side_by_side
from ..machine import layout as at
from ..wgsl.diagnostics import Note
from .effort import affordable
from .finding import Finding
from .races import find_races
from .runner import Changes, Runner
from .table import KINDS, RACE
from .unwritten_memory import FILLINGS, filled, loaded

_MOST_BESIDE = 8  # colliding workgroups that a rerun begins with, side by side
_ACCESSES = ("load", "store", "atomic")
_Question = tuple[str, Filling]  # `Kind.replay`, and the part of workgroup memory that it is about
_SLACK = 1000  # backward jumps that a rerun may make beyond four times those of the first run


@frozen
class _Rerun:
    """One way to run again, in words and as changes to `RunOptions`."""

    words: str
    changes: Changes


@frozen
class _Reruns:
    """The reruns that answer a question, and how many more would take too long."""

    made: list[_Rerun]
    left: int = 0


@frozen
class _Result:
    """What a rerun changed: whether it no longer ends, and by output, in words, which elements differ."""

    words: str
    endless: bool
    changed: dict[Key, str]


@frozen
class Verdicts:
    """What verdicts are decided with. `run` runs the dispatch again. `influence` returns what values in its program
    influence. `varied` returns how to run it with other data, and the buffers that they are in; None: not at all."""

    run: Runner
    influence: Callable[[], Influence]
    varied: Callable[[], tuple[Verdicts, list[str]]] | None


class Judge:
    """Decides the verdicts of the findings of one finished run."""

    def __init__(self, how: Verdicts, launch: Launch, outcome: Outcome) -> None:
        self._how = how
        self._launch = launch
        self._outcome = outcome
        self._reruns: dict[_Question, _Reruns] = {}
        self._results: dict[_Question, list[_Result]] = {}
        self._before = launch.outputs()
        self._alone: dict[tuple[int, ...], dict[Key, Output]] = {}

    def judge(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings with their verdicts, and notes on what changed."""
        return [self._with_other_data(self._judged(finding)) for finding in findings]

    def _judged(self, finding: Finding) -> Finding:
        kind = KINDS[finding.code]
        if kind.replay is None or finding.verdict is not None:
            return finding
        question = kind.replay, loaded(finding, self._launch) if kind.replay == "poison" else Filling()
        change = self._change(question, finding)
        verdict = "unseen" if change is None else "harmful"
        reruns = self._reruns[question]
        unchanged = _REPLAYS[kind.replay][1].format(orders=1 + len(reruns.made))
        unchanged += f" ({reruns.left} more take too long without --thorough)" if reruns.left else ""
        others = any(result.changed for result in self._results[question])
        note = change or Note(f"no output{' that depends on it' if others else ''} changes {unchanged}")
        severity = kind.severity_of(verdict) or finding.severity
        return replace(finding, verdict=verdict, severity=severity, notes=(*finding.notes, note))

    def _change(self, question: _Question, finding: Finding) -> Note | None:
        """Say what the first rerun changes that changes anything the finding influences; None where none does."""
        influence = self._how.influence()
        nodes = influence.of(open_values(finding, self._launch, influence))
        for result in self._results_of(question):
            if result.endless and (not nodes or nodes & influence.deciding):
                return Note(f"{result.words}, {NO_END}")
            for key, changed in result.changed.items():
                if not nodes or self._launch.variable_of(key) in nodes:
                    return Note(f"{result.words}, {changed}")
        return None

    def _results_of(self, question: _Question) -> Iterator[_Result]:
        """Yield the results of the reruns, each of which runs when it is first needed."""
        results = self._results.setdefault(question, [])
        if question not in self._reruns:
            replay, part = question
            self._reruns[question] = _REPLAYS[replay][0](self._launch, self._outcome, part)
        for place, rerun in enumerate(self._reruns[question].made):
            if place == len(results):
                results.append(self._result(rerun))
            yield results[place]

    def _result(self, rerun: _Rerun) -> _Result:
        changes: Changes = {"budget": rerun_budget(self._launch, self._outcome), "threads": 1, **rerun.changes}
        launch, outcome = self._how.run(frozenset(), **changes)
        if outcome.finished < launch.count:
            return _Result(rerun.words, True, {})
        before = self._before if launch.count == self._launch.count else self._before_alone(rerun)
        return _Result(rerun.words, False, dict(differences(before, launch.outputs())))

    def _before_alone(self, rerun: _Rerun) -> dict[Key, Output]:
        """Return the outputs of the workgroups that a rerun chooses, in lockstep."""
        chosen = rerun.changes.get("chosen")
        assert chosen is not None
        key = tuple(chosen.tolist())
        if key not in self._alone:
            self._alone[key] = self._how.run(frozenset(), chosen=chosen)[0].outputs()
        return self._alone[key]

    # ---- other data ----

    def _with_other_data(self, finding: Finding) -> Finding:
        """Judge a race that changes nothing with other data."""
        if finding.code != RACE.code or finding.verdict not in ("same-value", "unseen"):
            return finding
        buffers, races = self._races_with_other_data
        again = races.get(finding.race_places)
        if not buffers or again is None:
            return finding
        data = f"with other values in {' and '.join(buffers)}"
        *earlier, last = finding.notes
        if again.verdict == "same-value":  # which shows nothing new
            return finding
        if again.verdict == finding.verdict:
            return replace(finding, notes=(*earlier, Note(f"{last.message}, nor {data}")))
        severity = RACE.severity_of(again.verdict) or RACE.severity
        kept = finding.notes if finding.verdict == "same-value" else tuple(earlier)
        changed = Note(f"{data}, {again.notes[-1].message}")
        return replace(finding, verdict=again.verdict, severity=severity, notes=(*kept, changed))

    @cached_property
    def _races_with_other_data(self) -> tuple[list[str], dict[Hashable, Finding]]:
        """The buffers that have other values, and the races of a run with them, by their places."""
        if self._how.varied is None:
            return [], {}
        how, buffers = self._how.varied()
        if not buffers:
            return [], {}
        launch, outcome = how.run(frozenset(("races",)))
        if outcome.finished < launch.count:
            return [], {}
        found = Judge(how, launch, outcome).judge(find_races(launch, outcome))
        return buffers, {finding.race_places: finding for finding in found}


def open_values(finding: Finding, launch: Launch, influence: Influence) -> set[Node]:
    """Return the values that a finding leaves open: what its loads read, or the variable that its stores change. Empty
    if they are not known."""
    spans = {span for _, span in finding.spans} if finding.code == RACE.code else {finding.span}
    sites = [site for site in launch.program.sites if site.span in spans and site.kind in _ACCESSES]
    loads = [site for site in sites if site.kind == "load"]
    found: set[Node] = set()
    for site in loads or sites:
        found |= influence.results.get(site.span, set())
        if site.kind != "load":
            found.add(site.variable or "")
    return found


def rerun_budget(launch: Launch, outcome: Outcome) -> int:
    """Return how many backward jumps a rerun of a finished run may make."""
    return min(launch.options.budget, 4 * outcome.jumps + _SLACK)


NO_END = "it does not terminate"


def _schedules(launch: Launch, outcome: Outcome, _: Filling) -> _Reruns:
    """Return the orders, the cheapest first. If workgroups do not meet, only those that race run in smaller units."""
    wide, fine = [MIRRORED], [schedule(name) for name in ("subgroup-serial", "reversed", "random(1)")]
    across = _racing_workgroups(launch, outcome, across=True)
    if across:
        wide.append(side_by_side(across))
    changes: Changes = {"racing": launch.racing(outcome)}
    few = [] if across else _racing_workgroups(launch, outcome, across=False)
    if few and len(few) < launch.count and not _meet(launch):
        changes["chosen"] = np.array(few, np.int64)
    else:
        few = list(range(launch.count))
    if len(few) * launch.invocations // launch.count > MOST_ONE_BY_ONE:
        fine = [replace(each, granularity="subgroup") if each.granularity == "invocation" else each for each in fine]
    alike: Changes = {"racing": changes["racing"]}
    made = [_Rerun(_words(order), {"schedule": order, **alike}) for order in wide]
    made += [
        _Rerun(_words(order), {"schedule": order, **changes}) for order in affordable(launch, outcome, fine, len(few))
    ]
    return _Reruns(made, len(wide) + len(fine) - len(made))


def _racing_workgroups(launch: Launch, outcome: Outcome, *, across: bool) -> list[int]:
    """Return the workgroups of the first races between workgroups, or within one, by number in the grid."""
    rows = [row for row in race_rows(outcome.races) if bool(row[at.RACE_ACROSS]) == across][: _MOST_BESIDE // 2]
    places = [int(row[which]) for row in rows for which in (at.RACE_FIRST_WORKGROUP, at.RACE_SECOND_WORKGROUP)]
    return list(dict.fromkeys(launch.number(place) for place in places))


def _meet(launch: Launch) -> bool:
    """Whether workgroups that do not race may still see each other, or are a part of the dispatch already."""
    atomics = any(site.kind == "atomic" and site.space == "storage" for site in launch.program.sites)
    return atomics or launch.program.waits or launch.options.chosen is not None


def _words(order: Schedule) -> str:
    return f"run {order.name}" + (", by subgroups" if order.granularity == "subgroup" and order.seed else "")


def _poison(launch: Launch, outcome: Outcome, part: Filling) -> _Reruns:
    words = "with {} in memory that was never written"
    return _Reruns([_Rerun(words.format(name), {"filling": filling}) for name, filling in filled(part)])


_POLICY_WORDS = {"clamp": "clamped to the last element", "zero": "discarded", "wrap": "wrapped around"}


def _policies(launch: Launch, outcome: Outcome, _: Filling) -> _Reruns:
    others = [policy for policy in _POLICY_WORDS if policy != launch.options.policy]
    words = "with accesses out of bounds {}"
    return _Reruns([_Rerun(words.format(_POLICY_WORDS[policy]), {"policy": policy}) for policy in others])


# By `Kind.replay`: the reruns, and how to say that none changes an output.
_REPLAYS: dict[str, tuple[Callable[[Launch, Outcome, Filling], _Reruns], str]] = {
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

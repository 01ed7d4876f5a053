"""Verdicts: whether a finding matters, decided by running the dispatch again with what WGSL leaves open changed.

Races are run in other schedules, unwritten memory is filled with several bit patterns, and accesses out of bounds
follow the other policies. The verdict is `harmful` where any bit of an output changes, and `unseen` where none does.
Two verdicts need no rerun: a race in which both invocations store the same value is `same-value`, and one that only a
barrier for another kind of memory separates is `wrong-barrier`, because every schedule respects barriers.

Each finding is judged by the outputs that the values it leaves open can influence, so that one does not take the blame
for another. Data that are all equal hide races, so those that change nothing are judged once more with other data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analysis.influence import Influence, Node
from ..bindings.binding import Key
from ..fast_dataclass import frozen
from ..ir.access import Access
from ..ir.sites import SourceSite
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from ..wgsl.source import Span
from .effort import Effort, work
from .finding import Finding
from .races import find_races
from .reruns import REPLAYS, Rerun
from .runner import Changes, Runner
from .table import KINDS, RACE
from .unwritten_memory import loaded

Elements = NDArray[Any]

_ACCESSES = ("load", "store", "atomic")
_Question = tuple[str, Filling]  # `Kind.replay`, and the part of workgroup memory that it is about
_ORDERS: _Question = "schedules", Filling()
_WATCHED = 2  # times the work of a run that watches for races
_NOT_TRIED = "was not tried: it takes too long without --thorough"
_NO_INFLUENCE = "no output depends on it"
_NOT_JUDGED = f"whether it changes an output {_NOT_TRIED}"
_SLACK = 1000  # backward jumps that a rerun may make beyond four times those of the first run


@frozen
class _Result:
    """What a rerun changed: whether it no longer ends, and by output, in words, which elements differ."""

    words: str
    endless: bool
    changed: dict[Key, str]


@frozen
class Verdicts:
    """What verdicts are decided with. `run` runs the dispatch again. `influence` returns what values in its program
    influence. `varied` returns what runs it with other data, and the buffers that they are in, if any."""

    run: Runner
    influence: Callable[[], Influence]
    varied: Callable[[], tuple[Runner, list[str]]]


class Judge:
    """Decides the verdicts of the findings of one finished run.

    `effort`: the work that reruns may do, here and for the findings with other data. `before`: the outputs, if they are
    not those of the run.
    """

    def __init__(
        self,
        how: Verdicts,
        launch: Launch,
        outcome: Outcome,
        effort: Effort | None = None,
        before: Callable[[], dict[Key, Elements]] | None = None,
    ) -> None:
        self._how = how
        self._launch = launch
        self._outcome = outcome
        self._effort = effort or Effort.of(launch, outcome)
        self._reruns: dict[_Question, list[Rerun]] = {}
        self._results: dict[_Question, list[_Result]] = {}
        self._nodes: dict[tuple[str, tuple[Span, ...]], frozenset[Node] | None] = {}
        self._outputs = before or launch.views
        self._alone: dict[tuple[int, ...], dict[Key, Elements]] = {}

    def judge(self, findings: Iterable[Finding]) -> list[Finding]:
        """Return the findings with their verdicts, and notes on what changed."""
        return [self._with_other_data(each) for each in [self._judged(finding) for finding in findings]]

    def _judged(self, finding: Finding) -> Finding:
        kind = KINDS[finding.code]
        if kind.replay is None or finding.verdict is not None:
            return finding
        if not self._may_show(finding):
            severity = kind.severity_of("unseen") or finding.severity
            return replace(finding, verdict="unseen", severity=severity, notes=(*finding.notes, Note(_NO_INFLUENCE)))
        question = kind.replay, loaded(finding, self._launch) if kind.replay == "poison" else Filling()
        change = self._change(question, finding)
        verdict = "unseen" if change is None else "harmful"
        if change is None and self._reruns[question] and not self._results[question]:
            return replace(finding, notes=(*finding.notes, Note(_NOT_JUDGED)))
        severity = kind.severity_of(verdict) or finding.severity
        note = change or Note(self._unchanged(question))
        return replace(finding, verdict=verdict, severity=severity, notes=(*finding.notes, note))

    def _unchanged(self, question: _Question) -> str:
        """Say which reruns change no output, and how many were not made."""
        results = self._results[question]
        left = len(self._reruns[question]) - len(results)
        replay, _ = question
        words = REPLAYS[replay][1].format(orders=1 + len(results))
        if left and replay != "schedules":
            words = " or ".join(result.words for result in results)
        more = f" ({left} more take too long without --thorough)" if left else ""
        others = any(result.changed for result in results)
        return f"no output{' that depends on it' if others else ''} changes {words}{more}"

    def _change(self, question: _Question, finding: Finding) -> Note | None:
        """Say what the first rerun changes that changes anything the finding influences; None where none does."""
        influence, nodes = self._how.influence(), self._influenced(finding)
        for result in self._results_of(question):
            if result.endless and (nodes is None or nodes & influence.deciding):
                return Note(f"{result.words}, {NO_END}")
            for key, changed in result.changed.items():
                if nodes is None or self._launch.variable_of(key) in nodes:
                    return Note(f"{result.words}, {changed}")
        return None

    def _may_show(self, finding: Finding) -> bool:
        """Whether an output, or the end of a loop, may depend on what a finding leaves open."""
        nodes = self._influenced(finding)
        outputs = (each.variable.name for each in self._launch.writable)
        return nodes is None or bool(nodes & self._how.influence().deciding) or any(name in nodes for name in outputs)

    def _influenced(self, finding: Finding) -> frozenset[Node] | None:
        """Return what the values influence that a finding leaves open, found once for each place; None: not known."""
        key = finding.code, tuple(span for _, span in finding.spans)
        if key not in self._nodes:
            influence = self._how.influence()
            values = open_values(finding, self._launch, influence)
            self._nodes[key] = None if values is None else influence.of(values)
        return self._nodes[key]

    def _results_of(self, question: _Question) -> Iterator[_Result]:
        """Yield the results of the reruns, each of which runs when it is first needed, while the effort suffices."""
        results = self._results.setdefault(question, [])
        if question not in self._reruns:
            replay, part = question
            self._reruns[question] = REPLAYS[replay][0](self._launch, self._outcome, part)
        for place, rerun in enumerate(self._reruns[question]):
            if place == len(results):
                if not rerun.proven and not self._effort.take(rerun.work):
                    return
                results.append(self._result(rerun))
            yield results[place]

    def _result(self, rerun: Rerun) -> _Result:
        if rerun.proven:
            return _Result(rerun.words, False, {})
        changes: Changes = {"budget": rerun_budget(self._launch, self._outcome), "threads": 1, **rerun.changes}
        launch, outcome = self._how.run(frozenset(), **changes)
        if outcome.finished < launch.count:
            return _Result(rerun.words, True, {})
        before = self._before if launch.count == self._launch.count else self._before_alone(rerun)
        return _Result(rerun.words, False, dict(differences(before, launch.views())))

    @cached_property
    def _before(self) -> dict[Key, Elements]:
        """The outputs of all workgroups, in lockstep."""
        return self._outputs()

    def _before_alone(self, rerun: Rerun) -> dict[Key, Elements]:
        """Return the outputs of the workgroups that a rerun chooses, in lockstep."""
        chosen = rerun.changes.get("chosen")
        assert chosen is not None
        key = tuple(chosen.tolist())
        if key not in self._alone:
            self._alone[key] = self._how.run(frozenset(), chosen=chosen)[0].views()
        return self._alone[key]

    def _tried(self, question: _Question) -> int:
        """Return how many reruns have answered a question."""
        return len(self._results.get(question, ()))

    # ---- other data ----

    def _with_other_data(self, finding: Finding) -> Finding:
        """Judge a race that changes nothing with other data."""
        judged_again = finding.code == RACE.code and finding.verdict in ("same-value", "unseen")
        if not judged_again or not self._may_show(finding) or self._other is None:
            return finding
        (other, buffers), again = self._other, replace(finding, verdict=None)
        data = f"with other values in {' and '.join(buffers)}"
        if finding.verdict == "same-value":
            again = self._with_values(finding, buffers)
            if again is None:
                return replace(finding, notes=(*finding.notes, Note(f"what it stores {data} {_NOT_TRIED}")))
            if again.verdict == "same-value":
                return finding
        *earlier, last = finding.notes
        again = other._judged(again)
        if again.verdict is None:
            return replace(finding, notes=(*finding.notes, Note(f"what changes {data} {_NOT_TRIED}")))
        if again.verdict == finding.verdict:
            fewer = other._tried(_ORDERS) < self._tried(_ORDERS)
            where = f" in {1 + other._tried(_ORDERS)} of these" if fewer else ""
            return replace(finding, notes=(*earlier, Note(f"{last.message}, nor {data}{where}")))
        severity = RACE.severity_of(again.verdict) or RACE.severity
        kept = finding.notes if finding.verdict == "same-value" else tuple(earlier)
        changed = Note(f"{data}, {again.notes[-1].message}")
        return replace(finding, verdict=again.verdict, severity=severity, notes=(*kept, changed))

    @cached_property
    def _other(self) -> tuple[Judge, list[str]] | None:
        """A judge of the same races with other values in some buffers, and the names of these; None if there are none.

        The values decide neither a branch nor an address, so that all else is as in the run, races included.
        """
        run, buffers = self._how.varied()
        how = replace(self._how, run=run)

        def outputs() -> dict[Key, Elements]:
            launch, _ = self._values or how.run(frozenset())
            return launch.views()

        return (Judge(how, self._launch, self._outcome, self._effort, outputs), buffers) if buffers else None

    @cached_property
    def _values(self) -> tuple[Launch, Outcome] | None:
        """A run with the other data that watches what races store; None if it takes too long."""
        assert self._other is not None
        if not self._effort.take(_WATCHED * work(self._launch, self._outcome)):
            return None
        return self._other[0]._how.run(frozenset(("races",)))

    def _with_values(self, finding: Finding, buffers: list[str]) -> Finding | None:
        """Return a race that stores one value as it is with the other data; None if to run with them takes too long."""
        variables = {site.variable for site in _sites(finding, self._launch)}
        if not variables & self._how.influence().variables(buffers):
            return finding
        if self._values is None:
            return None
        races = (race for race in find_races(*self._values) if race.race_places == finding.race_places)
        return next(races, finding)


def open_values(finding: Finding, launch: Launch, influence: Influence) -> set[Node] | None:
    """Return the values that a finding leaves open: what its loads read, or the variable that its stores change. None
    if they are not known."""
    sites = _sites(finding, launch)
    loads = [site for site in sites if site.kind == "load"]
    found: set[Node] = set()
    for span in dict.fromkeys(site.span for site in loads or sites):
        found |= influence.results.get(span, set())
    if not loads:
        return found | {site.variable or "" for site in sites} or None
    if not found:
        return None
    stores = _stores(launch, sites) if finding.code == RACE.code else []
    return {each for each in found if influence.may_load(each, stores)} if stores else found


def _stores(launch: Launch, sites: list[SourceSite]) -> list[Access]:
    """Return the watched accesses that store at these sites."""
    program = launch.program
    probes = [probe for probe in program.race_probes if program.sites[probe.site] in sites]
    return [program.accesses[probe.access] for probe in probes if program.accesses[probe.access].writes]


def _sites(finding: Finding, launch: Launch) -> list[SourceSite]:
    """Return the accesses that a finding is about."""
    spans = {span for _, span in finding.spans} if finding.code == RACE.code else {finding.span}
    at_spans = (launch.program.sites_at.get((span.start, span.end), []) for span in spans if span is not None)
    return [site for sites in at_spans for site in sites if site.kind in _ACCESSES]


def rerun_budget(launch: Launch, outcome: Outcome) -> int:
    """Return how many backward jumps a rerun of a finished run may make."""
    return min(launch.options.budget, 4 * outcome.jumps + _SLACK)


_UNSIGNED: dict[int, np.dtype[Any]] = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_PART = 1 << 16  # bytes that are compared at a time
NO_END = "it does not terminate"


def differences(before: Mapping[Key, Elements], after: Mapping[Key, Elements]) -> Iterator[tuple[Key, str]]:
    """Yield the outputs that differ between two runs, and in words, which of their elements do."""
    for name, data in before.items():
        if changed := _difference(str(name), data, after[name]):
            yield name, changed


def _difference(name: str, before: Elements, after: Elements) -> str | None:
    """Say which elements of an output differ in their bits; None where none does."""
    ours, theirs = np.ascontiguousarray(before).ravel(), np.ascontiguousarray(after).ravel()
    if _is_same(ours.view(np.uint8), theirs.view(np.uint8)):
        return None
    bits = _UNSIGNED.get(ours.dtype.itemsize) or np.dtype((np.void, ours.dtype.itemsize))
    places = np.flatnonzero(ours.view(bits) != theirs.view(bits))
    first = int(places[0])
    share = f"{len(places):,} of {len(ours):,} elements of {name} differ"
    return f"{share}, the first is {name}[{first}]: {theirs[first]} instead of {ours[first]}"


def _is_same(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> bool:
    """Whether bytes are equal: in parts, so that what NumPy makes of them stays in caches."""
    parts = range(0, len(ours), _PART)
    return all(np.array_equal(ours[i : i + _PART], theirs[i : i + _PART]) for i in parts)

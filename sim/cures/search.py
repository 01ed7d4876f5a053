"""The search for cures: change the text, run it again, and keep what ends races and brings nothing new.

Races within a workgroup end where a barrier separates their accesses. Each candidate is inserted, the new text is
checked, also for uniform control flow, and run. The candidate that ends the most races is kept, until no race is left
or no candidate helps; where none helps alone, pairs of barriers in a loop are tried. A last run has all cures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Protocol

from ..bounded_cache import remember
from ..fast_dataclass import entity, frozen, sealed
from ..findings.finding import Finding
from ..ir.sites import SourceSite
from ..wgsl.diagnostics import WgslError
from ..wgsl.source import Source, Span
from ..wgsl.text_edits import Replacement, original_offset
from ..wgsl.typed import Module, Pipeline
from .atomics import ATOMIC, atomic_changes
from .changed_texts import changed
from .changes import Change, Race, both_ways, changes
from .places import Places

MOST_RUNS = 24  # of changed texts, for each dispatch
_MOST_KEPT = 64  # sets of races whose changes are kept
_MAY_GO = ("uninit", "atomic-order", "not-finite", "division-by-zero", "out-of-bounds")  # what races may cause
Key = tuple[tuple[int, int], tuple[int, int], bool]  # of a race, in the original text
Other = tuple[str, int]  # another finding: its code, and its line in the original text


class Trial(Protocol):
    """Runs a module on the same data, and returns its findings; `last`: with those that only further reruns show."""

    def __call__(self, module: Module, /, *, last: bool) -> list[Finding]: ...


@sealed
class Cure:
    """Changes of the text that were tried. `words` say what they are; they end `races`, of which there is at least one.
    `joint`: no change alone ends them.
    """

    words: str
    replacements: tuple[Replacement, ...]
    races: tuple[Finding, ...]
    joint: bool = False

    @property
    def sentence(self) -> str:
        """What it ends, in words: `a workgroupBarrier() after line 23 removes all 19 races`."""
        return self.says_to_remove(f"all {len(self.races)} races" if len(self.races) > 1 else "this race")

    def says_to_remove(self, what: str) -> str:
        """Say that the changes remove this."""
        return f"{self.words} {'remove' if self.joint else 'removes'} {what}"


@frozen
class Cures:
    """The result of a search. `left`: races that no cure ends; `gave_up`: why the search ended before all were tried.
    `gone`: other findings that are gone with the cures."""

    cures: tuple[Cure, ...] = ()
    left: tuple[Finding, ...] = ()
    gone: tuple[Finding, ...] = ()
    gave_up: str = ""


def find_cures(
    pipeline: Pipeline,
    sites: Iterable[SourceSite],
    findings: list[Finding],
    silenced: list[Finding],
    trial: Trial,
    most: int = MOST_RUNS,
) -> Cures:
    """Search for changes that end the races among `findings`, with at most so many runs of changed texts."""
    memory = {site.span: site for site in sites if site.kind in ("load", "store", "atomic")}
    races = {race: f for f in findings if f.code == "race" and (race := _race(f, memory)) is not None}
    if not races:
        return Cures(left=tuple(f for f in findings if f.code == "race"))
    search = _Search(pipeline, [*findings, *silenced], trial, most)
    for atomics in (True, False):
        chosen, attempt = search.run(frozenset(races), atomics=atomics)
        last = search.attempt([change for change, _ in chosen], last=True) if chosen else None
        if last is not None and last.races == attempt.races and last.races <= search.before.races:
            break
        if not any(change.effort == ATOMIC for change, _ in chosen):
            return Cures(left=tuple(races.values()), gave_up=search.gave_up)
    else:
        return Cures(left=tuple(races.values()), gave_up=search.gave_up)
    cures = _cures(chosen, races)
    ended = {f for cure in cures for f in cure.races}
    left = tuple(f for f in findings if f.code == "race" and f not in ended)
    line = pipeline.module.source.line_index
    gone = tuple(
        f for f in findings if f.code in _MAY_GO and f.span and (f.code, line(f.span.start)) not in last.others
    )
    return Cures(cures, left, gone, search.gave_up)


def _cures(chosen: list[tuple[Change, frozenset[Key]]], races: Mapping[Race, Finding]) -> tuple[Cure, ...]:
    """Return the cures. A change that ends no race of the original text ends one that the change before brought."""
    cures: list[Cure] = []
    for change, keys in chosen:
        ended = tuple(f for race, f in races.items() if _key(race) in keys)
        if ended or not cures:
            cures.append(Cure(change.words, change.replacements, ended, change.joint))
        else:
            before = cures.pop()
            both = (*before.replacements, *change.replacements)
            cures.append(Cure(f"{before.words} and {change.words}", both, before.races, joint=True))
    return tuple(cures)


@frozen
class _Attempt:
    """The findings of a changed text, at their places in the original one."""

    races: frozenset[Key]
    others: frozenset[Other]


@entity
class _Search:
    pipeline: Pipeline
    findings: list[Finding]
    trial: Trial
    most: int
    runs: int = 0
    gave_up: str = ""
    before: _Attempt = field(init=False)

    def __post_init__(self) -> None:
        self.before = _attempt(self.pipeline.module.source, self.findings, ())

    def run(self, races: frozenset[Race], *, atomics: bool) -> tuple[list[tuple[Change, frozenset[Key]]], _Attempt]:
        """Return the changes that help, each with the races that it ends, and what is left with all of them."""
        chosen: list[tuple[Change, frozenset[Key]]] = []
        now = self.before
        while wanted := [race for race in races if _key(race) in now.races]:
            source, so_far = self.pipeline.module.source, [c for c, _ in chosen]
            candidates = self._kept(changes, source, wanted)
            found = self._best(candidates, so_far, now) or self._best(both_ways(candidates), so_far, now)
            if found is None and atomics:  # atomics end all races of a variable, also those that need a barrier
                found = self._best(self._kept(atomic_changes, source, wanted), so_far, now)
            if found is None:
                break
            change, after = found
            chosen.append((change, now.races - after.races))
            now = after
        return chosen, now

    def _kept(
        self, make: Callable[[Source, Places, list[Race]], Iterable[Change]], source: Source, races: list[Race]
    ) -> list[Change]:
        """Return the changes that `make` finds for these races, which it does once for each pipeline."""
        kept, entry = self.pipeline.kept, self.pipeline.entry
        places = remember(kept, ("places",), lambda: Places(entry), _MOST_KEPT)
        return remember(kept, (make, frozenset(races)), lambda: list(make(source, places, races)), _MOST_KEPT)

    def _best(self, candidates: list[Change], chosen: list[Change], now: _Attempt) -> tuple[Change, _Attempt] | None:
        """Return the change that ends the most races, with what is left then."""
        best: tuple[Change, _Attempt] | None = None
        most = 0
        for change in candidates:
            if len(change.orders) <= most:
                break  # the others end no more
            if self.runs >= self.most:
                few = ", and more take too long without --thorough" if self.most < MOST_RUNS else ""
                self.gave_up = f"Bankshot tried {self.most} changes of the text{few}"
                break
            after = self.attempt([*chosen, change])
            if after is None:
                continue
            ended = len(now.races) - len(after.races)
            if ended > most:
                best, most = (change, after), ended
        return best

    def attempt(self, chosen: list[Change], *, last: bool = False) -> _Attempt | None:
        """Run the text with these changes; None where it is invalid, or brings other findings."""
        source = self.pipeline.module.source
        replacements = [each for change in chosen for each in change.replacements]
        if _overlap(replacements):
            return None
        module = changed(source, replacements)
        if module is None:
            return None
        self.runs += 1
        try:
            after = _attempt(source, self.trial(module, last=last), replacements)
        except WgslError:
            return None
        return after if after.others <= self.before.others else None


def _race(finding: Finding, memory: dict[Span, SourceSite]) -> Race | None:
    first = next((note.span for note in finding.notes if note.span), None)
    site = memory.get(finding.span) if finding.span else None
    if first is None or finding.span is None or site is None:
        return None
    return Race(
        first,
        finding.span,
        site.space or "storage",
        site.variable or "",
        finding.epoch is None,
        finding.verdict == "same-value",
    )


def _key(race: Race) -> Key:
    one, two = sorted((span.start, span.end) for span in race.spans)
    return one, two, race.across


def _attempt(source: Source, findings: Iterable[Finding], replacements: Iterable[Replacement]) -> _Attempt:
    races: set[Key] = set()
    others: set[Other] = set()
    moved = list(replacements)
    for finding in findings:
        spans = [span for _, span in finding.spans]
        if finding.code == "race" and len(spans) > 1:
            one, two = sorted((original_offset(moved, s.start), original_offset(moved, s.end)) for s in spans[:2])
            races.add((one, two, finding.epoch is None))
        elif finding.span is not None:
            others.add((finding.code, source.line_index(original_offset(moved, finding.span.start))))
    return _Attempt(frozenset(races), frozenset(others))


def _overlap(replacements: list[Replacement]) -> bool:
    ordered = sorted(replacements, key=lambda each: (each.start, each.end))
    return any(a.end > b.start for a, b in pairwise(ordered))

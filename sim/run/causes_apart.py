"""Verdicts of causes apart: a race is judged once more in the text in which the races of all other causes are cured.

An output that several races reach changes with any of them, so that each would be called harmful.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from ..cures.causes import connected
from ..cures.changed_texts import changed
from ..cures.search import Cures
from ..findings.effort import Effort, probed_work
from ..findings.finding import Finding
from ..findings.races import find_races
from ..findings.replay import Judge
from ..findings.table import RACE
from ..wgsl.diagnostics import Note, WgslError
from ..wgsl.source import Span
from ..wgsl.text_edits import Replacement, original_offset
from .dispatch import Dispatch
from .measure import verdicts_of

_MOST = 4  # causes that are judged apart
_Places = tuple[frozenset[tuple[int, int]], bool]


def judged_apart(dispatch: Dispatch, budget: int, effort: Effort, found: Cures) -> dict[Finding, Finding]:
    """Return the races whose verdict changes where all other causes are cured, each with the new one.

    `effort`: the work that runs of changed texts may still do. A race that it does not suffice for says so.
    """
    uncured = connected(found.left)
    causes = [cause for cause in (*(cure.races for cure in found.cures), *uncured) if _harms(cause)]
    if not 2 <= len(causes) <= _MOST:
        return {}
    judged: dict[Finding, Finding] = {}
    for cause in causes:
        if any(other is not cause and _harms(other) for other in uncured):
            continue  # which would still change the outputs
        others = [each for cure in found.cures if cure.races is not cause for each in cure.replacements]
        judged |= _harmless(cause, _races_with(dispatch, budget, effort, others))
    return judged


def _harms(cause: Iterable[Finding]) -> bool:
    return any(race.verdict == "harmful" for race in cause)


def _races_with(
    dispatch: Dispatch, budget: int, effort: Effort, replacements: list[Replacement]
) -> dict[_Places, Finding]:
    """Return the races of the changed text with their verdicts, by their places in the original one."""
    module = changed(dispatch.pipeline.module.source, replacements)
    if module is None:
        return {}
    try:
        again = dispatch.of(module, budget)
        launch, outcome = again.run(frozenset(("races",)))
    except WgslError:
        return {}
    if outcome.finished < launch.count:
        return {}
    effort.spend(probed_work(launch, outcome))
    races = Judge(verdicts_of(again), launch, outcome, effort).judge(find_races(launch, outcome))
    return {_places([s for _, s in race.spans], race, replacements): race for race in races}


def _places(spans: list[Span], race: Finding, replacements: list[Replacement]) -> _Places:
    ends = ((original_offset(replacements, s.start), original_offset(replacements, s.end)) for s in spans[:2])
    return frozenset(ends), race.epoch is None


def _harmless(cause: Iterable[Finding], apart: dict[_Places, Finding]) -> dict[Finding, Finding]:
    """Return the races of a cause with their new verdicts, if all are still there and change no output."""
    again = {race: apart.get(_places([s for _, s in race.spans], race, [])) for race in cause}
    if any(new is None or new.count < race.count or new.verdict == "harmful" for race, new in again.items()):
        return {}
    return {race: _with_verdict(race, new) for race, new in again.items() if new and race.verdict == "harmful"}


def _with_verdict(race: Finding, apart: Finding) -> Finding:
    if apart.verdict is None:
        return replace(race, notes=(*race.notes, Note(f"with the other races cured, {apart.notes[-1].message}")))
    *notes, last = race.notes
    note = Note(f"with the other races cured, {apart.notes[-1].message}") if apart.verdict == "unseen" else last
    severity = RACE.severity_of(apart.verdict) or race.severity
    return replace(race, verdict=apart.verdict, severity=severity, notes=(*notes, note))

"""Cures for the races of a run: `cures.search` with reruns of the same dispatch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..cures.causes import one_for_each_cause
from ..cures.search import MOST_RUNS, Cure, Cures, find_cures
from ..findings.effort import Effort, probed_work
from ..findings.explain import explain
from ..findings.finding import Finding
from ..findings.grouping import group_races
from ..findings.races import race_places
from ..findings.replay import rerun_budget
from ..findings.table import RACE
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.race_tables import race_rows
from ..machine import layout as at
from ..wgsl.typed import Module
from .causes_apart import judged_apart
from .dispatch import Dispatch
from .measure import Measured, all_findings

_MANY = 4  # as many workgroups as show the races: then only those are rerun for each change
_FINDING = frozenset(("races", "uninit", "bounds", "nan"))  # probes


def cured(
    dispatch: Dispatch, probes: frozenset[str], measured: Measured, findings: list[Finding], silenced: list[Finding]
) -> tuple[list[Finding], tuple[Cure, ...]]:
    """Return the findings with one race for each cause, and the cures that were tried."""
    seen = _in_lockstep(measured.launch, measured.outcome, findings)
    if not any(finding.code == "race" for finding in seen):
        return findings, ()
    in_other_orders, findings = [f for f in findings if f not in seen], seen
    looking = probes & _FINDING
    budget = rerun_budget(measured.launch, measured.outcome)
    few = _few(dispatch, looking, measured, [*findings, *silenced])
    each = probed_work(measured.launch, measured.outcome, None if few is None else len(few))
    effort = Effort.of(measured.launch, measured.outcome)
    most = effort.changed_texts(each, MOST_RUNS)

    whole: list[tuple[Module, Launch, Outcome]] = []  # the last run of all workgroups

    def trial(module: Module, /, *, last: bool) -> list[Finding]:
        effort.spend(each)
        again = dispatch.of(module, budget)
        if few is not None and not last:
            return _look(replace(again, how=replace(again.how, chosen=few)), looking)
        if not whole or whole[0][0] is not module:
            whole[:] = [(module, *again.run(looking))]
        _, launch, outcome = whole[0]
        if not last:
            return group_races(explain(launch, outcome))
        return _in_lockstep(launch, outcome, all_findings(again, looking, launch, outcome, replay=False).findings)

    found = find_cures(dispatch.pipeline, measured.launch.program.sites, findings, silenced, trial, most)
    new = judged_apart(dispatch, budget, effort, found)
    findings, found = [new.get(each, each) for each in findings], _with(found, new)
    return [*one_for_each_cause(findings, found), *in_other_orders], found.cures


def _in_lockstep(launch: Launch, outcome: Outcome, findings: list[Finding]) -> list[Finding]:
    """Return the findings without races that only another order shows: no run of a changed text shows their end."""
    races = race_places(launch, outcome)
    return [f for f in findings if f.code != RACE.code or f.race_places in races]


def _with(found: Cures, new: Mapping[Finding, Finding]) -> Cures:
    """Return the cures with other verdicts of their races."""
    cures = [replace(cure, races=tuple(new.get(race, race) for race in cure.races)) for cure in found.cures]
    return replace(found, cures=tuple(cures), left=tuple(new.get(race, race) for race in found.left))


def _look(dispatch: Dispatch, probes: frozenset[str]) -> list[Finding]:
    return group_races(explain(*dispatch.run(probes)))


def _few(
    dispatch: Dispatch, probes: frozenset[str], measured: Measured, findings: list[Finding]
) -> NDArray[np.int64] | None:
    """Return the workgroups in which the races were seen, if there are few and these show all of them."""
    races = [finding for finding in findings if finding.code == "race"]
    if dispatch.how.chosen is not None:
        return None
    rows, number = race_rows(measured.outcome.races), measured.launch.number
    slots = at.RACE_FIRST_WORKGROUP, at.RACE_SECOND_WORKGROUP
    places = sorted({number(int(row[slot])) for row in rows for slot in slots})
    if _MANY * len(places) > prod(dispatch.grid):
        return None
    chosen = np.array(places, np.int64)
    seen = _look(replace(dispatch, how=replace(dispatch.how, chosen=chosen), ready_memory=[]), probes)
    return chosen if {f.race_places for f in races} <= {f.race_places for f in seen if f.code == "race"} else None

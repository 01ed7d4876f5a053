"""Cures for the races of a run: `cures.search` with reruns of the same dispatch."""

from __future__ import annotations

from ..cures.causes import one_for_each_cause
from ..cures.search import Cure, find_cures
from ..findings.explain import explain
from ..findings.finding import Finding
from ..findings.grouping import group_races
from ..findings.replay import rerun_budget
from ..wgsl.typed import Module
from .dispatch import Dispatch
from .measure import Measured, measure

_FINDING = frozenset(("races", "uninit", "bounds", "nan"))  # probes


def cured(
    dispatch: Dispatch, probes: frozenset[str], measured: Measured, findings: list[Finding], silenced: list[Finding]
) -> tuple[list[Finding], tuple[Cure, ...]]:
    """Return the findings with one race for each cause, and the cures that were tried."""
    if not any(finding.code == "race" for finding in findings):
        return findings, ()
    looking = probes & _FINDING
    budget = rerun_budget(measured.launch, measured.outcome)

    def trial(module: Module, /, *, last: bool) -> list[Finding]:
        again = dispatch.of(module, budget)
        if last:
            return measure(again, looking, "all", replay=False, progress=None).findings
        return group_races(explain(*again.run(looking)))

    found = find_cures(dispatch.pipeline, measured.launch.program.sites, findings, silenced, trial)
    return one_for_each_cause(findings, found), found.cures

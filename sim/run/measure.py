"""Run a dispatch for its counters and findings: every workgroup, one of each class, or a sample.

With classes, counters and the findings that depend on control flow and addresses come from one workgroup of each class
(`launch.workgroup_classes` has the proof). Findings that depend on data or on several workgroups come from a run of all
of them that counts nothing, so that the result equals that of a full run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from math import prod
from typing import Unpack

import numpy as np

from ..analysis.workgroup_equivalence import Unproven
from ..fast_dataclass import frozen
from ..findings.atomic_order import Found, find_order_dependence
from ..findings.atomic_uninit import atomic_reads, find_unwritten_atomics
from ..findings.explain import explain
from ..findings.finding import Finding
from ..findings.grouping import group_races
from ..findings.inactive_lane import find_inactive_lane_reads, shuffles
from ..findings.races import find_component_races
from ..findings.redundant_barriers import find_redundant
from ..findings.replay import Judge, Verdicts
from ..findings.runner import Changes, Runner
from ..findings.table import depending_on
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.workgroup_classes import Classes
from ..wgsl.diagnostics import Crash
from .deletion import orders_atomics
from .dispatch import Dispatch
from .executed_instructions import Instructions, count_instructions
from .site import Site, site_counters
from .workgroup_coverage import Coverage

Progress = Callable[[int, int], None] | None

PROOF = "no branch and no address depends on what they store, and in a class addresses are whole lines of memory apart"
_OF_DATA = depending_on("data")
_SEEN_BY_ALL = depending_on("workgroups")


@frozen
class Measured:
    """The result. `launch` and `outcome` hold the counters; `left` is the run of all workgroups, if there was one."""

    launch: Launch
    outcome: Outcome
    findings: list[Finding]
    coverage: Coverage
    left: Launch | None


def measure(
    dispatch: Dispatch, probes: frozenset[str], workgroups: str, *, replay: bool, progress: Progress
) -> Measured:
    """Run the chosen workgroups of a dispatch.

    `workgroups` is "all", "classes" (one of each class where there is a proof, else all) or "check", which does both
    and raises `Crash` where they differ.
    """
    if workgroups == "all" or not probes:
        return _of_all(dispatch, probes, replay, progress)
    try:
        found = _by_classes(dispatch, probes, replay, progress)
    except Unproven as reason:
        return _of_all(dispatch, probes, replay, progress, str(reason))
    return _checked(dispatch, found, _of_all(dispatch, probes, replay, progress)) if workgroups == "check" else found


def _of_all(dispatch: Dispatch, probes: frozenset[str], replay: bool, progress: Progress, why: str = "") -> Measured:
    launch, outcome = dispatch.run(probes, progress)
    found = all_findings(dispatch, probes, launch, outcome, replay=replay)
    count = prod(dispatch.grid)
    how = "all" if launch.count == count else "sample"
    coverage = Coverage(how, count, launch.count, why, unwatched=outcome.unwatched, untried_orders=found.untried)
    return Measured(launch, outcome, found.findings, coverage, launch)


def all_findings(
    dispatch: Dispatch, probes: frozenset[str], launch: Launch, outcome: Outcome, *, replay: bool
) -> Found:
    """Return the findings of a run of all workgroups with these probes, and those that only reruns show; and how many
    orders of atomic operations were not tried."""
    found = Found(explain(launch, outcome))
    if not probes and not found.findings:
        return found
    if outcome.finished == launch.count:
        found = _judged(dispatch, probes, launch, outcome, found.findings, replay)
        if "redundant" in probes:
            found.findings.extend(find_redundant(dispatch.run, launch, partial(orders_atomics, dispatch)))
    return Found(group_races(found.findings), found.untried)


def _judged(
    dispatch: Dispatch, probes: frozenset[str], launch: Launch, outcome: Outcome, findings: list[Finding], replay: bool
) -> Found:
    """Return the findings, with verdicts if `replay`, and those that only reruns show. All workgroups have run."""
    judged = Judge(verdicts_of(dispatch), launch, outcome).judge(findings) if replay and findings else list(findings)
    if "uninit" in probes:
        judged += find_unwritten_atomics(dispatch.run, launch, outcome)
    if "bounds" in probes:
        judged += find_inactive_lane_reads(dispatch.run, launch, outcome)
    if "races" not in probes:
        return Found(judged)
    judged += find_component_races(dispatch.run, launch, judged)
    found = find_order_dependence(dispatch.run, lambda: dispatch.influence, launch, outcome, judged)
    return replace(found, findings=judged + found.findings)


def verdicts_of(dispatch: Dispatch) -> Verdicts:
    """Return what the verdicts of a dispatch are decided with."""

    def varied() -> tuple[Runner, list[str]]:
        other, buffers = dispatch.varied()
        return other.run, buffers

    return Verdicts(dispatch.run, lambda: dispatch.influence, varied)


def _by_classes(dispatch: Dispatch, probes: frozenset[str], replay: bool, progress: Progress) -> Measured:
    found = dispatch.classes(probes - {"touched", "redundant"})
    findings = [f for f in explain(found.launch, found.outcome) if f.code not in _OF_DATA]
    if found.threads_interfered or any(f.code in _SEEN_BY_ALL for f in findings):
        raise Unproven("findings depend on all of them")
    rest = probes & {"nan", "touched"} | (frozenset(("across",)) if "races" in probes else frozenset[str]())
    left = after = None
    untried = 0
    program = found.launch.program
    shown_by_reruns = ("uninit" in probes and atomic_reads(program)) or ("bounds" in probes and shuffles(program))
    if rest or shown_by_reruns or (replay and findings):
        left, after = dispatch.run(rest, progress)
        of_all = explain(left, after)
        if any(f.code in _SEEN_BY_ALL for f in of_all):
            raise Unproven("findings depend on all of them")
        findings = [*(f for f in of_all if f.code in _OF_DATA), *findings]
        judged = _judged(dispatch, probes, left, after, findings, replay)
        findings, untried = judged.findings, judged.untried
    if "redundant" in probes:

        def representatives(
            probes: frozenset[str], progress: Progress = None, /, **changes: Unpack[Changes]
        ) -> tuple[Launch, Outcome]:
            changes["chosen"] = found.representatives
            return dispatch.run(probes, progress, **changes)

        findings += find_redundant(representatives, found.launch, partial(orders_atomics, dispatch))
    unwatched = found.outcome.unwatched + (0 if after is None else after.unwatched)
    coverage = replace(_coverage(found), unwatched=unwatched, untried_orders=untried)
    return Measured(found.launch, found.outcome, findings, coverage, left)


def _checked(dispatch: Dispatch, found: Measured, whole: Measured) -> Measured:
    """Return the result by classes, if it equals that of all workgroups."""
    if found.outcome.worked != whole.outcome.worked or _counted(dispatch, found) != _counted(dispatch, whole):
        raise Crash("workgroups of one class do not have the same counters")
    if not np.array_equal(found.outcome.by_workgroup, whole.outcome.by_workgroup):
        raise Crash("workgroups of one class do not execute the same")
    if found.findings != whole.findings:
        raise Crash("workgroups of one class do not have the same findings")
    return replace(found, coverage=replace(found.coverage, why=f"{found.coverage.why}; a run of all gives the same"))


def _counted(dispatch: Dispatch, measured: Measured) -> tuple[list[Site], list[Instructions]]:
    program, outcome = measured.launch.program, measured.outcome
    sites = site_counters(program, outcome.blocks, outcome.tallies, dispatch.lanes, dispatch.device.subgroup_size)
    return sites, count_instructions(program, outcome.blocks)


def _coverage(found: Classes) -> Coverage:
    launch, sizes = found.launch, found.sizes.tolist()
    classes = tuple((launch.workgroup(place), size) for place, size in enumerate(sizes))
    return Coverage("classes", sum(sizes), len(sizes), PROOF, classes)

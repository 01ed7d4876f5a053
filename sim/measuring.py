"""Running a dispatch for its counters and findings: every workgroup, one of each class, or a sample.

By classes, counters and all findings that hang on control flow and addresses come from one workgroup of each class
(`launch.classes` has the proof). What hangs on data, and what workgroups do to each other, is looked for in a run of
all of them, which counts nothing: numbers that are not finite, races in storage. So the result is that of a run of all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from .coverage import Coverage
from .dispatch import Dispatch
from .findings.barriers import find_redundant
from .findings.explain import explain
from .findings.finding import Finding
from .findings.replay import Judge
from .launch.classes import Classes
from .launch.launch import Launch, Outcome
from .program.likeness import Unproven

Progress = Callable[[int, int], None] | None

PROOF = "no branch and no address depends on data, and alike workgroups branch alike, at addresses whole lines apart"
_OF_DATA = frozenset(("not-finite", "division-by-zero", "shift-count", "conversion"))
_SEEN_BY_ALL = frozenset(("race", "uninit", "endless-loop"))  # what they say hangs on all workgroups
_NOT_BY_CLASSES = frozenset(("nan", "redundant"))


@dataclass(frozen=True)
class Measured:
    """`launch` and `outcome` hold the counters, `left` what a run of all workgroups has left, where there was one."""

    launch: Launch
    outcome: Outcome
    findings: list[Finding]
    coverage: Coverage
    left: Launch | None


def measure(dispatch: Dispatch, probes: frozenset[str], *, classes: bool, replay: bool, progress: Progress) -> Measured:
    """Run all workgroups that the dispatch has chosen, or, if `classes` is set and there is a proof, one of each."""
    why = ""
    if classes and probes:
        try:
            return _by_classes(dispatch, probes, replay, progress)
        except Unproven as reason:
            why = str(reason)
    launch, outcome = dispatch.run(probes, progress)
    findings = explain(launch, outcome)
    if outcome.finished == launch.count:
        if replay and findings:
            findings = Judge(dispatch.run, launch, outcome).judge(findings)
        if "redundant" in probes:
            findings += find_redundant(dispatch.run, launch)
    how = "all" if dispatch.how.chosen is None else "sample"
    return Measured(launch, outcome, findings, Coverage(how, int(np.prod(dispatch.grid)), launch.count, why), launch)


def _by_classes(dispatch: Dispatch, probes: frozenset[str], replay: bool, progress: Progress) -> Measured:
    found = dispatch.classes(probes - _NOT_BY_CLASSES)
    findings = explain(found.launch, found.outcome)
    if found.met or any(f.code in _SEEN_BY_ALL for f in findings):
        raise Unproven("what was found hangs on all of them")
    rest = (probes & {"nan"}) | ({"across"} if "races" in probes else set())
    left = after = None
    if rest or (replay and findings):
        left, after = dispatch.run(rest, progress)
        of_all = explain(left, after)
        if any(f.code in _SEEN_BY_ALL for f in of_all):
            raise Unproven("what was found hangs on all of them")
        findings = [*(f for f in of_all if f.code in _OF_DATA), *findings]
        if replay and findings:
            findings = Judge(dispatch.run, left, after).judge(findings)
    if "redundant" in probes:
        findings += find_redundant(partial(dispatch.run, chosen=found.representatives), found.launch)
    return Measured(found.launch, found.outcome, findings, _coverage(found), left)


def _coverage(found: Classes) -> Coverage:
    launch, sizes = found.launch, found.sizes.tolist()
    classes = tuple((launch.workgroup(place), size) for place, size in enumerate(sizes))
    return Coverage("classes", sum(sizes), len(sizes), PROOF, classes)

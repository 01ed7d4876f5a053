"""A dispatch without one of its barriers, for the question whether outputs depend on what it orders."""

from __future__ import annotations

from ..findings.atomic_order import find_order_dependence
from ..findings.replay import differences, rerun_budget
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.check.check_module import check
from ..wgsl.source import Source
from ..wgsl.text_edits import Replacement, replaced
from .dispatch import Dispatch


def orders_atomics(dispatch: Dispatch, barrier: SourceSite) -> bool:
    """Whether outputs depend on the order of atomic operations without this barrier, and did not with it."""
    launch, outcome = dispatch.run(frozenset())
    without = _without(dispatch, barrier, rerun_budget(launch, outcome))
    again, after = without.run(frozenset())
    if after.finished < outcome.finished or any(differences(launch.views(), again.views())):
        return True
    return not _unordered(without, again, after) <= _unordered(dispatch, launch, outcome)


def _without(dispatch: Dispatch, barrier: SourceSite, budget: int) -> Dispatch:
    """Return the dispatch of the text in which the barrier is an empty statement of the same length."""
    source, span = dispatch.pipeline.module.source, barrier.span
    nothing = "_ = 0".ljust(span.end - span.start)
    text = replaced(source.text, [Replacement(span.start, span.end, nothing)])
    return dispatch.of(check(Source(text, source.name), uniformity="off"), budget)


def _unordered(dispatch: Dispatch, launch: Launch, outcome: Outcome) -> set[tuple[int, int]]:
    """Return the places of the atomic operations on whose order outputs depend."""
    found = find_order_dependence(dispatch.run, lambda: dispatch.influence, launch, outcome, ()).findings
    return {(span.start, span.end) for finding in found for _, span in finding.spans}

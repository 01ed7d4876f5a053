"""Outputs that depend on what a shuffle reads from a lane that is inactive or outside the subgroup.

WGSL leaves that value open, so a run with poison values there shows whether an output depends on it.
"""

from __future__ import annotations

import re

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import NO_END, differences, rerun_budget
from .runner import Runner
from .table import INACTIVE_LANE

_SHUFFLES = re.compile(r"subgroup(Shuffle.*|Broadcast)|quad.*")  # subgroupBroadcastFirst reads active lanes only


def shuffles(program: Program) -> list[SourceSite]:
    """Return the places that read another lane, which may be inactive."""
    return [s for s in program.sites if s.kind == "subgroup" and _SHUFFLES.fullmatch(s.name or "")]


def find_inactive_lane_reads(run: Runner, launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return a finding for each shuffle whose inactive lanes affect an output. `launch` has finished."""
    sites = shuffles(launch.program)

    def changes(*chosen: SourceSite) -> list[str]:
        starts = frozenset(site.span.start for site in chosen)
        again, after = run(frozenset(), budget=rerun_budget(launch, outcome), poisoned=starts)
        if after.finished < outcome.finished:
            return [NO_END]
        return [changed for _, changed in differences(launch.views(), again.views())]

    if not sites or not changes(*sites):  # one run clears most dispatches
        return []
    return [_finding(site, launch, found) for site in sites if (found := changes(site))]


def _finding(site: SourceSite, launch: Launch, changes: list[str]) -> Finding:
    return INACTIVE_LANE.make(
        site.span,
        workgroup=launch.workgroup(0),
        notes=[Note(f"with other values there, {changed}") for changed in changes],
        verdict="harmful",
        operation=site.name or "",
    )

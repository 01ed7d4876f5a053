"""Outputs that depend on what a shuffle reads of a lane that is not active, or that its subgroup does not have: WGSL
says that any value may come of it. A run with strange numbers there tells."""

from __future__ import annotations

import re

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import Runner, differences

_SHUFFLES = re.compile(r"subgroup(Shuffle.*|Broadcast)|quad.*")  # subgroupBroadcastFirst asks the active lanes alone


def shuffles(program: Program) -> list[SourceSite]:
    """The places that read another lane, which may not be active."""
    return [s for s in program.sites if s.kind == "subgroup" and _SHUFFLES.fullmatch(s.name or "")]


def find_shuffled(run: Runner, launch: Launch, outcome: Outcome) -> list[Finding]:
    """One finding for each shuffle whose inactive lanes get to an output. `launch` has run to its end."""
    sites = shuffles(launch.program)

    def changes(*chosen: SourceSite) -> list[str]:
        starts = frozenset(site.span.start for site in chosen)
        again, after = run(frozenset(), budget=launch.how.budget, poisoned=starts)
        if after.finished < outcome.finished:
            return ["it does not come to an end"]
        return [changed for _, changed in differences(launch.outputs(), again.outputs())]

    if not sites or not changes(*sites):  # most do not, and one run says so
        return []
    return [_finding(site, launch, found) for site in sites if (found := changes(site))]


def _finding(site: SourceSite, launch: Launch, changes: list[str]) -> Finding:
    return Finding(
        "inactive-lane",
        "warning",
        f"this {site.name} reads a lane that is not active, or that is none of the subgroup",
        site.span,
        1,
        launch.workgroup(0),
        (),
        notes=tuple(Note(f"with other values there, {changed}") for changed in changes),
        hint="any value may come of it; use it only where that lane is known to take part",
        verdict="harmful",
    )

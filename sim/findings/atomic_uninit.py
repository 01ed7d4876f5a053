"""Atomic operations that read workgroup memory before it is written, found by runs with other bits there.

Plain loads are checked one by one as they run. Most atomic operations store as well, so that the next one finds a value
there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import FILLINGS, NO_END, differences, rerun_budget
from .runner import Runner
from .table import UNINIT

_LOADS = ("atomicLoad", "workgroupUniformLoad")


def atomic_reads(program: Program) -> list[SourceSite]:
    """Return the atomic operations on workgroup memory whose result depends on what it holds."""
    return [s for s in program.sites if s.kind == "atomic" and s.space == "workgroup" and s.name != "atomicStore"]


def find_unwritten_atomics(run: Runner, launch: Launch, outcome: Outcome, others: Iterable[Finding]) -> list[Finding]:
    """Return at most one finding for a dispatch.

    `launch` has finished; `others` are its findings, with verdicts. A finding of a load was decided by the same reruns,
    which change nothing, or what the load explains.
    """
    sites = atomic_reads(launch.program)
    if not sites or any(each.code == UNINIT.code for each in others):
        return []
    for words, filling in FILLINGS.items():
        again, after = run(frozenset(), budget=rerun_budget(launch, outcome), filling=filling)
        changes = [changed for _, changed in differences(launch.outputs(), again.outputs())]
        if after.finished < outcome.finished:
            changes = [NO_END]
        if changes:
            return [_finding(sites, launch, [f"with {words} there, {changed}" for changed in changes])]
    return []


def _finding(sites: list[SourceSite], launch: Launch, changes: list[str]) -> Finding:
    """Make the finding. `changes`: what other bits change, in words."""
    first, *more = sorted(sites, key=lambda site: site.span.start)
    does = "reads" if first.name in _LOADS else "updates"
    return UNINIT.make(
        first.span,
        workgroup=launch.workgroup(0),
        notes=(*(Note(f"or this {s.name} of {s.variable}", s.span) for s in more), *map(Note, changes)),
        verdict="harmful",
        access=f"this {first.name} {does} {first.variable}",
    )

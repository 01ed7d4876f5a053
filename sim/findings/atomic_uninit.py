"""Atomic operations that update workgroup memory before it is written, found by a run with other bits there.

Loads are checked one by one as they run. An atomic operation stores as well, so that the next one finds a value there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import NO_END, POISON, Runner, differences, rerun_budget
from .table import UNINIT

_NO_UPDATE = ("atomicStore", "atomicLoad", "workgroupUniformLoad")  # only store, or only load


def atomic_updates(program: Program) -> list[SourceSite]:
    """Return the atomic operations on workgroup memory whose result depends on what it holds."""
    return [s for s in program.sites if s.kind == "atomic" and s.space == "workgroup" and s.name not in _NO_UPDATE]


def find_unwritten_atomics(run: Runner, launch: Launch, outcome: Outcome, others: Iterable[Finding]) -> list[Finding]:
    """Return at most one finding for a dispatch.

    `launch` has finished; `others` are its findings: where unwritten memory that is loaded explains the change, atomic
    operations are not to blame.
    """
    sites = atomic_updates(launch.program)
    if not sites or any(each.code == UNINIT.code and each.verdict == "harmful" for each in others):
        return []
    again, after = run(frozenset(), budget=rerun_budget(launch, outcome), filling=POISON)
    changes = [changed for _, changed in differences(launch.outputs(), again.outputs())]
    if after.finished < outcome.finished:
        changes = [NO_END]
    if not changes:
        return []
    first, *more = sorted(sites, key=lambda site: site.span.start)
    return [
        UNINIT.make(
            first.span,
            workgroup=launch.workgroup(0),
            notes=(
                *(Note(f"or this {s.name} of {s.variable}", s.span) for s in more),
                *(Note(f"with other bits there, {changed}") for changed in changes),
            ),
            verdict="harmful",
            access=f"this {first.name} updates {first.variable}",
        )
    ]

"""Atomic operations on workgroup memory that nobody has stored to: a run with other bits there tells.

Loads are looked at one by one; an atomic operation stores as well, so that the next finds something there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .races import UNSTORED
from .replay import POISON, Runner, differences

_ONLY_STORE = ("atomicStore", "atomicLoad", "workgroupUniformLoad")  # or only load


def updates(program: Program) -> list[SourceSite]:
    """The atomic operations that make of what workgroup memory holds something else."""
    return [s for s in program.sites if s.kind == "atomic" and s.space == "workgroup" and s.name not in _ONLY_STORE]


def find_unstored(run: Runner, launch: Launch, outcome: Outcome, others: Iterable[Finding]) -> list[Finding]:
    """One finding for a dispatch. `launch` has run to its end; `others` were found there: where loads of what nobody
    stored explain what changes, atomic operations are not to blame."""
    sites = updates(launch.program)
    if not sites or any(each.code == "uninit" and each.verdict == "harmful" for each in others):
        return []
    again, after = run(frozenset(), budget=launch.how.budget, filling=POISON)
    changes = [changed for _, changed in differences(launch.outputs(), again.outputs())]
    if after.finished < outcome.finished:
        changes = ["it does not come to an end"]
    if not changes:
        return []
    first, *more = sorted(sites, key=lambda site: site.span.start)
    return [
        Finding(
            "uninit",
            "warning",
            f"this {first.name} works on {first.variable}, which nobody has stored to",
            first.span,
            1,
            launch.workgroup(0),
            (),
            notes=(
                *(Note(f"or this {s.name} on {s.variable}", s.span) for s in more),
                *(Note(f"with other bits there, {changed}") for changed in changes),
            ),
            hint=UNSTORED,
            verdict="harmful",
        )
    ]

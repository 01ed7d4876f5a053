"""Atomic operations that read workgroup memory before it is written, found by runs with other bits there.

Plain loads are checked one by one as they run. Most atomic operations store as well, so that the next one finds a value
there. So the atomics of one variable are one finding.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..codegen.program import Program
from ..ir.sites import SourceSite
from ..launch.launch import Filling, Launch
from ..launch.partition import Outcome
from ..wgsl.diagnostics import Note
from .finding import Finding
from .replay import NO_END, differences, rerun_budget
from .runner import Runner
from .table import UNINIT
from .unwritten_memory import FILLINGS, atomics_of, filled

_LOADS = ("atomicLoad", "workgroupUniformLoad")


def atomic_reads(program: Program) -> list[SourceSite]:
    """Return the atomic operations on workgroup memory whose result depends on what it holds."""
    return [s for s in program.sites if s.kind == "atomic" and s.space == "workgroup" and s.name != "atomicStore"]


def find_unwritten_atomics(run: Runner, launch: Launch, outcome: Outcome) -> list[Finding]:
    """Return a finding for each variable whose atomics decide what outputs hold. `launch` has finished."""
    sites: dict[str, list[SourceSite]] = {}
    for site in atomic_reads(launch.program):
        sites.setdefault(site.variable or "", []).append(site)

    def changes(fillings: Iterable[tuple[str, Filling]]) -> list[str]:
        """Say what the first filling changes that changes anything."""
        for words, filling in fillings:
            again, after = run(frozenset(), budget=rerun_budget(launch, outcome), filling=filling)
            changed = [words for _, words in differences(launch.views(), again.views())]
            if after.finished < outcome.finished:
                changed = [NO_END]
            if changed:
                return [f"with {words} there, {each}" for each in changed]
        return []

    if len(sites) > 1 and not changes(FILLINGS.items()):  # these runs clear most dispatches
        return []
    found = {name: changes(filled(*atomics_of(name, launch))) for name in sites}
    return [_finding(sites[name], launch, each) for name, each in found.items() if each]


def _finding(sites: list[SourceSite], launch: Launch, changes: list[str]) -> Finding:
    """Make the finding of a variable. `changes`: what other bits change, in words."""
    first, *more = sorted(sites, key=lambda site: site.span.start)
    does = "reads" if first.name in _LOADS else "updates"
    return UNINIT.make(
        first.span,
        workgroup=launch.workgroup(0),
        notes=(*(Note(f"or this {s.name} of {s.variable}", s.span) for s in more), *map(Note, changes)),
        verdict="harmful",
        access=f"this {first.name} {does} {first.variable}",
    )

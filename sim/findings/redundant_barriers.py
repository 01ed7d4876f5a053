"""Barriers that a run does not need: the run is repeated for each, with that barrier ordering nothing.

The machine notes whether any access needed it; see `machine.ordering`. A barrier that orders only atomic operations is
needed if outputs depend on their order without it, which a run of the text without it shows.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.sites import SourceSite
from ..launch.launch import Launch
from ..machine import layout as at
from .finding import Finding
from .runner import Runner
from .table import REDUNDANT_BARRIER

_ALL, _PLAIN = frozenset(("order",)), frozenset(("order", "plain"))


def find_redundant(run: Runner, launch: Launch, orders_atomics: Callable[[SourceSite], bool]) -> list[Finding]:
    """Return a finding for each barrier that was passed, and that nothing in this run needs.

    `orders_atomics` tells whether outputs depend on the order of atomic operations without a barrier.
    """
    findings: list[Finding] = []
    # The two barriers of a workgroupUniformLoad cannot be removed.
    barriers = [s for s in launch.program.sites if s.kind == "barrier" and (s.name or "").endswith("Barrier")]
    reached = _reached(run) if barriers else set[SourceSite]()
    for site in barriers:
        if site not in reached:
            continue
        if not _is_needed(run, _ALL, site):
            why = f"no accesses to {site.space} memory race without it"
        elif not _is_needed(run, _PLAIN, site) and not orders_atomics(site):
            why = "it separates only atomic operations, and no output changes in other orders without it"
        else:
            continue
        findings.append(REDUNDANT_BARRIER.make(site.span, barrier=site.name or "", why=why))
    return findings


def _is_needed(run: Runner, probes: frozenset[str], site: SourceSite) -> bool:
    return bool(run(probes, ignored=site)[1].races[at.HEADER, at.BARRIER_NEEDED])


def _reached(run: Runner) -> set[SourceSite]:
    launch, outcome = run(frozenset(("lanes",)))
    blocks = zip(launch.program.block_sites, outcome.blocks, strict=False)
    return {launch.program.sites[number] for sites, counts in blocks if counts[at.EXECUTIONS] for number in sites}

"""Barriers that a run does not need: the run is repeated for each, with that barrier ordering nothing.

The machine notes whether any access needed it; see `machine.ordering`.
"""

from __future__ import annotations

from ..launch.launch import Launch
from ..machine import layout as at
from .finding import Finding
from .runner import Runner
from .table import REDUNDANT_BARRIER

_PROBES = frozenset(("order",))


def find_redundant(run: Runner, launch: Launch) -> list[Finding]:
    """Return a finding for each barrier that was passed, and that nothing in this run needs."""
    findings: list[Finding] = []
    for site in launch.program.sites:
        # The two barriers of a workgroupUniformLoad cannot be removed.
        if site.kind != "barrier" or not (site.name or "").endswith("Barrier"):
            continue
        counts = run(_PROBES, ignored=site)[1].races[at.HEADER]
        if counts[at.BARRIER_PASSED] and not counts[at.BARRIER_NEEDED]:
            findings.append(REDUNDANT_BARRIER.make(site.span, barrier=site.name or "", space=site.space or ""))
    return findings

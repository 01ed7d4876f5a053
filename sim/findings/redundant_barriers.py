"""Barriers that a run does without: each in turn is taken to order nothing, and the run is watched for what it ordered.

The machine's part is `machine.ordering`.
"""

from __future__ import annotations

from collections.abc import Callable

from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..machine import layout as at
from .finding import Finding

Runner = Callable[..., tuple[Launch, Outcome]]
_PROBES = frozenset(("order",))


def find_redundant(run: Runner, launch: Launch) -> list[Finding]:
    """One finding for each barrier that nothing in this run needs."""
    findings = []
    for site in launch.program.sites:
        # The two of a workgroupUniformLoad cannot be left out.
        if site.kind != "barrier" or not (site.name or "").endswith("Barrier"):
            continue
        if not run(_PROBES, ignored=site)[1].races[0, at.NEEDED]:
            findings.append(
                Finding(
                    "redundant-barrier",
                    "info",
                    f"this {site.name} orders nothing in this run: no word of {site.space} memory that one invocation "
                    "stores to and another touches is kept in order by it alone",
                    site.span,
                    1,
                    (0, 0, 0),
                    (),
                    hint="try it with other sizes before you take it out; of several, take out one at a time",
                )
            )
    return findings

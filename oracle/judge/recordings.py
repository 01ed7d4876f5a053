"""Recordings of an audited case, for reports that draw them: accesses with bank conflicts, and a timeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from ..gpu_counters.bank_conflicts import Access, worst_accesses
from ..gpu_counters.timeline import Timeline, record_timeline
from ..manifests.manifest import Case

if TYPE_CHECKING:
    from ...sim import Run


@frozen
class Recordings:
    """`accesses` are those with the worst bank conflicts; `reason` says why none were recorded. `timeline` is that of
    the first workgroup, if the kernel has barriers and takes probes."""

    accesses: tuple[Access, ...] = ()
    reason: str = ""
    timeline: Timeline | None = None


def record_case(case: Case, run: Run) -> Recordings:
    """Run the kernel of `run`, which is one of `case`, again with probes in its text."""
    accesses, reason, timeline = (), "", None
    try:
        accesses = worst_accesses(case, run)
    except UsageError as error:
        reason = str(error)
    if any(site.kind == "barrier" for site in run.sites):
        try:
            timeline = record_timeline(case, run)
        except UsageError:  # the kernel takes no probes
            timeline = None
    return Recordings(accesses, reason, timeline)

"""The verdict on a case: all checks of one audit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from .. import wgpu_client as gpu
from ..diagnosis.causes import OF_FINDINGS
from ..goldens import golden_store as goldens
from ..manifests.manifest import Case
from .counter_checks import CounterCheck, LimitCheck, counter_checks, limit_checks
from .device_comparison import Charged
from .output_checks import OutputCheck
from .recordings import Recordings

if TYPE_CHECKING:
    from ...sim import Finding, Run


@frozen
class FindingCheck:
    """A finding of the run. `allowed`: the manifest accepts it. One of severity info never fails a kernel."""

    finding: Finding
    allowed: bool

    @property
    def ok(self) -> bool:
        return self.allowed or self.finding.severity == "info"


def finding_checks(case: Case, run: Run) -> tuple[FindingCheck, ...]:
    return tuple(FindingCheck(finding, finding.code in case.kernel.allow) for finding in run.findings)


@frozen
class Audit:
    """The result of one audit of a case. `device`: the profile that was charged; `devices`: several, side by side.
    `adapters`: those on which wgpu ran. `seconds`: by step."""

    case: Case
    device: str
    run: Run
    outputs: tuple[OutputCheck, ...]
    counters: tuple[CounterCheck, ...]
    limits: tuple[LimitCheck, ...]
    findings: tuple[FindingCheck, ...]
    adapters: tuple[gpu.AdapterInfo, ...]
    notes: tuple[str, ...]
    seconds: dict[str, float]
    devices: tuple[Charged, ...] = ()
    golden: goldens.Verdict | None = None
    recordings: Recordings | None = None

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        checks = (*self.outputs, *self.counters, *self.limits, *self.findings, *([self.golden] if self.golden else []))
        return all(check.ok for check in checks)

    @property
    def subgroup_size(self) -> int:
        return self.run.device.subgroup_size

    @property
    def adapter(self) -> gpu.AdapterInfo | None:
        """The first adapter."""
        return self.adapters[0] if self.adapters else None

    @property
    def likely(self) -> tuple[str, ...]:
        """The classes of likely causes, of outputs, then of findings, then of the golden."""
        causes = [check.likely.name for check in self.outputs if check.likely]
        causes += [OF_FINDINGS.get(code, code) for code in (f.finding.code for f in self.findings if not f.ok)]
        causes += [self.golden.likely.name] if self.golden and self.golden.likely else []
        return tuple(dict.fromkeys(causes))

    def noting(self, notes: Iterable[str]) -> Audit:
        """Return a copy with more notes."""
        return replace(self, notes=(*self.notes, *notes))


def judged_as(audit: Audit, charged: Charged) -> Audit:
    """Judge the same run as charged for another device: by that device's limits, and its counters by the manifest."""
    case, pipeline = audit.case, audit.run.pipeline
    return replace(
        audit,
        device=charged.device.name,
        counters=counter_checks(case, charged.counters),
        limits=limit_checks(case, pipeline, charged.device),
    )

"""The verdict on a case: all checks of one audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from ...sim.fast_dataclass import frozen
from .. import wgpu_client as gpu
from ..diagnosis.causes import OF_FINDINGS
from ..goldens import golden_store as goldens
from ..manifests.manifest import PREDICTED_US_MAX, Case
from .counter_checks import CounterCheck, LimitCheck, counter_checks, limit_checks
from .coverage import COUNTERS, GOLDEN, NO_OUTPUT, CaseOutcome, Compared, Coverage, is_bare
from .device_comparison import Charged
from .options import SEVERITIES
from .output_checks import OutputCheck
from .recordings import Recordings
from .time_check import TimeCheck

if TYPE_CHECKING:
    from ...sim import Finding, Run


@frozen
class FindingCheck:
    """A finding of the run. `allowed`: the manifest accepts it. `fail_on`: the least severity that fails a kernel."""

    finding: Finding
    allowed: bool
    fail_on: str = "warning"

    @property
    def ok(self) -> bool:
        return self.allowed or SEVERITIES.index(self.finding.severity) > SEVERITIES.index(self.fail_on)


def finding_checks(case: Case, found: Iterable[Finding], fail_on: str = "warning") -> tuple[FindingCheck, ...]:
    return tuple(FindingCheck(finding, finding.code in case.kernel.allow, fail_on) for finding in found)


@frozen
class Audit:
    """The result of one audit of a case. `device`: the profile that was charged; `devices`: several, side by side.
    `adapters`: those on which wgpu ran. `seconds`: by step. `coverage`: what the checks could have rejected.
    `not_compared`: comparisons that were not made, with the reason. `stopped`: the run was ended before its end, so
    that it has no outputs. `times`: on adapters, where they were asked for; they are no part of the verdict.
    `predicted`: the predicted time against the manifest's bound, where there is one."""

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
    coverage: Coverage = Coverage()
    not_compared: tuple[str, ...] = ()
    stopped: bool = False
    times: tuple[gpu.Timing, ...] = ()
    predicted: TimeCheck | None = None

    @property
    def differs(self) -> bool:
        """Whether a check failed."""
        golden = self.golden is not None and self.golden.differs
        outputs = any(not check.comparison.ok for check in self.outputs)
        slow = self.predicted is not None and not self.predicted.ok
        checks = (*self.counters, *self.limits, *self.findings)
        return golden or outputs or slow or not all(check.ok for check in checks)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What nothing could have failed, in words, if that counts against the case."""
        return tuple(self._unchecked())

    def _unchecked(self) -> Iterator[str]:
        if self.stopped:
            yield "the run was stopped, so that it has no outputs to compare"
            return
        if is_bare(self.case):
            if any(check.outcome is CaseOutcome.UNCHECKED and check.comparison.vacuous for check in self.outputs):
                yield from self.coverage.left_words
            return
        yield from self.coverage.left_words
        if not self.coverage.outputs and not self.coverage.counters:
            yield NO_OUTPUT
        if missing := len(self.case.kernel.counters) - self.coverage.counters:
            yield f"{COUNTERS}: {missing} not compared"
        if self.case.kernel.predicted_us_max is not None and self.predicted is None:
            yield f"{PREDICTED_US_MAX}: not compared"
        if self.golden is not None and self.golden.unchecked:
            yield f"{GOLDEN}: {self.golden.advice}"

    @property
    def outcome(self) -> CaseOutcome:
        if self.differs:
            return CaseOutcome.FAILED
        return CaseOutcome.UNCHECKED if self.unchecked else CaseOutcome.CLEAN

    @property
    def ok(self) -> bool:
        """Whether the outcome is clean."""
        return self.outcome.ok

    @property
    def compared(self) -> Compared:
        """What the last line of a command says about the case."""
        excused = sum(each.unchecked > 0 and not each.left for each in self.coverage.outputs)
        return Compared(self.coverage.truths, self.not_compared, excused, is_bare(self.case))

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
        predicted=audit.predicted if charged.device.name == audit.device else None,
        limits=limit_checks(case, pipeline, charged.device),
    )

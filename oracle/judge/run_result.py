"""The result of `bankshot run`: one simulated run of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...sim.fast_dataclass import frozen
from ..manifests.manifest import Case
from .case_run import endless
from .coverage import CaseOutcome, Compared, is_bare
from .device_comparison import Charged

if TYPE_CHECKING:
    from ...sim import Run, Trace


@frozen
class RunResult:
    """One simulated run. `changed` summarizes the bindings that the run wrote to. `devices`: several side by side.
    `schedule`: the order that outputs come from."""

    case: Case
    device: str
    run: Run
    changed: dict[str, dict[str, Any]]
    trace: Trace | None = None  # as requested
    devices: tuple[Charged, ...] = ()
    schedule: str = "lockstep"

    @property
    def ok(self) -> bool:
        """Whether the run ended, and has no finding that counts against the kernel."""
        return self.outcome is CaseOutcome.UNCHECKED and not endless(self.run)

    @property
    def outcome(self) -> CaseOutcome:
        """Unchecked at best, as outputs are compared with nothing."""
        accepted = (f.severity == "info" or f.code in self.case.kernel.allow for f in self.run.findings)
        return CaseOutcome.UNCHECKED if all(accepted) else CaseOutcome.FAILED

    @property
    def compared(self) -> Compared:
        return Compared(bare=is_bare(self.case))

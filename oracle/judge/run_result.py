"""The result of `bankshot run`: one simulated run of a case."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...sim.fast_dataclass import frozen
from ..manifests.manifest import Case
from .device_comparison import Charged

if TYPE_CHECKING:
    from ...sim import Run, Trace


@frozen
class RunResult:
    """`changed` summarizes the bindings that the run wrote to. `devices`: several side by side."""

    case: Case
    device: str
    run: Run
    changed: dict[str, dict[str, Any]]
    trace: Trace | None = None  # as requested
    devices: tuple[Charged, ...] = ()

    @property
    def ok(self) -> bool:
        return all(f.severity == "info" or f.code in self.case.kernel.allow for f in self.run.findings)

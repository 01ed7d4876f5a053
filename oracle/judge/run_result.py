"""What `bankshot run` shows: one simulated run of a case."""

from __future__ import annotations

from typing import Any

from ...sim.fast_dataclass import frozen
from ..manifests.manifest import Case
from .device_comparison import Charged


@frozen
class RunResult:
    """`changed` summarizes the bindings that the run wrote to. `devices`: several side by side."""

    case: Case
    device: str
    run: Any  # bankshot.Run
    changed: dict[str, dict[str, Any]]
    trace: Any = None  # bankshot.Trace that was asked for
    devices: tuple[Charged, ...] = ()

    @property
    def ok(self) -> bool:
        return all(f.severity == "info" or f.code in self.case.kernel.allow for f in self.run.findings)

"""Bankshot's simulator: runs WGSL compute shaders on the CPU, exactly, and counts what a GPU would pay.

module = sim.check(wgsl)                      # a typed module; raises sim.WgslError
run = sim.simulate(wgsl, grid=(12, 8, 1), bindings={"X": x, "Y": y, "dims": (512, 768, 768, 0)})
run.outputs["Y"], run.counters, run.sites, run.findings
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .bindings.samplers import Sampler
from .checking import check, portability
from .findings.finding import Finding
from .models import Device, devices
from .wgsl.diagnostics import Crash, Diagnostic, Note, WgslError

if TYPE_CHECKING:
    from .launch.tracing import Trace, TraceRow
    from .running import PROBES, Run, simulate

__version__ = "0.1.0"
__all__ = [
    "PROBES",
    "Crash",
    "Device",
    "Diagnostic",
    "Finding",
    "Note",
    "Run",
    "Sampler",
    "Trace",
    "TraceRow",
    "WgslError",
    "check",
    "devices",
    "portability",
    "simulate",
]

_LATE = ("PROBES", "Run", "Trace", "TraceRow", "simulate")


def __getattr__(name: str) -> Any:
    # The machine brings Numba, which takes half a second that checking a shader need not pay.
    if name in _LATE:
        from . import running as module

        for each in _LATE:
            globals()[each] = getattr(module, each)
        return globals()[name]
    raise AttributeError(f"module 'sim' has no attribute {name!r}")

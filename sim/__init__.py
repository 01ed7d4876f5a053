"""Bankshot's simulator: runs WGSL compute shaders on the CPU, exactly, and counts what a GPU would pay.

module = sim.check(wgsl)                      # a typed module; raises sim.WgslError
run = sim.simulate(wgsl, grid=(12, 8, 1), bindings={"X": x, "Y": y, "dims": (512, 768, 768, 0)})
run.outputs["Y"], run.counters, run.sites, run.findings
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bindings.samplers import Sampler
    from .checking import check, portability
    from .findings.finding import Finding
    from .launch.tracing import Trace, TraceRow
    from .models import Device, devices
    from .running import PROBES, Run, simulate
    from .wgsl.diagnostics import Crash, Diagnostic, Note, WgslError

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

# Where each name is from, which is imported when it is asked for: who wants a small part of this is not to wait for
# NumPy, nor who checks a shader for the machine.
_FROM = {
    **dict.fromkeys(("PROBES", "Run", "simulate"), "running"),
    **dict.fromkeys(("Trace", "TraceRow"), "launch.tracing"),
    **dict.fromkeys(("check", "portability"), "checking"),
    **dict.fromkeys(("Device", "devices"), "models"),
    **dict.fromkeys(("Crash", "Diagnostic", "Note", "WgslError"), "wgsl.diagnostics"),
    "Finding": "findings.finding",
    "Sampler": "bindings.samplers",
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module 'sim' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f".{_FROM[name]}", __name__), name)
    return found

"""From WGSL text to outputs, counters and findings. Imports neither wgpu nor `oracle`; `README.md` has the map.

The names in `__all__` are imported on first use, so that checking a shader loads neither NumPy nor the machine.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if __name__ != "bankshot.sim":  # a second copy of its classes would not be equal to the first
    raise ImportError("import it as bankshot.sim")

if TYPE_CHECKING:
    from .bindings.samplers import Sampler
    from .explore.exploration import Exploration, Outcome
    from .explore.verdicts import Progress
    from .explore.witness import Move
    from .findings.finding import Finding
    from .front_end import check, portability
    from .launch.tracing import Trace, TraceRow
    from .models import Device, devices
    from .run.prepared import PROBES, Prepared, prepare
    from .run.result import Run
    from .run.schedule_sweep import Agreement, Schedules
    from .run.simulate import simulate
    from .run.site import Site
    from .wgsl.diagnostics import Crash, Diagnostic, Note, WgslError
    from .wgsl.typed import Module

__version__ = "0.1.0"
__all__ = [
    "PROBES",
    "Agreement",
    "Crash",
    "Device",
    "Diagnostic",
    "Exploration",
    "Finding",
    "Module",
    "Move",
    "Note",
    "Outcome",
    "Prepared",
    "Progress",
    "Run",
    "Sampler",
    "Schedules",
    "Site",
    "Trace",
    "TraceRow",
    "WgslError",
    "check",
    "devices",
    "portability",
    "prepare",
    "simulate",
]

# The module that defines each name.
_MODULES = {
    **dict.fromkeys(("PROBES", "Prepared", "prepare"), "run.prepared"),
    **dict.fromkeys(("Trace", "TraceRow"), "launch.tracing"),
    **dict.fromkeys(("check", "portability"), "front_end"),
    **dict.fromkeys(("Device", "devices"), "models"),
    **dict.fromkeys(("Crash", "Diagnostic", "Note", "WgslError"), "wgsl.diagnostics"),
    **dict.fromkeys(("Exploration", "Outcome"), "explore.exploration"),
    **dict.fromkeys(("Agreement", "Schedules"), "run.schedule_sweep"),
    "Finding": "findings.finding",
    "Module": "wgsl.typed",
    "Move": "explore.witness",
    "Progress": "explore.verdicts",
    "Run": "run.result",
    "Sampler": "bindings.samplers",
    "Site": "run.site",
    "simulate": "run.simulate",
}

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> object:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f".{_MODULES[name]}", __name__)
        found = globals()[name] = getattr(module, name)
        return found

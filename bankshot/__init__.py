"""Run WGSL compute shaders on the CPU, bit for bit, and count what they cost on a GPU.

    module = bankshot.check(wgsl)  # a typed module; raises bankshot.WgslError
    run = bankshot.simulate(wgsl, grid=(12, 8, 1), bindings={"X": x, "Y": y, "dims": (512, 768, 768, 0)})
    run.outputs["Y"], run.counters, run.sites, run.findings

The names in `__all__`, `bankshot.testing`, `bankshot.oracle.audit` and `bankshot.oracle.sweep` are the public
interface. Everything else is internal and may change in any release.
"""

from __future__ import annotations

import os.path
import sys

# `python -m bankshot` lets imports find files of the current folder first, where kernels may lie beside a `json.py`.
# Where that folder holds this package, its files are Bankshot's own.
if (
    sys.argv[:1] == ["-m"]
    and {"bankshot", "-mbankshot"} & {*sys.orig_argv}
    and sys.path[0] == os.getcwd() != os.path.dirname(__path__[0])
    and not sys.flags.safe_path
):
    del sys.path[0]

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # absolute, so that type checkers find the same files as for `import bankshot.sim`
    from bankshot.oracle.errors import UsageError
    from bankshot.oracle.from_python import compute_with_buffers, run_manifest
    from bankshot.sim import (
        PROBES,
        Agreement,
        Crash,
        Device,
        Diagnostic,
        Exploration,
        Finding,
        Module,
        Move,
        Note,
        Outcome,
        Prepared,
        Progress,
        Run,
        Sampler,
        Schedules,
        Site,
        Trace,
        TraceRow,
        WgslError,
        check,
        devices,
        portability,
        prepare,
        simulate,
    )
    from bankshot.sim.explore.exploration import explore

# A wheel has `sim` and `oracle` inside this folder; in a checkout they lie beside it.
if not os.path.isdir(os.path.join(__path__[0], "sim")):
    __path__.append(os.path.dirname(__path__[0]))

from bankshot.sim import __version__

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
    "UsageError",
    "WgslError",
    "__version__",
    "check",
    "compute_with_buffers",
    "devices",
    "explore",
    "portability",
    "prepare",
    "run_manifest",
    "simulate",
]

if not TYPE_CHECKING:  # a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name on first use: `import bankshot` alone takes milliseconds."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name == "UsageError":
            from .oracle.errors import UsageError as found
        elif name == "explore":  # the name of a folder in `sim`
            from .sim.explore.exploration import explore as found
        elif name in ("compute_with_buffers", "run_manifest"):
            from .oracle import from_python

            found = getattr(from_python, name)
        else:
            from . import sim

            found = getattr(sim, name)
        globals()[name] = found
        return found

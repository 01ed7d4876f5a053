"""Runs of the kernels in `shaders/`, for notebooks: what `reports.figures` draws.

Each function takes a manifest in `shaders/`, a kernel of it, and sizes: `ran("matmul.toml", "matmul", M=64)`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from .advise.layout_search import Advice, Options, advise
from .gpu_counters.access_trace import Trace, trace
from .gpu_counters.timeline import Timeline, sizes_of, timeline
from .judge.case_run import simulate
from .manifests import manifest_loader
from .manifests.manifest import LARGEST, Case

if TYPE_CHECKING:
    from ..sim import Run

SHADERS = Path(__file__).parents[1] / "shaders"


def case(path: str, kernel: str | None = None, overrides: Mapping[str, int] | None = None, **dims: int) -> Case:
    """A kernel at some sizes: `case("matmul.toml", "matmul", M=64, overrides={"TK_PAD": 16})`."""
    found = manifest_loader.load(SHADERS / path, kernel)
    found = replace(found, overrides={**found.overrides, **(overrides or {})})
    return found.case(found.shape(dims))


def ran(path: str, kernel: str | None = None, overrides: Mapping[str, int] | None = None, **dims: int) -> Run:
    """The run of a case, with all counters."""
    return simulate(case(path, kernel, overrides, **dims), "nvidia", "all")


def traced(path: str, kernel: str | None = None, overrides: Mapping[str, int] | None = None, **dims: int) -> Trace:
    """The trace of the first workgroup of a case."""
    return trace(case(path, kernel, overrides, **dims))


def advised(array: str, pitches: tuple[int, int], path: str, kernel: str | None = None, **dims: int) -> Advice:
    """What `bankshot advise` reports for one array of a case, for pitches from the first to the second, whatever memory
    they take."""
    options = Options(array=array, values=pitches, most_bytes=LARGEST)
    return advise(case(path, kernel, None, **dims), options).advice[0]


def timeline_of(one: Trace, slots: Mapping[str, int]) -> Timeline:
    """The timeline of a trace. `slots`: into how many slots of equal size each array is divided."""
    return timeline(one.requests, sizes_of(one.run.pipeline), slots)

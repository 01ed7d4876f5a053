"""Runs of the kernels in `shaders/`, and of your own, for notebooks: what `reports.figures` draws.

Most functions take a manifest in `shaders/`, a kernel of it, and sizes: `ran("matmul.toml", "matmul", M=64)`. `own`
takes a text.
"""

from __future__ import annotations

import atexit
import csv
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any

from .advise.advice import Advice
from .advise.layout_search import Options, advise
from .errors import UsageError
from .gpu_counters.access_trace import Trace, trace
from .gpu_counters.timeline import Timeline, sizes_of, timeline
from .judge.case_run import simulate
from .manifests import manifest_loader
from .manifests.manifest import LARGEST, Case, Kernel, Shape
from .manifests.reflection import source_of

if TYPE_CHECKING:
    from ..sim import Run

SHADERS = Path(__file__).parents[1] / "shaders"


def case(path: str, kernel: str | None = None, overrides: Mapping[str, int] | None = None, **dims: int) -> Case:
    """A kernel at some sizes: `case("matmul.toml", "matmul", M=64, overrides={"TK_PAD": 16})`."""
    found = manifest_loader.load(SHADERS / path, kernel)
    found = replace(found, overrides={**found.overrides, **(overrides or {})})
    return found.case(found.shape(dims))


def edited(one: Case, edits: Sequence[tuple[str, str]]) -> Case:
    """The case with parts of its text, after preprocessing, replaced. Raises `UsageError` for a part that it lacks."""
    text = source_of(one.kernel).text
    for old, new in edits:
        if old not in text:
            raise UsageError(f"{one.kernel.name} has no text `{old}`")
        text = text.replace(old, new)
    return replace(one, kernel=replace(one.kernel, source=_file(text), preprocess=None))


def own(text: str, grid: tuple[int, ...], **arrays: Any) -> Case:
    """A case of your own kernel: its text, with one entry point, the workgroups, and an array for each binding."""
    path = _file(text)
    return Case(Kernel(path, "own", path, None, {}, grid, (), ()), Shape({}), (*grid, 1, 1)[:3], arrays)


def _file(text: str) -> Path:
    """A file with this text, until the program ends."""
    folder = mkdtemp(prefix="bankshot-")
    atexit.register(rmtree, folder, ignore_errors=True)
    path = Path(folder) / "kernel.wgsl"
    path.write_text(text, encoding="utf-8")
    return path


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


def counted(one: Case) -> Run:
    """The run of a case that you have made, with all counters."""
    return simulate(one, "nvidia", "all")


def rates(tables: str, device: str, case: str, flops: float) -> dict[str, float]:
    """The rate in FLOP/s of each kernel that tables have the time of, at one case of `flops` operations.

    `tables`: CSV files of this checkout, `tests/hardware/times_*.csv`, with columns device, kernel, case and median_us.
    `device`: part of the device's name. `case` as the tables have it: `M=64 K=64 N=64`.
    """
    found: dict[str, float] = {}
    for path in sorted(SHADERS.parent.glob(tables)):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["case"] == case and device.lower() in row["device"].lower():
                    found[row["kernel"]] = flops / (float(row["median_us"]) * 1e-6)
    return found


def timeline_of(one: Trace, slots: Mapping[str, int]) -> Timeline:
    """The timeline of a trace. `slots`: into how many slots of equal size each array is divided."""
    return timeline(one.requests, sizes_of(one.run.pipeline), slots)

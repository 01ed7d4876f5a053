"""`bankshot run`: one simulated run, its outputs in short, its totals and findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import UsageError
from ..gpu_counters.timeline import record_timeline
from ..judge.case_run import Say, side_by_side, simulate
from ..judge.run_result import RunResult
from ..manifests.manifest import Case
from ..manifests.reflection import check_module, entry_point
from ..reports import chrome_trace
from ..wgpu_client import slots_of

FIRST = 6  # elements of an output that are shown


class Timed(NamedTuple):
    """A timeline that is asked for."""

    path: Path
    workgroup: tuple[int, int, int] = (0, 0, 0)


def run(
    case: Case,
    devices: Sequence[str],
    probes: str,
    saves: Mapping[str, Path],
    say: Say = lambda stage: None,
    trace: Any = None,
    timeline: Timed | None = None,
    workgroups: str | int = "classes",
) -> RunResult:
    """Simulate, and write the outputs that `saves` names. `probes`: all, none, or names with commas between; with
    "counters" nothing is told of outputs.

    `devices`: the profile to run as, and others that it is charged for as well, which takes all probes. `timeline`: the
    workgroup whose timeline is written, and where. `workgroups`: which of them run, as `bankshot.simulate` takes it.
    """
    device, *others = devices
    if others and probes != "all":
        raise UsageError(f"--probes {probes}: several devices are set side by side with all probes only")
    _check_saves(case, saves)
    if timeline is not None:
        chrome_trace.check_place(timeline.path)
    names = probes if probes in ("all", "none") else probes.split(",")
    result = simulate(case, device, names, say, trace, workgroups)
    for name, path in saves.items():
        _save(name, path, result.outputs[name])
    if timeline is not None:
        say("recording the timeline")
        recorded = record_timeline(case, result, timeline.workgroup)
        chrome_trace.write(timeline.path, recorded, case, timeline.workgroup)
    changed = {} if probes == "counters" else _changed(case, result)  # outputs take all of the workgroups
    return RunResult(case, device, result, changed, trace, side_by_side(case, result, tuple(others), say, workgroups))


def _changed(case: Case, result: Any) -> dict[str, dict[str, Any]]:
    before = case.bindings
    return {n: summary(after) for n, after in result.outputs.items() if before[n].tobytes() != after.tobytes()}


def _check_saves(case: Case, saves: Mapping[str, Path]) -> None:
    """What cannot be saved is said before the run, which may be long."""
    if not saves:
        return
    slots = slots_of(entry_point(check_module(case.kernel), case.kernel.entry))
    outputs = [slot.name for slot in slots if slot.kind == "storage-write"]
    for name, path in saves.items():
        if name not in outputs:
            raise UsageError(f"--save: no output is named {name}; there are {', '.join(outputs) or 'none'}")
        if path.suffix != ".npy":
            raise UsageError(f"--save {name}: {path} is to end in .npy")
        if path.is_dir() or not path.parent.is_dir():
            raise UsageError(f"--save {name}: {path} cannot be written, for there is no folder {path.parent}")


def _save(name: str, path: Path, array: np.ndarray) -> None:
    """Write an .npy file; where that fails, the file that was there before stays whole."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("wb") as file:
            np.save(file, array)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise UsageError(f"--save {name}: {path} cannot be written: {error.strerror}") from None


def summary(array: np.ndarray) -> dict[str, Any]:
    """Shape, dtype, extremes, how many are NaN, and the first elements."""
    flat = array.reshape(-1)
    numbers = flat[~np.isnan(flat)] if array.dtype.kind == "f" else flat
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "min": numbers.min().item() if numbers.size else None,
        "max": numbers.max().item() if numbers.size else None,
        "nan": int(flat.size - numbers.size),
        "first": flat[:FIRST].tolist(),
    }

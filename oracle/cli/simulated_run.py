"""The work of `bankshot run`: one simulated run, and the files that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...sim.bindings.binding import is_array
from ...sim.device_files import find
from ...sim.disk_cache import replacing
from ...sim.fast_dataclass import frozen
from ..comparison.bits import as_given
from ..errors import UsageError, check_writable, writing
from ..gpu_counters.timeline import record_timeline
from ..judge.case_run import Say, side_by_side, simulate
from ..judge.run_result import RunResult
from ..judge.schedule_options import ScheduleOptions, schedules_of
from ..manifests.manifest import Case
from ..manifests.reflection import check_module, entry_point
from ..reports import chrome_trace
from ..reports.output_file import OutputFile
from ..wgpu_client import slots_of

if TYPE_CHECKING:
    from ...sim import Run, Trace

FIRST = 6  # elements of an output that are shown


@frozen
class TimelineFile:
    """The timeline to record, and the file to write."""

    path: Path
    workgroup: tuple[int, int, int]


def simulated_run(
    case: Case,
    devices: Sequence[str],
    probes: str,
    saves: Mapping[str, Path],
    say: Say = lambda stage: None,
    trace: Trace | None = None,
    timeline: TimelineFile | None = None,
    workgroups: str | int = "classes",
    *,
    schedule: str = "lockstep",
    schedules: ScheduleOptions | None = None,
    thorough: bool = False,
) -> RunResult:
    """Simulate a case, and write the files that `saves` and `timeline` name.

    `devices`: the profile to simulate, and others that are charged as well, which requires all probes. `probes`: all,
    none, counters (which computes no outputs), or names separated by commas. `workgroups`: as for `bankshot.simulate`.
    `schedule`: the order that outputs come from; `schedules`: those that are compared; `thorough`: make all reruns.
    Raises `WgslError`, `UsageError`.
    """
    device, *others = devices
    if others and probes != "all":
        raise UsageError(f"--probes {probes}: several devices need all probes")
    _check_saves(case, saves)
    file = OutputFile("--timeline", timeline.path) if timeline is not None else None
    names = probes if probes in ("all", "none") else probes.split(",")
    several = schedules or schedules_of(case)
    result = simulate(
        case, device, names, say, trace, workgroups, schedule=schedule, schedules=several, thorough=thorough
    )
    for name, path in saves.items():
        _save(name, path, as_given(result.outputs[name]))
    if timeline is not None and file is not None:
        say("recording the timeline")
        recorded = record_timeline(case, result, timeline.workgroup)
        file.write(chrome_trace.text(recorded, case, timeline.workgroup))
    changed = {} if probes == "counters" else _changed(case, result)  # reading outputs would run all workgroups
    charged = side_by_side(case, result, tuple(others), say, workgroups)
    return RunResult(case, find(device).name, result, changed, trace, charged, schedule)


def _changed(case: Case, result: Run) -> dict[str, dict[str, Any]]:
    before = {name: data for name, data in case.bindings.items() if is_array(data)}
    after = {str(key): as_given(output) for key, output in result.outputs.items()}
    return {name: summary(array) for name, array in after.items() if before[name].tobytes() != array.tobytes()}


def _check_saves(case: Case, saves: Mapping[str, Path]) -> None:
    """Raise `UsageError` for outputs that cannot be saved, before the run, which may be long."""
    if not saves:
        return
    slots = slots_of(entry_point(check_module(case.kernel), case.kernel.entry))
    outputs = [slot.name for slot in slots if slot.kind == "storage-write"]
    for name, path in saves.items():
        if name not in outputs:
            raise UsageError(f"--save: no output is named {name}; the outputs are {', '.join(outputs) or 'none'}")
        if path.suffix != ".npy":
            raise UsageError(f"--save {name}: {path} must end in .npy")
        check_writable(path, f"--save {name}={path}")


def _save(name: str, path: Path, array: NDArray[Any]) -> None:
    """Write an .npy file; if that fails, an existing file stays as it was."""
    with writing(f"--save {name}={path}"), replacing(path) as fresh, fresh.open("wb") as file:
        np.save(file, array)


def summary(array: NDArray[Any]) -> dict[str, Any]:
    """The shape, dtype, extremes, number of NaN, and first elements of an array."""
    flat = array.ravel()
    numbers = flat[~np.isnan(flat)] if array.dtype.kind == "f" else flat
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "min": numbers.min().item() if numbers.size else None,
        "max": numbers.max().item() if numbers.size else None,
        "nan": int(flat.size - numbers.size),
        "first": flat[:FIRST].tolist(),
    }

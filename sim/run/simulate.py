"""`simulate`: run one dispatch of a compute shader, and return its outputs, counters and findings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..device_files import DeviceChoice
from ..launch.tracing import Trace
from ..wgsl.diagnostics import limits_are_errors
from ..wgsl.typed import Module
from .prepared import Prepared
from .result import Run
from .schedule_sweep import Schedules

if TYPE_CHECKING:
    from ..bindings.binding import Bindings
    from .prepared import Overrides


@limits_are_errors("run")
def simulate(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: DeviceChoice = "nvidia",
    probes: str | Sequence[str] = "all",
    schedule: str = "lockstep",
    schedules: int | Schedules = 1,
    replay: bool | str = True,
    cures: bool | None = None,
    out_of_bounds: str | None = None,
    budget: int | None = None,
    trace: Trace | None = None,
    workgroups: str | int = "all",
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run one dispatch of a compute entry point.

    `wgsl`: source text, the path of a file, or a module from `check`.
    `grid`: one to three sizes in workgroups.
    `bindings`: values by variable name or by (group, binding); they are not modified. Buffers take arrays, bytes,
    scalars, sequences and mappings of struct members; textures take arrays (see `bindings.texture_arrays` for axes and
    dtypes) or lists of one per mip level; samplers take a `bankshot.Sampler`.
    `entry`: the entry point; may be left out where there is only one compute entry point.
    `overrides`: values of overrides by name or id.
    `device`: a name from `bankshot.devices`, a device file (`mine.toml`), or a `Device`.
    `probes`: "all", "none", "counters" (those that look for no findings), or names from `PROBES`. "all" leaves out
    "redundant", which reruns once for each barrier, and "touched", which saves `Run.traffic` a rerun.
    `schedule`: the order of invocations (see `launch.schedules`) that outputs come from; counters and findings are
    always those of lockstep.
    `schedules`: how many schedules to compare; `bankshot.Schedules` also takes a seed and a limit in seconds. If
    outputs differ, a finding says so, with the first schedule that shows it.
    `replay`: rerun to decide whether races, unwritten memory and accesses out of bounds matter. Without it they have no
    verdict. Reruns take about as long as ten runs of the dispatch, and notes say which more there are; "thorough" makes
    all of them.
    `cures`: where there are races, change the text and rerun it until they end; by default as `replay`. `Run.cures` has
    the changes, and `Run.findings` one race for each cause, whose hint says what ends it.
    `out_of_bounds`: what an access past the end of an array does: "clamp", "zero", "wrap", or "zero-buffers", which is
    "zero" in buffers and "clamp" elsewhere; by default, what the device does. For texels the device decides
    (`Device.texel_outside`).
    `budget`: loop iterations that a batch of workgroups may make before the run is stopped; by default, as many as
    take about a second.
    `trace`: a variable whose values are recorded in one more run.
    `workgroups`: "all"; "classes" for one of each class that provably behaves the same, which gives the same counters
    and findings sooner (all where there is no proof, see `Run.coverage`); "check" for both, compared; or the number to
    run as a sample.
    `progress`: called with the number of workgroups done, and in all.

    Raises `WgslError` where the shader, or a value given for it, is wrong.
    """
    prepared = Prepared(
        wgsl,
        grid=grid,
        entry=entry,
        overrides=overrides,
        device=device,
        probes=probes,
        schedule=schedule,
        schedules=schedules,
        replay=replay,
        cures=cures,
        out_of_bounds=out_of_bounds,
        budget=budget,
        trace=trace,
        workgroups=workgroups,
    )
    return prepared.run(bindings, progress=progress)

"""`prepare`: a dispatch without its data, to run it again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import dump
from ..bindings.buffers import Binder
from ..device_files import DeviceChoice, find
from ..findings.explain import explain
from ..findings.races import note_limit
from ..findings.suppressions import suppress
from ..front_end import check
from ..launch import schedules as orders
from ..launch.device_memory import seal, snapshot
from ..launch.launch import RunOptions
from ..launch.long_loops import UNLIMITED, WORK
from ..launch.machine_arrays import POLICIES
from ..launch.tracing import Trace, TraceRow
from ..launch.tracing import rows as trace_rows
from ..models import Device, check_dispatch
from ..wgsl.check.pipeline import GRANTED
from ..wgsl.diagnostics import fail, limits_are_errors
from ..wgsl.typed import Module, Pipeline
from .cured import cured
from .dispatch import Dispatch
from .measure import measure
from .result import Run
from .schedule_sweep import Schedules, sweep

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..bindings.binding import Bindings
    from ..codegen.program import Program
    from ..cures.search import Cure

    _Number: TypeAlias = bool | int | float | np.generic
    Overrides: TypeAlias = Mapping[str, _Number] | Mapping[int, _Number] | Mapping[str | int, _Number]

PROBES = ("lanes", "banks", "sectors", "barriers", "flops", "bounds", "races", "uninit", "nan", "touched", "redundant")
_ON_REQUEST = frozenset(("touched", "redundant"))  # not in "all": they take more time, and few need them
_COUNTED = frozenset(("barriers", "flops"))  # counted by the same instruction as lanes
_COUNTERS = frozenset(("lanes", "banks", "sectors", "barriers", "flops"))  # "counters": those that look for no findings
_THOROUGH = "thorough"  # value of `replay`
_MOST_INVOCATIONS = 1 << 32  # global_invocation_index counts them in a u32


class Prepared:
    """A dispatch that runs again and again, with other values in its bindings. `bankshot.prepare` makes it.

    Runs do not affect each other, and several threads may run it at once.
    """

    def __init__(
        self,
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
    ) -> None:
        self._probes, self._schedule = _probes(probes), orders.schedule(schedule)
        self._schedules = schedules if isinstance(schedules, Schedules) else Schedules(schedules)
        if isinstance(replay, str):
            _known("replay", replay, (_THOROUGH,))
        self._replay, self._cures, self._trace = bool(replay), bool(replay) if cures is None else cures, trace
        self._workgroups = workgroups if isinstance(workgroups, str) else "all"
        module = wgsl if isinstance(wgsl, Module) else check(wgsl)
        self.pipeline = pipeline = module.pipeline(entry, cast("Mapping[str | int, Any]", overrides or {}), GRANTED)
        self.device = sized(_device(device), pipeline)
        policy = self.device.out_of_bounds if out_of_bounds is None else out_of_bounds
        _known("out_of_bounds", policy, tuple(POLICIES))
        self.grid = _grid(grid, pipeline)
        if budget is not None and _whole(budget) is None:
            raise fail("unknown-option", f"budget must be a positive integer, not {budget!r}", None)
        work, most = (WORK, UNLIMITED) if budget is None else (UNLIMITED, min(budget, UNLIMITED))
        thorough, chosen = replay == _THOROUGH, _chosen(workgroups, self.grid)
        self._how = RunOptions(policy=policy, budget=most, work=work, chosen=chosen, thorough=thorough)
        self._binder = Binder(pipeline, bindings or {})
        self._programs: dict[frozenset[str], tuple[RunOptions, Program]] = {}

    def __repr__(self) -> str:
        x, y, z = self.grid
        return f"<bankshot.Prepared: {self.pipeline.entry.name}, grid {x} x {y} x {z}, {self.device.name}>"

    def dispatch(self, bindings: Bindings | None = None) -> Dispatch:
        """Return everything that determines a run with these values (internal)."""
        bound, device_memory = snapshot(self._binder.bind(bindings or {}))
        return Dispatch(self.pipeline, bound, self.grid, self.device, self._how, self._programs, [device_memory])

    def build(self) -> None:
        """Build the program ahead of the first run (internal)."""
        if self._workgroups == "all":
            Dispatch(self.pipeline, [], self.grid, self.device, self._how, self._programs).program(self._probes)

    @limits_are_errors("run")
    def run(self, bindings: Bindings | None = None, *, progress: Callable[[int, int], None] | None = None) -> Run:
        """Run it. The result is that of `simulate` with the same arguments.

        `bindings`: values as in `simulate`, which replace those of the same binding given to `prepare`. Their sizes may
        differ from run to run. They are not modified, and may change as soon as `run` returns.
        `progress`: called with the number of workgroups done, and in all.

        Raises `WgslError` where a value does not fit the shader.
        """
        dispatch, names = self.dispatch(bindings), self._probes
        if dump.debug_level():
            dump.print_stages(dispatch.stages(names))
        rows, missed = _traced(dispatch, self._trace, self._schedule)
        measured = measure(dispatch, names, self._workgroups, replay=self._replay, progress=progress)
        launch, outcome, findings = measured.launch, measured.outcome, measured.findings
        touched = measured.left.take_touched() if measured.left and "touched" in names else None
        last, finished = measured.left, outcome.finished
        if self._schedule != orders.LOCKSTEP:
            last, again = dispatch.run(frozenset(), schedule=self._schedule, racing=launch.racing(outcome))
            finished = again.finished
            stopped = {f.span for f in findings}
            findings += [f for f in explain(last, again) if f.code == "endless-loop" and f.span not in stopped]
        agreement = None
        if self._schedules.count > 1 and outcome.finished == launch.count:
            findings, agreement = sweep(dispatch, self._schedules, replace(measured, findings=findings))
        findings, silenced = suppress(findings, dispatch.pipeline.module.source, names)
        tried: tuple[Cure, ...] = ()
        if self._cures and findings and outcome.finished == launch.count:
            findings, tried = cured(dispatch, names, measured, findings, silenced)
        dispatch.spare_memory.close()
        seal(dispatch.bound)
        return Run(
            note_limit(findings, outcome),
            silenced,
            tried,
            launch.program,
            finished,
            rows,
            missed,
            measured.coverage,
            agreement,
            dispatch,
            last,
            touched,
            outcome,
            names,
        )


@limits_are_errors("run")
def prepare(
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
) -> Prepared:
    """Prepare a dispatch, to run it again and again with other values: `prepare(...).run(bindings)`.

    The arguments are those of `simulate`. Here `bindings` has the values that are the same in every run, such as
    weights: they are checked and copied once. `Prepared.run` takes the others.

    Raises `WgslError` where the shader, or a value given for it, is wrong.
    """
    prepared = Prepared(
        wgsl,
        grid=grid,
        bindings=bindings,
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
    prepared.build()
    return prepared


def dispatch_of(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: DeviceChoice = "nvidia",
    out_of_bounds: str | None = None,
    budget: int | None = None,
    workgroups: str | int = "all",
) -> Dispatch:
    """Return everything that determines a run, without running it. Takes the arguments of `simulate`."""
    prepared = Prepared(
        wgsl,
        grid=grid,
        entry=entry,
        overrides=overrides,
        device=device,
        out_of_bounds=out_of_bounds,
        budget=budget,
        workgroups=workgroups,
    )
    dispatch = prepared.dispatch(bindings)
    seal(dispatch.bound)
    return dispatch


def dump_stage(stage: str, dispatch: Dispatch, probes: str | Sequence[str] = "all") -> str:
    """Return a stage of a prepared run as text (see `sim.dump`), built with these probes."""
    return dump.to_text(stage, dispatch.stages(_probes(probes)))


def _traced(dispatch: Dispatch, trace: Trace | None, order: orders.Schedule) -> tuple[list[TraceRow], int]:
    """Return the rows of a trace, from a run that counts nothing else, and how many values it had no room for."""
    if trace is None:
        return [], 0
    if any(not 0 <= at < of for at, of in zip(trace.workgroup, dispatch.grid, strict=True)):
        raise fail("trace", f"workgroup {trace.workgroup} of the trace is outside the grid {dispatch.grid}", None)
    for lane in trace.lanes or ():
        if not 0 <= lane < dispatch.lanes:
            raise fail("trace", f"lane {lane} of the trace is out of range; a workgroup has {dispatch.lanes}", None)
    launch, outcome = dispatch.run(frozenset(), schedule=order, trace=trace, chosen=None)
    program, count = launch.program, int(outcome.trace[0, 0])
    kept = outcome.trace[1 : 1 + count]
    return trace_rows(kept, program.trace_points, program.accesses, dispatch.pipeline, trace), count - len(kept)


def _device(device: DeviceChoice) -> Device:
    try:
        return find(device)
    except ValueError as error:
        raise fail("unknown-device", str(error), None) from None


def sized(device: Device, pipeline: Pipeline) -> Device:
    """Return the device with the subgroup size that the entry point requests. Spec: attribute `subgroup_size`."""
    size, asked = pipeline.subgroup_size, pipeline.entry.subgroup_size
    if size is None or asked is None or size == device.subgroup_size:
        return device
    if not min(device.subgroup_sizes) <= size <= max(device.subgroup_sizes):
        sizes = " or ".join(map(str, device.subgroup_sizes))
        message = f"the entry point requests subgroups of {size}, but the device {device.name} has {sizes}"
        raise fail("subgroup-size", message, asked.span)
    return device.with_(subgroup_size=size)


def _probes(probes: str | Sequence[str]) -> frozenset[str]:
    names = [probes] if isinstance(probes, str) else list(probes)
    for name in names:
        _known("probes", name, ("all", "none", "counters", *PROBES))
    chosen = frozenset(names) & frozenset(PROBES)
    if "counters" in names:
        chosen |= _COUNTERS
    if "all" in names:
        chosen |= frozenset(PROBES) - _ON_REQUEST
    return chosen | {"lanes"} if chosen & _COUNTED else chosen


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise fail("unknown-option", f"{what} must be one of {', '.join(names)}, not {name!r}", None)


def _chosen(workgroups: str | int, grid: tuple[int, int, int]) -> NDArray[np.int64] | None:
    """Return the workgroups of a sample by linear index: from the first to the last, evenly spaced."""
    if isinstance(workgroups, str):
        _known("workgroups", workgroups, ("all", "classes", "check"))
        return None
    size = _whole(workgroups)
    if size is None:
        raise fail("unknown-option", f"a sample needs at least one workgroup, not {workgroups!r}", None)
    count = prod(grid)
    return np.unique(np.linspace(0, count - 1, min(size, count)).round().astype(np.int64))


def _whole(number: object) -> int | None:
    """Return a positive integer, of Python or NumPy, as an int; None for anything else."""
    return int(cast(int, number)) if isinstance(number, int | np.integer) and cast(int, number) > 0 else None


def _grid(grid: int | Sequence[int], pipeline: Pipeline) -> tuple[int, int, int]:
    given: list[object] = [*grid] if isinstance(grid, Iterable) else [grid]
    sizes = [size for n in given if (size := _whole(n)) is not None]
    if not 1 <= len(given) <= 3 or len(sizes) < len(given):
        raise fail("grid", f"a grid must be one to three sizes in workgroups, each at least 1, not {grid!r}", None)
    for problem in check_dispatch(sizes, pipeline.workgroup_size):
        if problem.limit == "maxComputeWorkgroupsPerDimension":
            raise fail("grid", str(problem), pipeline.entry.span)
    invocations = prod(sizes) * prod(pipeline.workgroup_size)
    if invocations > _MOST_INVOCATIONS:
        message = f"the grid has {invocations:,} invocations, and the simulator runs at most {_MOST_INVOCATIONS:,}"
        raise fail("grid", message, pipeline.entry.span)
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z

"""`simulate`: run one dispatch of a compute shader, and tell what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import dump
from ..bindings.buffers import Key, bind
from ..codegen.inexact_ops import is_inexact_op
from ..codegen.program import Program
from ..fast_dataclass import sealed
from ..findings.explain import explain
from ..findings.finding import Finding
from ..findings.suppressions import suppress
from ..front_end import check
from ..launch import schedules
from ..launch.device_memory import snapshot
from ..launch.launch import BUDGET, Launch, RunOptions
from ..launch.machine_arrays import POLICIES
from ..launch.partition import Outcome
from ..launch.tracing import Trace, TraceRow
from ..launch.tracing import rows as trace_rows
from ..machine.opcodes import opcode_names
from ..models import Device, check_dispatch, get
from ..wgsl.check.pipeline import GRANTED
from ..wgsl.diagnostics import fail
from ..wgsl.source import Span
from ..wgsl.typed import Module, Pipeline
from .counters import RunRecord
from .dispatch import Dispatch
from .executed_instructions import Instructions, count_instructions
from .measure import measure
from .site import Site, site_counters, sums, totals
from .traffic import Traffic, traffic
from .workgroup_coverage import Coverage

if TYPE_CHECKING:
    from .output_bounds import Bounds

PROBES = ("lanes", "banks", "sectors", "barriers", "flops", "bounds", "races", "uninit", "nan", "touched", "redundant")
_ASKED_FOR = frozenset(("touched", "redundant"))  # not in "all": they take more time, and few need them
_COUNTED = frozenset(("barriers", "flops"))  # counted by the same instruction as lanes
_COUNTERS = frozenset(("lanes", "banks", "sectors", "barriers", "flops"))  # "counters": what finds nothing
_MOST_INVOCATIONS = 1 << 32  # global_invocation_index counts them in a u32


@sealed
class Writer:
    """The invocation that stored an element last. `lane` is its local invocation index; `span` the place in the source,
    None where workgroups race for it."""

    workgroup: tuple[int, int, int]
    lane: int
    span: Span | None

    def __str__(self) -> str:
        line = "" if self.span is None else f", line {self.span.line}"
        return f"workgroup {self.workgroup}, lane {self.lane}{line}"


@sealed
class Run:
    """What a dispatch left, and what it did.

    `counters`: totals by name, see `Counters`, and `workgroups`, `invocations`, `workgroup_memory_bytes`,
    `simt_efficiency`, `thread_utilization`. `sites`: counters of each place in the source. `silenced`: findings that
    comments in the shader answer for, see `allow`. `finished`: workgroups that ran to their end. `trace`: the changes
    of the variable that was traced; `trace_missed`: values that came after the trace's limit. `coverage`: which
    workgroups ran for the counters.
    """

    findings: list[Finding]
    silenced: list[Finding]
    program: Program
    finished: int
    trace: list[TraceRow]
    trace_missed: int
    coverage: Coverage
    _dispatch: Dispatch
    _left: Launch | None
    _touched: dict[str, int] | None
    _outcome: Outcome
    _probes: frozenset[str]

    @cached_property
    def sites(self) -> list[Site]:
        """Counters of each place in the source."""
        size = self._dispatch.device.subgroup_size
        return site_counters(self.program, self._outcome.blocks, self._outcome.tallies, self._dispatch.lanes, size)

    @cached_property
    def counters(self) -> dict[str, float]:
        """Totals by name."""
        return _totals(self.sites, self._dispatch, self._outcome.worked, self._probes)

    @cached_property
    def outputs(self) -> dict[Key, Any]:
        """Every writable binding as it was given (same dtype and shape), keyed as it was given. Of a run by classes
        that looked at no data the first use runs all workgroups; of a sample they hold what its workgroups stored."""
        launch = self._left or self._dispatch.run(frozenset())[0]
        return launch.outputs()

    @cached_property
    def instructions(self) -> list[Instructions]:
        """Those executed, by class and place."""
        return count_instructions(self.program, self._outcome.blocks)

    @property
    def device(self) -> Device:
        return self._dispatch.device

    @property
    def pipeline(self) -> Pipeline:
        return self._dispatch.pipeline

    @property
    def grid(self) -> tuple[int, int, int]:
        return self._dispatch.grid

    @cached_property
    def bounds(self) -> Bounds:
        """How far other implementations may be from `outputs`. The first use runs the dispatch again, several times as
        long."""
        from .output_bounds import derive_bounds  # which few runs need

        return derive_bounds(self._dispatch, self.outputs)

    @cached_property
    def traffic(self) -> list[Traffic]:
        """Of each storage buffer the bytes that are asked for, moved, and touched at all. The first use runs the
        dispatch again, where the probe `touched` was left out; nothing is asked for or moved without `sectors`."""
        return traffic(self._dispatch, self.sites, self._touched or self._dispatch.touched)

    @cached_property
    def padding_flops(self) -> int:
        """FLOPs that are certain to be for nothing, as of outputs past the edge of a matrix: no result of theirs gets
        to a store, an atomic operation or an exchange that the invocation came to. Zeros that are multiplied are not
        told from others. The first use runs the dispatch again, or one workgroup of each of the run's classes."""
        return self._dispatch.padding_flops(self.coverage.classes)

    @cached_property
    def loose(self) -> frozenset[str]:
        """The operations of this run in which implementations are sure to differ, such as exp_f32. Where there are
        none, those that round to nearest and fuse alike agree bit for bit."""
        names = opcode_names()
        return frozenset(name for code in {*self.program.code[:, 0].tolist()} if is_inexact_op(name := names[code]))

    def writer(self, key: Key, element: int) -> Writer | None:
        """Who stored to element number `element` (flat) of an output last; None where nobody did.

        The first call runs the dispatch again. Raises KeyError for what is not an output.
        """
        bound = next((b for b in self._dispatch.bound if b.key == key and b.writable), None)
        if bound is None:
            raise KeyError(key)
        invocation = self._dispatch.writers.writer(bound, bound.byte_of(element))
        if invocation is None:
            return None
        index, lane = divmod(invocation, self._dispatch.lanes)
        x, y, _ = self.grid
        span = self._dispatch.span_of_store(bound, bound.byte_of(element))
        return Writer((index % x, index // x % y, index // (x * y)), lane, span)


def simulate(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Mapping[Any, Any] | None = None,
    entry: str | None = None,
    overrides: Mapping[str | int, Any] | None = None,
    device: str | Device = "nvidia",
    probes: str | Sequence[str] = "all",
    schedule: str = "lockstep",
    replay: bool = True,
    out_of_bounds: str = "clamp",
    budget: int = BUDGET,
    trace: Trace | None = None,
    workgroups: str | int = "all",
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run `grid` workgroups of a compute entry point.

    `bindings`: arrays, bytes, scalars or small sequences by variable name or (group, binding); they are not changed.
    Textures are arrays (`bindings.texture_arrays` says which axes and dtypes) or lists of their levels, samplers a
    `bankshot.Sampler`.
    `probes`: "all", "none", or names of `PROBES` ("all" is without "redundant", which runs once more for each barrier,
    and "touched", which notes here what `Run.traffic` would look for in a run of its own; "counters": those that find
    nothing).
    `schedule`: see `schedules`; outputs are those of this order, counters and findings always those of lockstep.
    `replay`: run again to see whether races, unwritten memory and accesses out of bounds matter.
    `out_of_bounds`: what an access past the end of an array does: clamp, zero, wrap. A texel that is not there is the
    device's affair (`Device.texel_outside`).
    `budget`: how often a batch of workgroups may go round loops before the run is stopped. `trace`: a variable whose
    values are noted in one more run, see `Trace`. `progress(done, of)` is told of workgroups.
    `workgroups`: "all"; "classes": one of each class that provably does the same, which gives the same counters and
    findings sooner (all, where there is no proof, see `Run.coverage`); "check": both, and whether they are the same; or
    how many to run as a sample.
    Raises `WgslError` where the shader, or what it is given, is wrong.
    """
    names, order = _probes(probes), schedules.schedule(schedule)
    dispatch = prepare(
        wgsl,
        grid=grid,
        bindings=bindings,
        entry=entry,
        overrides=overrides,
        device=device,
        out_of_bounds=out_of_bounds,
        budget=budget,
        workgroups=workgroups,
    )
    if dump.debug_level():
        dump.print_stages(dispatch.stages(names))
    rows, missed = _traced(dispatch, trace, order)
    which = workgroups if isinstance(workgroups, str) else "all"
    measured = measure(dispatch, names, which, replay=replay, progress=progress)
    launch, outcome, findings = measured.launch, measured.outcome, measured.findings
    touched = measured.left.take_touched() if measured.left and "touched" in names else None
    last, finished = measured.left, outcome.finished
    if order != schedules.LOCKSTEP:
        last, again = dispatch.run(frozenset(), schedule=order)
        finished = again.finished
        stopped = {f.span for f in findings}
        findings += [f for f in explain(last, again) if f.code == "endless-loop" and f.span not in stopped]
    findings, silenced = suppress(findings, dispatch.pipeline.module.source, names)
    return Run(
        findings,
        silenced,
        launch.program,
        finished,
        rows,
        missed,
        measured.coverage,
        dispatch,
        last,
        touched,
        outcome,
        names,
    )


def prepare(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Mapping[Any, Any] | None = None,
    entry: str | None = None,
    overrides: Mapping[str | int, Any] | None = None,
    device: str | Device = "nvidia",
    out_of_bounds: str = "clamp",
    budget: int = BUDGET,
    workgroups: str | int = "all",
) -> Dispatch:
    """Check and bind everything that decides a run, and run nothing. Arguments and errors are those of `simulate`."""
    module = wgsl if isinstance(wgsl, Module) else check(wgsl)
    _known("out_of_bounds", out_of_bounds, tuple(POLICIES))
    pipeline = module.pipeline(entry, dict(overrides or {}), GRANTED)
    profile = sized(_device(device), pipeline)
    size = _grid(grid, pipeline)
    how = RunOptions(policy=out_of_bounds, budget=budget, chosen=_chosen(workgroups, size))
    bound, device_memory = snapshot(bind(pipeline, bindings or {}))
    return Dispatch(pipeline, bound, size, profile, how, [device_memory])


def dump_stage(stage: str, dispatch: Dispatch, probes: str | Sequence[str] = "all") -> str:
    """Return a stage of a prepared run as text (see `sim.dump`), built with these probes."""
    return dump.to_text(stage, dispatch.stages(_probes(probes)))


def _traced(dispatch: Dispatch, trace: Trace | None, order: schedules.Schedule) -> tuple[list[TraceRow], int]:
    """The rows of a trace, and how many values had no room: of a run of its own, which counts nothing else."""
    if trace is None:
        return [], 0
    if any(not 0 <= at < of for at, of in zip(trace.workgroup, dispatch.grid, strict=True)):
        raise fail("trace", f"the workgroup {trace.workgroup} to be traced is not in the grid {dispatch.grid}", None)
    for lane in trace.lanes or ():
        if not 0 <= lane < dispatch.lanes:
            raise fail("trace", f"there is no lane {lane} to be traced: a workgroup has {dispatch.lanes}", None)
    launch, outcome = dispatch.run(frozenset(), schedule=order, trace=trace, chosen=None)
    program, count = launch.program, int(outcome.trace[0, 0])
    kept = outcome.trace[1 : 1 + count]
    return trace_rows(kept, program.trace_points, program.accesses, dispatch.pipeline, trace), count - len(kept)


def _device(device: str | Device) -> Device:
    if isinstance(device, Device):
        return device
    try:
        return get(device)
    except ValueError as error:
        raise fail("unknown-device", str(error), None) from None


def sized(device: Device, pipeline: Pipeline) -> Device:
    """The device, running with the subgroup size that the entry point asks for. Spec: attribute `subgroup_size`."""
    size, asked = pipeline.subgroup_size, pipeline.entry.subgroup_size
    if size is None or asked is None or size == device.subgroup_size:
        return device
    if not min(device.subgroup_sizes) <= size <= max(device.subgroup_sizes):
        sizes = " or ".join(map(str, device.subgroup_sizes))
        message = f"the entry point asks for subgroups of {size}, and the device {device.name} has {sizes}"
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
        chosen |= frozenset(PROBES) - _ASKED_FOR
    return chosen | {"lanes"} if chosen & _COUNTED else chosen


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise fail("unknown-option", f"{what} cannot be {name!r}; it is one of {', '.join(names)}", None)


def _chosen(workgroups: str | int, grid: tuple[int, int, int]) -> NDArray[np.int64] | None:
    """The workgroups of a sample, by their numbers: from the first to the last, as evenly as can be."""
    if isinstance(workgroups, str):
        _known("workgroups", workgroups, ("all", "classes", "check"))
        return None
    if not isinstance(workgroups, int | np.integer) or workgroups < 1:
        raise fail("unknown-option", f"a sample is of at least one workgroup, not {workgroups!r}", None)
    count = prod(grid)
    return np.unique(np.linspace(0, count - 1, min(workgroups, count)).round().astype(np.int64))


def _grid(grid: int | Sequence[int], pipeline: Pipeline) -> tuple[int, int, int]:
    sizes = list(grid) if isinstance(grid, Iterable) else [grid]
    if not 1 <= len(sizes) <= 3 or not all(isinstance(n, int | np.integer) and n > 0 for n in sizes):
        raise fail("grid", f"a grid is one to three sizes in workgroups, each at least 1, not {grid!r}", None)
    for problem in check_dispatch(sizes, pipeline.workgroup_size):
        if problem.limit == "maxComputeWorkgroupsPerDimension":
            raise fail("grid", str(problem), pipeline.entry.span)
    invocations = prod(map(int, sizes)) * prod(pipeline.workgroup_size)
    if invocations > _MOST_INVOCATIONS:
        message = f"the grid has {invocations:,} invocations, and the simulator runs at most {_MOST_INVOCATIONS:,}"
        raise fail("grid", message, pipeline.entry.span)
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z


def _totals(sites: list[Site], dispatch: Dispatch, worked: int, probes: frozenset[str]) -> dict[str, float]:
    chosen = dispatch.how.chosen
    return totals(
        RunRecord(
            sums=sums(sites),
            workgroups=prod(dispatch.grid) if chosen is None else len(chosen),
            workgroup_size=dispatch.lanes,
            workgroup_bytes=dispatch.pipeline.workgroup_bytes,
            subgroup_size=dispatch.device.subgroup_size,
            worked=worked if "lanes" in probes else None,
        )
    )

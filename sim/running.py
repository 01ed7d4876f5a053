"""`simulate`: run one dispatch of a compute shader, and tell what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from .bindings import Bound, Key, bind
from .checking import check
from .counters import SiteCounters, site_counters, totals
from .explain import explain
from .findings import Finding
from .launch import POLICIES, Launch, Outcome
from .models import Device, check_dispatch, get
from .program.build import build
from .program.program import Program
from .program.rounding import Rounding
from .tracing import Trace, TraceRow
from .tracing import rows as trace_rows
from .wgsl.diagnostics import fail
from .wgsl.typed import Module, Pipeline

PROBES = ("lanes", "banks", "sectors", "barriers", "flops", "bounds")
_COUNTED = frozenset(("barriers", "flops"))  # counted by the same instruction as lanes
_LANES_PER_BATCH = 512
_SCHEDULES = ("lockstep",)
BUDGET = 1 << 32
_MOST_INVOCATIONS = 1 << 32  # global_invocation_index counts them in a u32


@dataclass(frozen=True)
class Writer:
    """The invocation that stored an element last. `lane` is its local invocation index."""

    workgroup: tuple[int, int, int]
    lane: int

    def __str__(self) -> str:
        return f"workgroup {self.workgroup}, lane {self.lane}"


_PROGRAMS: WeakKeyDictionary[Module, dict[tuple[Any, ...], Program]] = WeakKeyDictionary()


def _built(pipeline: Pipeline, rounding: Rounding, probes: frozenset[str], together: int, trace: str | None) -> Program:
    """The program of a pipeline; of a module that is run again and again, the one made before."""
    programs = _PROGRAMS.setdefault(pipeline.module, {})
    values = tuple((override.name, repr(value)) for override, value in pipeline.values.items())
    key = (pipeline.entry.name, values, rounding, probes, together, trace)
    if key not in programs:
        programs[key] = build(pipeline, rounding=rounding, probes=probes, together=together, trace=trace)
    return programs[key]


@dataclass(frozen=True)
class _Dispatch:
    """Everything that decides a run."""

    pipeline: Pipeline
    bound: list[Bound]
    grid: tuple[int, int, int]
    device: Device
    policy: str
    budget: int
    trace: Trace | None = None

    @property
    def lanes(self) -> int:
        """Invocations of a workgroup."""
        return int(np.prod(self.pipeline.workgroup_size))

    def run(self, probes: frozenset[str], progress: Callable[[int, int], None] | None = None) -> tuple[Launch, Outcome]:
        together = 1
        if self.lanes < _LANES_PER_BATCH // 4:
            together = max(1, min(_LANES_PER_BATCH // self.lanes, int(np.prod(self.grid))))
        rounding = Rounding(
            fused=self.device.fma != "separate",
            contracts=self.device.fma == "contracted",
            cuts_f16=self.device.texel_f16 == "zero",
        )
        name = None if self.trace is None else self.trace.variable
        program = _built(self.pipeline, rounding, probes, together, name)
        launch = Launch(program, self.bound, self.grid, self.device, self.policy, self.budget, self.trace)
        return launch, launch.run(progress)

    @cached_property
    def writers(self) -> Launch:
        """A launch that has noted who wrote what."""
        return replace(self, trace=None).run(frozenset(("writers",)))[0]


@dataclass(frozen=True)
class Run:
    """What a dispatch left, and what it did.

    `outputs`: every writable binding as it was given (same dtype and shape), keyed as it was given. `counters`: totals
    by name, see `Counters`, and `workgroups`, `invocations`, `workgroup_memory_bytes`, `simt_efficiency`,
    `thread_utilization`. `sites`: counters of each place in the source. `finished`: workgroups that ran to their end.
    `trace`: the changes of the variable that was traced; `trace_missed`: values that came after the trace's limit.
    """

    outputs: dict[Key, Any]
    counters: dict[str, float]
    sites: list[SiteCounters]
    findings: list[Finding]
    program: Program
    finished: int
    trace: list[TraceRow]
    trace_missed: int
    _dispatch: _Dispatch

    @property
    def device(self) -> Device:
        return self._dispatch.device

    @property
    def pipeline(self) -> Pipeline:
        return self._dispatch.pipeline

    @property
    def grid(self) -> tuple[int, int, int]:
        return self._dispatch.grid

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
        return Writer((index % x, index // x % y, index // (x * y)), lane)


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
    out_of_bounds: str = "clamp",
    budget: int = BUDGET,
    trace: Trace | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run `grid` workgroups of a compute entry point.

    `bindings`: arrays, bytes, scalars or small sequences by variable name or (group, binding); they are not changed.
    Textures are arrays (`sim.textures` says which axes and dtypes) or lists of their levels, samplers a `sim.Sampler`.
    `probes`: "all", "none", or names of `PROBES`. `out_of_bounds`: what an access past the end of an array
    does: clamp, zero, wrap. A texel that is not there is the device's affair (`Device.texel_outside`).
    `budget`: backward jumps that a batch of workgroups may take. `trace`: a variable whose values are noted, see
    `Trace`. `progress(done, of)` is told of workgroups.
    Raises `WgslError` where the shader, or what it is given, is wrong.
    """
    module = wgsl if isinstance(wgsl, Module) else check(wgsl)
    names = _probes(probes)
    _known("schedule", schedule, _SCHEDULES)
    _known("out_of_bounds", out_of_bounds, tuple(POLICIES))
    pipeline = module.pipeline(entry, dict(overrides or {}))
    profile = _sized(_device(device), pipeline)
    size = _grid(grid, pipeline)
    dispatch = _Dispatch(pipeline, bind(pipeline, bindings or {}), size, profile, out_of_bounds, budget, trace)
    if trace is not None:
        _check_trace(trace, dispatch)
    launch, outcome = dispatch.run(names, progress)
    subgroups = -(-dispatch.lanes // profile.subgroup_size)
    sites = site_counters(launch.program, outcome.blocks, outcome.tallies, subgroups)
    return Run(
        {b.key: launch.output(b) for b in dispatch.bound if b.writable},
        _totals(sites, dispatch, outcome.worked, names),
        sites,
        explain(launch, outcome),
        launch.program,
        outcome.finished,
        *_traced(launch, outcome, dispatch),
        dispatch,
    )


def _check_trace(trace: Trace, dispatch: _Dispatch) -> None:
    if any(not 0 <= at < of for at, of in zip(trace.workgroup, dispatch.grid, strict=True)):
        raise fail("trace", f"the workgroup {trace.workgroup} to be traced is not in the grid {dispatch.grid}", None)
    for lane in trace.lanes or ():
        if not 0 <= lane < dispatch.lanes:
            raise fail("trace", f"there is no lane {lane} to be traced: a workgroup has {dispatch.lanes}", None)


def _traced(launch: Launch, outcome: Outcome, dispatch: _Dispatch) -> tuple[list[TraceRow], int]:
    """The rows of the trace, and how many values had no room."""
    if dispatch.trace is None:
        return [], 0
    count = int(outcome.trace[0, 0])
    program, kept = launch.program, outcome.trace[1 : 1 + count]
    found = trace_rows(kept, program.points, program.accesses, dispatch.pipeline, dispatch.trace)
    return found, count - len(kept)


def _device(device: str | Device) -> Device:
    if isinstance(device, Device):
        return device
    try:
        return get(device)
    except ValueError as error:
        raise fail("unknown-device", str(error), None) from None


def _sized(device: Device, pipeline: Pipeline) -> Device:
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
    if probes == "all":
        return frozenset(PROBES)
    if probes == "none":
        return frozenset()
    names = [probes] if isinstance(probes, str) else list(probes)
    for name in names:
        _known("probes", name, PROBES)
    chosen = frozenset(names)
    return chosen | {"lanes"} if chosen & _COUNTED else chosen


def _known(what: str, name: str, names: tuple[str, ...]) -> None:
    if name not in names:
        raise fail("unknown-option", f"{what} cannot be {name!r}; it is one of {', '.join(names)}", None)


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


def _totals(sites: list[SiteCounters], dispatch: _Dispatch, worked: int, probes: frozenset[str]) -> dict[str, float]:
    counters: dict[str, float] = dict(totals(sites))
    counters["workgroups"] = int(np.prod(dispatch.grid))
    counters["invocations"] = counters["workgroups"] * dispatch.lanes
    counters["workgroup_memory_bytes"] = dispatch.pipeline.workgroup_bytes
    if "lanes" in probes and counters["invocations"]:
        # A workgroup that does not fill its last subgroup leaves lanes of it idle.
        issued = counters["executions"] * dispatch.device.subgroup_size
        counters["simt_efficiency"] = counters["active_lanes"] / issued if issued else 0.0
        counters["thread_utilization"] = worked / counters["invocations"]
    return counters

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

from . import schedules
from .allow import silence
from .barriers import find_redundant
from .bindings import Bound, Key, bind, hide
from .checking import check
from .counters import SiteCounters, site_counters, totals
from .error_bounds import Bounds, derive_bounds
from .explain import explain
from .findings import Finding
from .launch import POLICIES, How, Launch, Outcome
from .machine.opcodes import opcode_names
from .models import Device, check_dispatch, get
from .program.bounds import Woven, is_loose
from .program.build import build, build_with_bounds, build_with_sites
from .program.program import Program
from .program.rounding import Rounding
from .program.shadows import Shadow
from .replay import Judge
from .tracing import Trace, TraceRow
from .tracing import rows as trace_rows
from .wgsl.diagnostics import fail
from .wgsl.source import Span
from .wgsl.typed import Module, Pipeline

PROBES = ("lanes", "banks", "sectors", "barriers", "flops", "bounds", "races", "uninit", "nan", "redundant")
_ASKED_FOR = frozenset(("redundant",))  # not in "all": they take more runs
_COUNTED = frozenset(("barriers", "flops"))  # counted by the same instruction as lanes
_LANES_PER_BATCH = 512
BUDGET = 1 << 32
_MOST_INVOCATIONS = 1 << 32  # global_invocation_index counts them in a u32


@dataclass(frozen=True)
class Writer:
    """The invocation that stored an element last. `lane` is its local invocation index; `span` the place in the source,
    None where workgroups race for it."""

    workgroup: tuple[int, int, int]
    lane: int
    span: Span | None

    def __str__(self) -> str:
        line = "" if self.span is None else f", line {self.span.line}"
        return f"workgroup {self.workgroup}, lane {self.lane}{line}"


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
class Dispatch:
    """Everything that decides a run."""

    pipeline: Pipeline
    bound: list[Bound]
    grid: tuple[int, int, int]
    device: Device
    how: How

    @property
    def lanes(self) -> int:
        """Invocations of a workgroup."""
        return int(np.prod(self.pipeline.workgroup_size))

    def together(self, how: How) -> int:
        """Workgroups that run side by side."""
        if self.lanes >= _LANES_PER_BATCH // 4 or how.schedule.alone != "workgroup" or how.ignored is not None:
            return 1
        return max(1, min(_LANES_PER_BATCH // self.lanes, int(np.prod(self.grid))))

    @property
    def rounding(self) -> Rounding:
        return Rounding(
            fused=self.device.fma != "separate",
            contracts=self.device.fma == "contracted",
            cuts_f16=self.device.texel_f16 == "zero",
        )

    def run(
        self, probes: frozenset[str], progress: Callable[[int, int], None] | None = None, **changes: Any
    ) -> tuple[Launch, Outcome]:
        """Run it as it is to be run, or with some `changes` to `how`."""
        how = replace(self.how, **changes)
        name = None if how.trace is None else how.trace.variable
        program = _built(self.pipeline, self.rounding, probes, self.together(how), name)
        launch = Launch(program, self.bound, self.grid, self.device, how)
        outcome = launch.run(progress)
        if launch.met:  # threads have written to the same words: what they left, and saw, hangs on who was first
            launch = Launch(program, self.bound, self.grid, self.device, replace(how, threads=1))
            outcome = launch.run()
        return launch, outcome

    def launch(self, program: Program, bound: list[Bound]) -> Launch:
        return Launch(program, bound, self.grid, self.device, self.how)

    def build_with_bounds(self, subnormal: frozenset[str]) -> tuple[Program, Woven]:
        return build_with_bounds(
            self.pipeline, rounding=self.rounding, subnormal=subnormal, together=self.together(self.how)
        )

    @cached_property
    def marks(self) -> tuple[Launch, dict[Shadow, Bound]]:
        """A launch that has left, beside each element, what stored it."""
        program, shadows = build_with_sites(self.pipeline, rounding=self.rounding, together=self.together(self.how))
        hidden = hide(shadows, self.bound, np.uint32)
        launch = self.launch(program, [*self.bound, *hidden.values()])
        launch.run()
        return launch, hidden

    def span_of_store(self, bound: Bound, byte: int) -> Span | None:
        """Where in the source this byte of a buffer was stored last; None where it was not."""
        launch, hidden = self.marks
        marks = (int(launch.output(hidden[s])[byte // s.unit]) for s in hidden if s.of is bound.variable)
        mark = max(marks, default=0)
        return launch.program.sites[mark - 1].span if mark else None

    @cached_property
    def writers(self) -> Launch:
        """A launch that has noted who wrote what."""
        return self.run(frozenset(("writers",)))[0]


@dataclass(frozen=True)
class Run:
    """What a dispatch left, and what it did.

    `outputs`: every writable binding as it was given (same dtype and shape), keyed as it was given. `counters`: totals
    by name, see `Counters`, and `workgroups`, `invocations`, `workgroup_memory_bytes`, `simt_efficiency`,
    `thread_utilization`. `sites`: counters of each place in the source. `silenced`: findings that comments in
    the shader answer for, see `allow`. `finished`: workgroups that ran to their end. `trace`: the changes of the
    variable that was traced; `trace_missed`: values that came after the trace's limit.
    """

    outputs: dict[Key, Any]
    counters: dict[str, float]
    sites: list[SiteCounters]
    findings: list[Finding]
    silenced: list[Finding]
    program: Program
    finished: int
    trace: list[TraceRow]
    trace_missed: int
    _dispatch: Dispatch

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
        return derive_bounds(self._dispatch, self.outputs)

    @cached_property
    def loose(self) -> frozenset[str]:
        """The operations of this run in which implementations are sure to differ, such as exp_f32. Where there are
        none, those that round to nearest and fuse alike agree bit for bit."""
        names = opcode_names()
        return frozenset(name for code in np.unique(self.program.code[:, 0]) if is_loose(name := names[int(code)]))

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
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Run `grid` workgroups of a compute entry point.

    `bindings`: arrays, bytes, scalars or small sequences by variable name or (group, binding); they are not changed.
    Textures are arrays (`sim.textures` says which axes and dtypes) or lists of their levels, samplers a `sim.Sampler`.
    `probes`: "all", "none", or names of `PROBES` ("all" is without "redundant", which runs once more for each barrier).
    `schedule`: see `schedules`; outputs are those of this order, counters and findings always those of lockstep.
    `replay`: run again to see whether races, unwritten memory and accesses out of bounds matter.
    `out_of_bounds`: what an access past the end of an array does: clamp, zero, wrap. A texel that is not there is the
    device's affair (`Device.texel_outside`).
    `budget`: backward jumps that a batch of workgroups may take. `trace`: a variable whose values are noted in one more
    run, see `Trace`. `progress(done, of)` is told of workgroups.
    Raises `WgslError` where the shader, or what it is given, is wrong.
    """
    module = wgsl if isinstance(wgsl, Module) else check(wgsl)
    names = _probes(probes)
    order = schedules.schedule(schedule)
    _known("out_of_bounds", out_of_bounds, tuple(POLICIES))
    pipeline = module.pipeline(entry, dict(overrides or {}))
    profile = _sized(_device(device), pipeline)
    size = _grid(grid, pipeline)
    how = How(policy=out_of_bounds, budget=budget)
    dispatch = Dispatch(pipeline, bind(pipeline, bindings or {}), size, profile, how)
    rows, missed = _traced(dispatch, trace, order)
    launch, outcome = dispatch.run(names, progress)
    findings = _findings(dispatch, launch, outcome, names, replay)
    subgroups = -(-dispatch.lanes // profile.subgroup_size)
    sites = site_counters(launch.program, outcome.blocks, outcome.tallies, subgroups)
    last, finished = launch, outcome.finished
    if order != schedules.LOCKSTEP:
        last, again = dispatch.run(frozenset(), schedule=order)
        finished = again.finished
        stopped = {f.span for f in findings}
        findings += [f for f in explain(last, again) if f.code == "endless-loop" and f.span not in stopped]
    findings, silenced = silence(findings, module.source, names)
    return Run(
        last.outputs(),
        _totals(sites, dispatch, outcome.worked, names),
        sites,
        findings,
        silenced,
        launch.program,
        finished,
        rows,
        missed,
        dispatch,
    )


def _traced(dispatch: Dispatch, trace: Trace | None, order: schedules.Schedule) -> tuple[list[TraceRow], int]:
    """The rows of a trace, and how many values had no room: of a run of its own, which counts nothing else."""
    if trace is None:
        return [], 0
    if any(not 0 <= at < of for at, of in zip(trace.workgroup, dispatch.grid, strict=True)):
        raise fail("trace", f"the workgroup {trace.workgroup} to be traced is not in the grid {dispatch.grid}", None)
    for lane in trace.lanes or ():
        if not 0 <= lane < dispatch.lanes:
            raise fail("trace", f"there is no lane {lane} to be traced: a workgroup has {dispatch.lanes}", None)
    launch, outcome = dispatch.run(frozenset(), schedule=order, trace=trace)
    program, count = launch.program, int(outcome.trace[0, 0])
    kept = outcome.trace[1 : 1 + count]
    return trace_rows(kept, program.points, program.accesses, dispatch.pipeline, trace), count - len(kept)


def _findings(
    dispatch: Dispatch, launch: Launch, outcome: Outcome, probes: frozenset[str], replay: bool
) -> list[Finding]:
    """What was found, and, of a run that came to its end, whether it matters."""
    findings = explain(launch, outcome)
    whole = outcome.finished == int(np.prod(dispatch.grid))
    if replay and whole:
        findings = Judge(dispatch.run, launch, outcome).judge(findings)
    if "redundant" in probes and whole:
        findings += find_redundant(dispatch.run, launch)
    return findings


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
    names = [probes] if isinstance(probes, str) else list(probes)
    for name in names:
        _known("probes", name, ("all", "none", *PROBES))
    chosen = frozenset(names) & frozenset(PROBES)
    if "all" in names:
        chosen |= frozenset(PROBES) - _ASKED_FOR
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


def _totals(sites: list[SiteCounters], dispatch: Dispatch, worked: int, probes: frozenset[str]) -> dict[str, float]:
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

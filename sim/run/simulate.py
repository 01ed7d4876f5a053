"""`simulate`: run one dispatch of a compute shader, and return its outputs, counters and findings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from .. import dump
from ..bindings.binding import Key, Output
from ..bindings.buffers import bind
from ..codegen.inexact_ops import is_inexact_op
from ..codegen.program import Program
from ..cures.search import Cure
from ..fast_dataclass import sealed
from ..findings.explain import explain
from ..findings.finding import Finding
from ..findings.races import note_limit
from ..findings.suppressions import suppress
from ..front_end import check
from ..launch import schedules as orders
from ..launch.device_memory import snapshot
from ..launch.launch import Launch, RunOptions
from ..launch.long_loops import UNLIMITED, WORK
from ..launch.machine_arrays import POLICIES
from ..launch.partition import Outcome
from ..launch.tracing import Trace, TraceRow
from ..launch.tracing import rows as trace_rows
from ..machine.opcodes import opcode_names
from ..models import Device, check_dispatch, get
from ..wgsl.check.pipeline import GRANTED
from ..wgsl.diagnostics import fail, limits_are_errors
from ..wgsl.source import Span
from ..wgsl.typed import Module, Pipeline
from .counters import Counters, RunRecord
from .cured import cured
from .dispatch import Dispatch
from .executed_instructions import Instructions, count_instructions
from .measure import measure
from .run_view import excess, html, one_line
from .schedule_sweep import Agreement, Schedules, sweep
from .site import Site, site_counters, sums, totals
from .traffic import Traffic, traffic
from .workgroup_coverage import Coverage

if TYPE_CHECKING:
    from typing import TypeAlias

    from ..bindings.binding import Bindings
    from .output_bounds import Bounds

    _Number: TypeAlias = bool | int | float | np.generic
    Overrides: TypeAlias = Mapping[str, _Number] | Mapping[int, _Number] | Mapping[str | int, _Number]

PROBES = ("lanes", "banks", "sectors", "barriers", "flops", "bounds", "races", "uninit", "nan", "touched", "redundant")
_ON_REQUEST = frozenset(("touched", "redundant"))  # not in "all": they take more time, and few need them
_COUNTED = frozenset(("barriers", "flops"))  # counted by the same instruction as lanes
_COUNTERS = frozenset(("lanes", "banks", "sectors", "barriers", "flops"))  # "counters": those that look for no findings
_THOROUGH = "thorough"  # value of `replay`
_MOST_INVOCATIONS = 1 << 32  # global_invocation_index counts them in a u32


@sealed
class Writer:
    """The invocation that stored an element last. `lane` is its local invocation index, `span` the place in the source;
    None where workgroups race for it."""

    workgroup: tuple[int, int, int]
    lane: int
    span: Span | None

    def __str__(self) -> str:
        line = "" if self.span is None else f", line {self.span.line}"
        return f"workgroup {self.workgroup}, lane {self.lane}{line}"


@sealed
class Run:
    """The result of a dispatch: outputs, counters and findings.

    `findings`, and `silenced`, those that comments in the shader suppress. `cures`: changes of the text that end races.
    `program`: what ran (internal). `finished`: workgroups that ran to their end. `trace`: the changes of the traced
    variable; `trace_missed`: how many values came after the trace was full. `coverage`: which workgroups ran for the
    counters. `agreement`: what many schedules showed, where several were asked for and the run ended.
    """

    findings: list[Finding]
    silenced: list[Finding]
    cures: tuple[Cure, ...]
    program: Program
    finished: int
    trace: list[TraceRow]
    trace_missed: int
    coverage: Coverage
    agreement: Agreement | None
    _dispatch: Dispatch
    _left: Launch | None
    _touched: dict[str, int] | None
    _outcome: Outcome
    _probes: frozenset[str]

    def __repr__(self) -> str:
        return one_line(self)

    def _repr_html_(self) -> str:
        return html(self)

    def __getstate__(self) -> dict[str, object]:
        """For pickling and copying. Memory goes as outputs, where it is left; else the copy reruns for them."""
        state = dict(vars(self))
        if self._left is not None:
            state["outputs"] = self.outputs
        return {**state, "_left": None}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)

    def output(self, key: Key) -> NDArray[Any]:
        """Return an output as an array; bytes as uint8. Raises KeyError where `key` is no output."""
        found = self.outputs[key]
        return np.frombuffer(found, np.uint8) if isinstance(found, bytes) else found

    @cached_property
    def total(self) -> Counters:
        """The sums over all sites, as typed attributes: `run.total.shared_wavefronts`."""
        return Counters(**sums(self.sites))

    @property
    def excess_wavefronts(self) -> int:
        """Wavefronts of workgroup memory due to bank conflicts: those charged, less those that access widths need."""
        return sum(map(excess, self.sites))

    @property
    def excess_sectors(self) -> int:
        """Sectors of global memory beyond those that the requested bytes would fill if packed."""
        return self.total.global_sectors - self.total.global_ideal_sectors

    @property
    def utilization(self) -> float:
        """The share of launched invocations that do work, from 0 to 1."""
        return self.counters["thread_utilization"]

    @cached_property
    def sites(self) -> list[Site]:
        """The counters of each access, operation and barrier in the source."""
        size = self._dispatch.device.subgroup_size
        return site_counters(self.program, self._outcome.blocks, self._outcome.tallies, self._dispatch.lanes, size)

    @cached_property
    def counters(self) -> dict[str, float]:
        """Totals by key: the sums over all sites, and those of the whole run (see docs/counters.md)."""
        return _totals(self.sites, self._dispatch, self._outcome.worked, self._probes)

    @cached_property
    def outputs(self) -> dict[Key, Output]:
        """Every writable binding after the run, with the key, dtype and shape that it was given with.

        Bytes stay bytes. After a run by classes the first use may run all workgroups; after a sample, outputs hold what
        its workgroups stored.
        """
        launch = self._left or self._dispatch.run(frozenset())[0]
        return launch.outputs()

    @cached_property
    def instructions(self) -> list[Instructions]:
        """The executed instructions, by class and place."""
        return count_instructions(self.program, self._outcome.blocks)

    @property
    def dispatch(self) -> Dispatch:
        """Everything that determines the run (internal)."""
        return self._dispatch

    @property
    def device(self) -> Device:
        """The device, with the subgroup size that ran."""
        return self._dispatch.device

    @property
    def pipeline(self) -> Pipeline:
        """The entry point with its overrides."""
        return self._dispatch.pipeline

    @property
    def grid(self) -> tuple[int, int, int]:
        """The size of the dispatch in workgroups."""
        return self._dispatch.grid

    @cached_property
    def bounds(self) -> Bounds:
        """How far other conforming implementations may be from `outputs`.

        The first use reruns the dispatch, which takes several times as long.
        """
        from .output_bounds import derive_bounds  # few runs need it

        return derive_bounds(self._dispatch, self.outputs)

    @cached_property
    def traffic(self) -> list[Traffic]:
        """The bytes of each storage buffer that are requested, moved, and accessed at all.

        The first use reruns the dispatch, unless the probe `touched` was on. Without `sectors`, requested and moved
        bytes are 0.
        """
        return traffic(self._dispatch, self.sites, self._touched or self._dispatch.touched)

    @cached_property
    def reach(self) -> dict[str, int]:
        """How far each storage buffer is accessed, in bytes from its start, by name. The first use reruns the dispatch.

        An access out of bounds counts where its device places it.
        """
        return self._dispatch.run(frozenset(("touched",)))[0].reach()

    @cached_property
    def padding_flops(self) -> int:
        """FLOPs whose results are certainly unused, such as outputs past the edge of a matrix.

        Their results reach no store, atomic operation or exchange that the invocation executes. Operations on padding
        zeros are not detected. The first use reruns the dispatch, or one workgroup of each class.
        """
        return self._dispatch.padding_flops(self.coverage.classes)

    @cached_property
    def loose(self) -> frozenset[str]:
        """The operations of this run whose results differ between implementations, such as exp_f32.

        Where there are none, implementations that round to nearest and fuse alike agree bit for bit.
        """
        names = opcode_names()
        return frozenset(name for code in {*self.program.code[:, 0].tolist()} if is_inexact_op(name := names[code]))

    def writer(self, key: Key, element: int) -> Writer | None:
        """Return which invocation stored to an element (flat index) of an output last; None where none did.

        The first call reruns the dispatch. Raises KeyError where `key` is no output.
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


@limits_are_errors("run")
def simulate(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: str | Device = "nvidia",
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
    `device`: a name from `bankshot.devices`, or a `Device`.
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
    take some seconds.
    `trace`: a variable whose values are recorded in one more run.
    `workgroups`: "all"; "classes" for one of each class that provably behaves the same, which gives the same counters
    and findings sooner (all where there is no proof, see `Run.coverage`); "check" for both, compared; or the number to
    run as a sample.
    `progress`: called with the number of workgroups done, and in all.

    Raises `WgslError` where the shader, or a value given for it, is wrong.
    """
    names, order = _probes(probes), orders.schedule(schedule)
    if isinstance(replay, str):
        _known("replay", replay, (_THOROUGH,))
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
    if replay == _THOROUGH:
        dispatch = replace(dispatch, how=replace(dispatch.how, thorough=True))
    if dump.debug_level():
        dump.print_stages(dispatch.stages(names))
    rows, missed = _traced(dispatch, trace, order)
    which = workgroups if isinstance(workgroups, str) else "all"
    measured = measure(dispatch, names, which, replay=bool(replay), progress=progress)
    launch, outcome, findings = measured.launch, measured.outcome, measured.findings
    touched = measured.left.take_touched() if measured.left and "touched" in names else None
    last, finished = measured.left, outcome.finished
    if order != orders.LOCKSTEP:
        last, again = dispatch.run(frozenset(), schedule=order, racing=launch.racing(outcome))
        finished = again.finished
        stopped = {f.span for f in findings}
        findings += [f for f in explain(last, again) if f.code == "endless-loop" and f.span not in stopped]
    agreement = None
    wanted = schedules if isinstance(schedules, Schedules) else Schedules(schedules)
    if wanted.count > 1 and outcome.finished == launch.count:
        findings, agreement = sweep(dispatch, wanted, replace(measured, findings=findings))
    findings, silenced = suppress(findings, dispatch.pipeline.module.source, names)
    tried: tuple[Cure, ...] = ()
    if (replay if cures is None else cures) and outcome.finished == launch.count:
        findings, tried = cured(dispatch, names, measured, findings, silenced)
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


def prepare(
    wgsl: str | Path | Module,
    *,
    grid: int | Sequence[int],
    bindings: Bindings | None = None,
    entry: str | None = None,
    overrides: Overrides | None = None,
    device: str | Device = "nvidia",
    out_of_bounds: str | None = None,
    budget: int | None = None,
    workgroups: str | int = "all",
) -> Dispatch:
    """Check and bind everything that determines a run, without running it. Takes the arguments of `simulate`."""
    module = wgsl if isinstance(wgsl, Module) else check(wgsl)
    pipeline = module.pipeline(entry, cast("Mapping[str | int, Any]", overrides or {}), GRANTED)
    profile = sized(_device(device), pipeline)
    policy = profile.out_of_bounds if out_of_bounds is None else out_of_bounds
    _known("out_of_bounds", policy, tuple(POLICIES))
    size = _grid(grid, pipeline)
    if budget is not None and _whole(budget) is None:
        raise fail("unknown-option", f"budget must be a positive integer, not {budget!r}", None)
    work, most = (WORK, UNLIMITED) if budget is None else (UNLIMITED, min(budget, UNLIMITED))
    how = RunOptions(policy=policy, budget=most, work=work, chosen=_chosen(workgroups, size))
    bound, device_memory = snapshot(bind(pipeline, bindings or {}))
    return Dispatch(pipeline, bound, size, profile, how, [device_memory])


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


def _device(device: str | Device) -> Device:
    if isinstance(device, Device):
        return device
    try:
        return get(device)
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

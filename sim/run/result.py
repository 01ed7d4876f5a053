"""`Run`: the outputs, counters and findings of one dispatch."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Key, Output
from ..codegen.inexact_ops import is_inexact_op
from ..codegen.program import Program
from ..cures.search import Cure
from ..fast_dataclass import sealed
from ..findings.finding import Finding
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.tracing import TraceRow
from ..machine.opcodes import opcode_names
from ..models import Device
from ..models.roofline import Roof, roofs
from ..models.time_model import Prediction, memory_levels, predict
from ..models.work import Work
from ..utilization.utilization import Utilization
from ..wgsl.source import Span
from ..wgsl.typed import Pipeline
from .counters import IDLE_CAUSES, Counters, RunRecord
from .dispatch import Dispatch
from .executed_instructions import Instructions, count_instructions
from .run_view import excess, html, one_line
from .schedule_sweep import Agreement
from .site import Site, site_counters, sums, totals
from .sliced_workgroups import measure_utilization
from .traffic import Traffic, traffic
from .workgroup_coverage import Coverage

_COUNT_WORK = frozenset(("lanes", "banks", "sectors"))  # probes

if TYPE_CHECKING:
    from .line_times import LineTime
    from .output_bounds import Bounds


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

    @cached_property
    def utilization(self) -> Utilization:
        """The utilizations of lanes, subgroups and cores. The first use runs some workgroups again.

        A figure is None where a workgroup executes too much to be sliced; a run with `replay="thorough"` slices more.
        """
        names = {row.key: row.cause[0] for row in IDLE_CAUSES}
        idle = {name: int(getattr(self.total, key)) for key, name in names.items()}
        size = self._dispatch.device.subgroup_size
        lanes = (
            size * sum(row.executions for row in self.instructions),
            sum(row.lanes for row in self.instructions),
        )
        return measure_utilization(self._dispatch, self.coverage.classes, lanes, idle)

    @cached_property
    def work(self) -> Work:
        """What the dispatch asks of each unit of its device. The first use runs two workgroups again.

        Raises ValueError for a run without the probes `lanes`, `banks` and `sectors`, and for one that was stopped.
        """
        from .work import work_of  # few runs need it

        if self._outcome.stopped is not None:
            raise ValueError("the run was stopped before its end: a part of its work is not that of the dispatch")
        if missing := sorted(_COUNT_WORK - self._probes):
            raise ValueError(f"the work of a dispatch needs a run with the probes {', '.join(missing)}, too")
        outcome = self._outcome
        of_each = outcome.by_workgroup if self.coverage.exact else None
        return work_of(self._dispatch, self.program, self.sites, outcome.blocks, of_each)

    @property
    def predicts_time(self) -> bool:
        """Whether `predicted_time` is known: the device has costs, and the run has ended and counted its work."""
        return self.device.predicts_times and self._probes >= _COUNT_WORK and self._outcome.stopped is None

    @cached_property
    def predicted_time(self) -> Prediction:
        """How long the dispatch takes on its device, by the costs in the device's profile (see docs/time-model.md).

        Raises `MissingCost` for a device without costs, and ValueError as `work` does.
        """
        return predict(self.work, self._dispatch.device)

    @property
    def roofs(self) -> list[Roof]:
        """What each level of memory and arithmetic allow, the lowest roof first; empty for a run without FLOPs.

        Raises as `predicted_time` does.
        """
        flops, device = self.counters.get("flops", 0), self._dispatch.device
        return roofs(flops, memory_levels(self.work, device), device.peak_flops) if flops else []

    @cached_property
    def line_times(self) -> list[LineTime]:
        """The part of the predicted time that each line takes, with its limiter, the longest first.

        Raises `MissingCost` for a device without costs.
        """
        from .line_times import line_times  # few runs need it

        return line_times(self)

    @cached_property
    def time_savings(self) -> dict[str, float]:
        """The microseconds of the predicted time that changes would save, by the name of each, the most first.

        Changes that save next to nothing are left out. Raises `MissingCost` for a device without costs.
        """
        from .what_if import savings  # few runs need it

        return savings(self)

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
        its workgroups stored. After a run that was stopped in a loop they hold what was stored until then, which may
        depend on threads and time.
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
        span = self._dispatch.span_of_store(bound, bound.byte_of(element))
        return Writer(self._dispatch.place(index), lane, span)


def _totals(sites: list[Site], dispatch: Dispatch, worked: int, probes: frozenset[str]) -> dict[str, float]:
    return totals(
        RunRecord(
            sums=sums(sites),
            workgroups=dispatch.count,
            workgroup_size=dispatch.lanes,
            workgroup_bytes=dispatch.pipeline.workgroup_bytes,
            subgroup_size=dispatch.device.subgroup_size,
            worked=worked if "lanes" in probes else None,
        )
    )

"""A dispatch: everything that determines a run, and the runs made from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import cached_property, partial
from math import prod
from time import perf_counter
from typing import TYPE_CHECKING, Any, Unpack
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..analysis.dead_flops import DEAD_FLOPS
from ..analysis.influence import Influence, find_influence
from ..bindings.binding import Bound
from ..bindings.buffers import hide, words
from ..bindings.variation import vary
from ..bounded_cache import remember
from ..codegen.build import build, build_with_bounds, build_with_dead_flops, build_with_sites, draft, lowered
from ..codegen.interleaved import MIN_SPEEDUP, interleaving_speedup
from ..codegen.program import Program
from ..dump import Stages
from ..fast_dataclass import frozen
from ..findings.races import RACES
from ..findings.runner import Changes
from ..instrument.shadows import Shadow
from ..ir.passes import ALL
from ..ir.rounding import Rounding
from ..launch.device_memory import DeviceMemory, SpareMemory
from ..launch.launch import Launch, RunOptions
from ..launch.long_loops import Stopped
from ..launch.partition import Outcome
from ..launch.run_history import history_of
from ..launch.schedules import LOCKSTEP, Schedule
from ..launch.workgroup_classes import Analysis, Classes, run_classes
from ..machine.layout import VECTOR_LANES
from ..mechanisms import is_on
from ..models import Device
from ..wgsl.check.pipeline import GRANTED
from ..wgsl.source import Span
from ..wgsl.typed import Module, Pipeline
from .workgroup_coverage import Place

if TYPE_CHECKING:
    from ..instrument.error_bounds import Instrumented

_LANES_PER_BATCH = 512
_EARLIER = 2  # bits: work after which units give way to smaller ones, as a part of the limit
_MOST_PROGRAMS = 64  # that are kept for each module, with different overrides, entry points and probes

_MOST_INFLUENCES = 16  # of these programs

_PROGRAMS: WeakKeyDictionary[Module, dict[tuple[Any, ...], Program]] = WeakKeyDictionary()
_INFLUENCES: WeakKeyDictionary[Module, dict[tuple[Any, ...], Influence]] = WeakKeyDictionary()


def _built(pipeline: Pipeline, **how: Any) -> Program:
    """Return the program of a pipeline, built with these options; those of a module are kept."""
    programs = _PROGRAMS.setdefault(pipeline.module, {})
    return remember(programs, program_key(pipeline, how), lambda: build(pipeline, **how), _MOST_PROGRAMS)


def _influence(pipeline: Pipeline, **how: Any) -> Influence:
    """Return the influences in the program that these options build; those of a module are kept."""
    influences = _INFLUENCES.setdefault(pipeline.module, {})
    return remember(
        influences, program_key(pipeline, how), lambda: find_influence(lowered(pipeline, **how)), _MOST_INFLUENCES
    )


def program_key(pipeline: Pipeline, how: dict[str, Any]) -> tuple[Any, ...]:
    """Return what tells the programs of a module apart."""
    values = tuple((override.name, repr(value)) for override, value in pipeline.values.items())
    return pipeline.entry.name, values, *how.items()


@frozen
class Dispatch:
    """Everything that determines a run.

    `programs`: those of runs without changed options, by probes, with the options; `ready_memory`: memories that hold
    the bindings already, for the first runs; `spare_memory`: what the others use; `stops`: how runs without probes were
    stopped in a loop; `units`: those that had to take turns so that it ended.
    """

    pipeline: Pipeline
    bound: list[Bound]
    grid: tuple[int, int, int]
    device: Device
    how: RunOptions
    programs: dict[frozenset[str], tuple[RunOptions, Program]] = field(
        default_factory=lambda: dict[frozenset[str], tuple[RunOptions, Program]]()
    )
    ready_memory: list[DeviceMemory] = field(default_factory=lambda: list[DeviceMemory]())
    spare_memory: SpareMemory = field(default_factory=SpareMemory)
    stops: list[Stopped] = field(default_factory=lambda: list[Stopped]())
    units: list[str] = field(default_factory=lambda: list[str]())

    @property
    def lanes(self) -> int:
        """The number of invocations in a workgroup."""
        return prod(self.pipeline.workgroup_size)

    def workgroups_per_batch(self, how: RunOptions) -> int:
        """Return how many workgroups run side by side in the lanes of one batch."""
        if how.schedule.takes_turns:
            return min(how.schedule.beside, self._count(how))
        if how.ignored is not None:
            return 1
        is_wide = self.lanes >= _LANES_PER_BATCH // 4 or not is_on("side by side")
        usual = 1 if is_wide else _LANES_PER_BATCH // self.lanes
        return max(1, min(max(usual, how.schedule.beside), prod(self.grid)))

    def _interleaved(self, launch: Launch) -> int:
        """Return how many workgroups to interleave instead: 0, or enough to fill a vector with a lane of each."""
        count = max(VECTOR_LANES, launch.program.workgroups_per_batch)
        if launch.count < 2 * count or not launch.can_interleave:
            return 0
        return count if interleaving_speedup(launch.program, count, launch.sample_loop_lanes()) >= MIN_SPEEDUP else 0

    def with_(self, **changes: Any) -> Dispatch:
        """Return the dispatch with other fields, and without what its runs have found so far."""
        return replace(self, programs={}, ready_memory=[], stops=[], units=[], **changes)

    @cached_property
    def influence(self) -> Influence:
        """What the loads, atomic operations and variables of its program influence, found with all passes on."""
        return _influence(self.pipeline, **{**self.build_options(frozenset(), self.how), "passes": ALL})

    def varied(self) -> tuple[Dispatch, list[str]]:
        """Return the dispatch with other values in its buffers, and their names: of those that decide neither a branch
        nor an address."""
        bound = [vary(b) if self.influence.only_data(b.variable.name) else b for b in self.bound]
        changed = [new.variable.name for old, new in zip(self.bound, bound, strict=True) if old is not new]
        return self.with_(bound=bound, spare_memory=SpareMemory()), changed

    @property
    def rounding(self) -> Rounding:
        return Rounding(
            fused=self.device.fma != "separate",
            contracts=self.device.fma == "contracted",
            cuts_f16=self.device.texel_f16 == "zero",
        )

    def run(
        self, probes: frozenset[str], progress: Callable[[int, int], None] | None = None, /, **changes: Unpack[Changes]
    ) -> tuple[Launch, Outcome]:
        """Run it with these probes, and with any `changes` to its options.

        Where a loop waits for invocations in lockstep with it, or for workgroups that have not begun, it runs again,
        with ever smaller units that take turns, until it ends. If it never does, the last run counts whose state
        repeats.
        """
        how = replace(self.how, **changes) if changes else self.how
        if how.schedule != LOCKSTEP:
            how = replace(how, schedule=how.schedule.sized(*self._sizes(how)))
        if self.units:
            known = (each for each in how.schedule.finer(*self._sizes(how)) if each.granularity in self.units)
            how = replace(how, schedule=next(known, how.schedule))
        launch, outcome = self._run(how, probes, progress)
        if outcome.stopped is None or not launch.may_wait(outcome.stopped):
            return launch, outcome
        finer = how.schedule.finer(*self._sizes(how))
        if finer:  # it may wait, so that its own state proves nothing
            outcome = replace(outcome, stopped=replace(outcome.stopped, turned=None))
        proven = launch, outcome
        for schedule in finer:
            work = how.work if schedule is finer[-1] else how.work >> _EARLIER
            launch, outcome = self._run(replace(how, schedule=schedule, work=work), probes, progress)
            if outcome.stopped is None:
                self.units.append(schedule.granularity)
                return launch, outcome
            if outcome.stopped.turned is not None:
                proven = launch, outcome
        return proven

    @property
    def count(self) -> int:
        """The number of workgroups that run."""
        return self._count(self.how)

    def _count(self, how: RunOptions) -> int:
        """Return how many workgroups run."""
        return prod(self.grid) if how.chosen is None else len(how.chosen)

    def _sizes(self, how: RunOptions) -> tuple[int, int, int]:
        """Return the invocations of a workgroup, the workgroups, and the invocations of a subgroup."""
        return self.lanes, self._count(how), self.device.subgroup_size

    def _run(
        self, how: RunOptions, probes: frozenset[str], progress: Callable[[int, int], None] | None
    ) -> tuple[Launch, Outcome]:
        if self.lanes * self._count(how) == 1:
            probes -= RACES  # a single invocation has no other to race with
        program, changed = self.program(probes, how), dict[str, Any]()
        if program.waits and how.schedule == LOCKSTEP:
            changed["workgroups_per_batch"] = 1  # else one waits for another in lockstep with it
            program = self._built(probes, how, **changed)
        elif program.waits and how.schedule != self._in_turns(how):
            how = replace(how, schedule=self._in_turns(how))
            program = self._built(probes, how)
        past = history_of(program, self.bound, self.grid, how)
        if past.one_thread:
            how = how.on_one_thread
        without_probes = partial(self._stopped, how) if program.probe_names else None
        launch = self._launch(program, how, self._device_memory(), without_probes)
        if past.interleaved is None:
            past.interleaved = self._interleaved(launch)
        if past.interleaved:
            wide = self._built(probes, how, **changed, interleaved=past.interleaved)
            wide = self._launch(wide, how, launch.device_memory)
            begun = perf_counter()
            outcome = wide.run(progress)
            past.note(wide, perf_counter() - begun)
            if not wide.depends_on_order or outcome.stopped is not None:
                return wide, outcome
            past.interleaved = 0
            launch = self._launch(program, how, self._device_memory())
        begun = perf_counter()
        outcome = launch.run(progress)
        past.note(launch, perf_counter() - begun)
        return launch, outcome

    def _launch(
        self,
        program: Program,
        how: RunOptions,
        memory: DeviceMemory,
        without_probes: Callable[[NDArray[np.int64]], Stopped | None] | None = None,
    ) -> Launch:
        more = self.spare_memory.make
        return Launch(program, self.bound, self.grid, self.device, how, memory, more, without_probes)

    def _device_memory(self) -> DeviceMemory:
        """Return memory that holds the bindings."""
        is_ready = self.ready_memory and is_on("ready memory")
        return self.ready_memory.pop() if is_ready else self.spare_memory.make(self.bound)

    def program(self, probes: frozenset[str], how: RunOptions | None = None) -> Program:
        """Return the program of a run with these probes."""
        how = self.how if how is None else how
        known = self.programs.get(probes)
        if known is not None and known[0] is how:
            return known[1]
        program = self._built(probes, how)
        if how is self.how:
            self.programs[probes] = how, program
        return program

    def _built(self, probes: frozenset[str], how: RunOptions, **changed: Any) -> Program:
        return _built(self.pipeline, **(self.build_options(probes, how) | changed))

    def _in_turns(self, how: RunOptions) -> Schedule:
        """Return its schedule with all workgroups side by side, as units that take turns."""
        if how.schedule.takes_turns:
            return replace(how.schedule, beside=0).sized(*self._sizes(how))
        return next(iter(how.schedule.finer(*self._sizes(how))), how.schedule)

    def _stopped(self, how: RunOptions, chosen: NDArray[np.int64]) -> Stopped | None:
        """Run these workgroups without probes. Returns where they were stopped in a loop, if they were."""
        if not self.stops:
            alike = replace(how, chosen=chosen, threads=1, trace=None, ignored=None)
            _, outcome = replace(self, how=alike, ready_memory=[])._run(alike, frozenset(), None)
            self.stops.extend([] if outcome.stopped is None else [outcome.stopped])
        return self.stops[0] if self.stops else None

    def build_options(self, probes: frozenset[str], how: RunOptions | None = None) -> dict[str, Any]:
        """Return the arguments of `codegen.build` for a run."""
        how = self.how if how is None else how
        return {
            "rounding": self.rounding,
            "probes": self._charged(probes),
            "workgroups_per_batch": self.workgroups_per_batch(how),
            "trace": None if how.trace is None else how.trace.variable,
            "policy": how.policy,
            "poisoned": how.poisoned,
            "passes": how.passes,
        }

    def stages(self, probes: frozenset[str]) -> Stages:
        """Return the stages of a run of all workgroups with these probes, for `sim.dump`, without running it."""
        options = self.build_options(probes, self.how)
        return Stages(
            self.pipeline,
            lambda: lowered(self.pipeline, **options),
            lambda: self.launch(_built(self.pipeline, **options), self.bound),
        )

    def classes(self, probes: frozenset[str]) -> Classes:
        """Run one workgroup of each class. Raises `Unproven` where workgroups cannot be classed."""
        probes = self._charged(probes) | {"reach"}
        how = self.how
        options: dict[str, Any] = {
            "rounding": self.rounding,
            "probes": probes,
            "policy": how.policy,
            "passes": how.passes,
        }
        key = ("classes", self.device, *options.values())
        analyses = remember(self.pipeline.kept, key, list[Analysis], _MOST_PROGRAMS)
        return run_classes(
            analyses,
            partial(draft, self.pipeline, **options),
            self.bound,
            self.grid,
            self.device,
            how,
            partial(self._stopped, how),
        )

    def _charged(self, probes: frozenset[str]) -> frozenset[str]:
        """Return the probes, with merged accesses where the device merges them."""
        return probes | {"merged"} if self.device.merge_adjacent and probes & {"banks", "sectors"} else probes

    @property
    def _how_built(self) -> dict[str, Any]:
        return {
            "rounding": self.rounding,
            "workgroups_per_batch": 1 if self._waits else self.workgroups_per_batch(self.how),
            "policy": self.how.policy,
        }

    @cached_property
    def _waits(self) -> bool:
        return _built(self.pipeline, **self.build_options(frozenset(), self.how)).waits

    def of(self, module: Module, budget: int) -> Dispatch:
        """Return the same dispatch of another module, which has the same bindings: a changed text."""
        values: dict[str | int, Any] = {override.name: value for override, value in self.pipeline.values.items()}
        pipeline = module.pipeline(self.pipeline.entry.name, values, GRANTED)
        variables = {variable.name: variable for variable in pipeline.globals}
        bound = [
            replace(each, variable=variable, type=pipeline.store_types[variable])
            for each in self.bound
            if (variable := variables.get(each.variable.name)) is not None
        ]
        how = replace(self.how, budget=budget)
        return self.with_(pipeline=pipeline, bound=bound, how=how)

    def launch(self, program: Program, bound: list[Bound]) -> Launch:
        return Launch(program, bound, self.grid, self.device, self.how)

    def build_with_bounds(self, subnormal: frozenset[str]) -> tuple[Program, Instrumented]:
        return build_with_bounds(self.pipeline, subnormal=subnormal, **self._how_built)

    @cached_property
    def marks(self) -> tuple[Launch, dict[Shadow, Bound]]:
        """A finished launch that noted, for each element, the site that stored it, and where."""
        program, shadows = build_with_sites(self.pipeline, **self._how_built)
        hidden = hide(shadows, self.bound, np.uint32)
        launch = self.launch(program, [*self.bound, *hidden.values()])
        launch.run()
        return launch, hidden

    def span_of_store(self, bound: Bound, byte: int) -> Span | None:
        """Return where in the source this byte of a buffer was stored last; None where it was not."""
        launch, hidden = self.marks
        marks = (int(launch.output(hidden[s])[byte // s.unit]) for s in hidden if s.of is bound.variable)
        mark = max(marks, default=0)
        return launch.program.sites[mark - 1].span if mark else None

    def number(self, place: Place) -> int:
        """Return the number of a workgroup in the grid."""
        (i, j, k), (x, y, _) = place, self.grid
        return i + x * (j + y * k)

    def place(self, number: int) -> Place:
        """Return where in the grid a workgroup is."""
        x, y, _ = self.grid
        return number % x, number // x % y, number // (x * y)

    def padding_flops(self, classes: Sequence[tuple[Place, int]]) -> int:
        """Count the FLOPs of all invocations whose results are unused (see `analysis.dead_flops`).

        `classes`: a workgroup of each class and how many it represents; empty to run all workgroups.
        """
        x, y, z = self.grid
        numbers = [self.number(place) for place, _ in classes]
        how = replace(self.how, chosen=np.array(numbers)) if classes else self.how
        program = build_with_dead_flops(self.pipeline, **self._how_built)
        counts = words(DEAD_FLOPS, np.zeros(x * y * z * self.lanes, np.uint32))
        launch = Launch(program, [*self.bound, counts], self.grid, self.device, how)
        launch.run()
        of_workgroups = launch.output(counts).reshape(-1, self.lanes).sum(axis=1, dtype=np.uint64)
        if not classes:
            return int(of_workgroups.sum())
        return sum(int(of_workgroups[number]) * size for number, (_, size) in zip(numbers, classes, strict=True))

    @cached_property
    def writers(self) -> Launch:
        """A finished launch that noted which invocation wrote each word."""
        return self.run(frozenset(("writers",)))[0]

    @cached_property
    def touched(self) -> dict[str, int]:
        """Bytes of each storage buffer that are accessed, by name."""
        return self.run(frozenset(("touched",)))[0].take_touched()

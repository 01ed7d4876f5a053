"""One launch: a program, its bindings and grid, run by the machine on several threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.binding import Bound, Key, is_bytes
from ..bindings.texture_arrays import BoundTexture
from ..codegen.interleaved import narrows_in_loops
from ..codegen.loops import may_wait
from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..ir.access import UNITS_PER_ACCESS, Access
from ..ir.passes import ALL, Passes
from ..ir.sites import SourceSite
from ..machine import layout as at
from ..mechanisms import is_on
from ..models import Device
from ..wgsl import types as t
from ..wgsl.typed import Variable
from .device_memory import BORROWED, DeviceMemory, make_device_memory
from .launch_cache import LAUNCH_SETUPS
from .long_loops import UNLIMITED, WORK, LongLoops, Stopped
from .machine_arrays import MachineArrays, units_of
from .partition import Outcome, run_parts, split, total
from .race_tables import LaunchShadow, race_rows
from .schedules import LOCKSTEP, Schedule
from .shadow_pool import SHADOWS, StorageShadow
from .thread_accesses import NOT_NOTED, ThreadAccesses, have_interfered, thread_accesses
from .threads import processors
from .tracing import Trace
from .workspace import LaunchParams, LaunchTables, Template, Workspace

_SAMPLED = 1 << 14  # loop iterations of a sampling run
_GRID = ("grid_x", "grid_y", "grid_z")  # inputs


@frozen
class Filling:
    """What workgroup memory holds when a workgroup starts: `first` in its first word, and in each word `step` more than
    in the one before it, modulo 2^32. `variable`: only this one, the others zero; `part`: only these bytes of it."""

    first: int = 0
    step: int = 0
    variable: str | None = None
    part: range | None = None


_ZEROED = Filling()


@frozen
class RunOptions:
    """Everything about a run that WGSL leaves open, or that replays vary.

    - `policy`: what out-of-bounds accesses do.
    - `budget`: loop iterations after which a batch is stopped.
    - `work`: work in loops after which a batch is stopped.
    - `schedule`: the order of execution.
    - `filling`: the initial values of workgroup memory.
    - `ignored`: a barrier that orders nothing; the run ends where it was needed.
    - `threads`: the largest number of threads.
    - `trace`: a variable whose values are noted.
    - `poisoned`: shuffles that return poison values for inactive lanes, by their offset in the source.
    - `passes`: optimizations of the program, which change no result.
    - `racing`: variables with races: units may take turns after each access to them.
    - `chosen`: the workgroups that run, by number in the grid; None: all.
    - `thorough`: reruns are made however long they take.
    """

    policy: str = "clamp"
    budget: int = UNLIMITED
    work: int = WORK
    schedule: Schedule = LOCKSTEP
    filling: Filling = _ZEROED
    ignored: SourceSite | None = None
    threads: int | None = None
    trace: Trace | None = None
    poisoned: frozenset[int] = frozenset()
    passes: Passes = ALL
    racing: frozenset[str] = frozenset()
    chosen: NDArray[np.int64] | None = None
    thorough: bool = False

    @cached_property
    def on_one_thread(self) -> RunOptions:
        """These options for one thread, made once for all runs."""
        return replace(self, threads=1)

    @property
    def of_tables(self) -> tuple[object, ...]:
        """Those that the tables of a launch without a trace depend on."""
        return self.budget, self.ignored, self.schedule, self.filling, self.racing


class Launch:
    """A program with its device memory, which is allocated unless it is passed. `run` may be called once.

    `more_memory` makes it again, where `run` needs it. `without_probes` runs workgroups of the dispatch, by number,
    without probes, and returns how that was stopped. `notes`: those of a sample (see `SampleMemory`).
    """

    def __init__(
        self,
        program: Program,
        bound: list[Bound],
        grid: tuple[int, int, int],
        device: Device,
        options: RunOptions,
        device_memory: DeviceMemory | None = None,
        more_memory: Callable[[list[Bound]], DeviceMemory] = make_device_memory,
        without_probes: Callable[[NDArray[np.int64]], Stopped | None] | None = None,
        notes: NDArray[np.int64] | None = None,
    ) -> None:
        self._texel_bytes = {b.variable.name: b.format.bytes for b in bound if isinstance(b, BoundTexture)}
        self._setup = LAUNCH_SETUPS.of(program, device, options.schedule.layout, options.policy, self._texel_bytes)
        self.program = self._setup.program or program
        self.grid = grid
        self.device = device
        self._bound = bound
        self.options = options
        self._more_memory, self._notes, self.threads_interfered = more_memory, notes, False
        self._use(device_memory or make_device_memory(bound))
        self._lanes = self._setup.lockstep_groups.lanes
        self.count = prod(grid) if options.chosen is None else len(options.chosen)
        in_turns = not program.waits or program.workgroups_per_batch >= self.count > 1
        self._order = (options.schedule if in_turns else LOCKSTEP).order(self.count)
        if options.chosen is not None:
            self._order = options.chosen[self._order] if self._order.size else options.chosen
        self._without_probes, self._all_end = without_probes, False
        self.race_shadow = LaunchShadow(program, self._setup.watched, self._places, len(self.storage))

    def _use(self, device_memory: DeviceMemory) -> None:
        """Run on this memory, with nothing noted yet."""
        self.device_memory = device_memory
        self._places, self.storage = device_memory.places, device_memory.words
        words, program = len(self.storage), self.program
        noted = words if "writers" in program.probe_names else 2 * words if program.interleaved else 1
        self._writers = np.zeros(noted, np.int64) if self._notes is None else self._notes
        self._touched = np.zeros(words if "touched" in program.probe_names else 1, np.uint8)

    @property
    def writable(self) -> list[Bound]:
        """The bindings that the shader can store to."""
        return [b for b in self._bound if b.writable]

    def output(self, bound: Bound) -> Any:
        """Return the contents of a binding in the form in which it was given."""
        return bound.output(self.device_memory.part(bound))

    def writer(self, bound: Bound, byte: int) -> int | None:
        """Return the last invocation that stored to this byte, counted through the grid; None if there is none."""
        number = int(self._writers[(self._places[bound.variable.name] + byte) // 4])
        if not number:
            return None
        place, lane = divmod(number - 1, self._lanes)
        return self.number(place) * self._lanes + lane

    def take_touched(self) -> dict[str, int]:
        """Return the bytes of each storage buffer that were accessed, in whole words, and free the notes.

        The launch must have the probe `touched`.
        """
        noted, self._touched = self._touched, np.zeros(1, np.uint8)
        return {b.variable.name: self._noted(noted, b) for b in self._bound if b.variable.space == "storage"}

    def _noted(self, noted: NDArray[np.uint8], bound: Bound) -> int:
        first, size = self._places[bound.variable.name] // 4, len(bound.data)
        return min(size, 4 * int(np.count_nonzero(noted[first : first + -(-size // 4)])))

    def _notes_of(self, bound: Bound) -> NDArray[np.uint8]:
        first = self._places[bound.variable.name] // 4
        return self._touched[first : first + -(-len(bound.data) // 4)]

    def reach(self) -> dict[str, int]:
        """Return the byte after the last word of each storage buffer that was accessed; 0 where none was.

        The launch must have the probe `touched`.
        """
        return {b.variable.name: self._reached(b) for b in self._bound if b.variable.space == "storage"}

    def _reached(self, bound: Bound) -> int:
        words = np.flatnonzero(self._notes_of(bound))
        return min(len(bound.data), 4 * int(words[-1]) + 4) if words.size else 0

    @property
    def invocations(self) -> int:
        """Invocations of all workgroups that run."""
        return self.count * self._lanes

    def outputs(self) -> dict[Key, Any]:
        """Return the contents of every writable binding, by the key it was passed with.

        Large ones are views where they are most of the memory: a copy would take as much again.
        """
        writable = self.writable
        size = sum([len(b.data) for b in writable])
        if size < BORROWED or 2 * size < self.storage.nbytes:
            return {b.key: self.output(b) for b in writable}
        views = self.views()
        return {b.key: self.output(b) if is_bytes(b.given) else views[b.key] for b in writable}

    def views(self) -> dict[Key, NDArray[Any]]:
        """Return views of the elements of every writable binding, by the key it was passed with."""
        return {b.key: b.view(self.device_memory.part(b)) for b in self.writable}

    def variable_of(self, key: Key) -> str:
        """Return the name of the variable that was passed with this key."""
        return next(b.variable.name for b in self._bound if b.key == key)

    def number(self, place: int) -> int:
        """Return the number in the grid of the workgroup at this position of the launch order."""
        return int(self._order[place]) if self._order.size else place

    def workgroup(self, place: int) -> tuple[int, int, int]:
        """Return the workgroup_id of the workgroup at this position of the launch order."""
        index = self.number(place)
        x, y, _ = self.grid
        return index % x, index // x % y, index // (x * y)

    def type_of(self, variable: Variable) -> t.Type:
        """Return the store type of a variable, with override values applied."""
        return self.program.types[variable]

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """Run every workgroup, on several threads. Where these interfered, one thread runs all again, on new memory.

        `progress` is called with workgroups done, and all of them.
        """
        threads = self._threads
        outcome = total(self._outcomes(self._parts(threads), threads, progress))
        if not self.threads_interfered:
            return outcome
        self._use(self._more_memory(self._bound))
        return total(self._outcomes(self._parts(1), 1, None))

    def _parts(self, threads: int) -> list[tuple[int, int]]:
        program, work = self.program, len(self.program.code) * self._lanes
        return split(self.count, threads, program.workgroups_per_batch, work, bool(program.loops))

    def run_each(self) -> list[Outcome]:
        """Run every workgroup. Returns the outcome of each."""
        return self._outcomes([(place, place + 1) for place in range(self.count)], self._threads, None)

    def run_one_by_one(self, count: int) -> tuple[list[list[int]], list[list[int]]]:
        """Run the first `count` workgroups, one after the other on this thread, even where one is stopped. Returns the
        rows of `layout.BOUNDS` and `layout.TALLIES` of the first. The launch may not watch races."""
        template = self._template()
        workspace = template.workspace().begin(self._params(), self.race_shadow.shadow())
        workspace.finish(0, 1)
        counted = workspace.memory_counts
        for place in range(1, count):
            workspace.finish(place, place + 1)
        template.keep([workspace])
        return counted

    def _outcomes(
        self, parts: list[tuple[int, int]], threads: int, progress: Callable[[int, int], None] | None
    ) -> list[Outcome]:
        template, params = self._template(), self._params()
        parallel = threads > 1 and len(parts) > 1
        used: dict[int, tuple[Workspace, StorageShadow, ThreadAccesses]] = {}

        def run_part(first: int, last: int, thread: int) -> Outcome:
            if thread not in used:
                shadow, accesses = self.race_shadow.shadow(), self._thread_accesses() if parallel else NOT_NOTED
                used[thread] = template.workspace().begin(params, shadow, accesses), shadow, accesses
            workspace, *_ = used[thread]
            return workspace.run(first, last)

        outcomes = run_parts(run_part, parts, threads, progress)
        self.threads_interfered |= parallel and have_interfered([accesses for _, _, accesses in used.values()])
        for workspace, shadow, _ in used.values() if self.race_shadow.watches_storage else ():
            SHADOWS.give_back(shadow, workspace.clock)
        template.keep(workspace for workspace, *_ in used.values())
        self.depends_on_order = self.program.interleaved and any(map(_depends_on_order, outcomes))
        return [self._in_texels(outcome) for outcome in outcomes] if self._texel_bytes else outcomes

    def racing(self, outcome: Outcome) -> frozenset[str]:
        """Return the variables in which its run has found races."""
        probes = [self.program.race_probes[int(row[at.RACE_SECOND])] for row in race_rows(outcome.races)]
        return frozenset(self.program.accesses[probe.access].variable.name for probe in probes)

    def may_wait(self, stopped: Stopped) -> bool:
        """Whether the loop in which the run was stopped may wait for others, which would go on if they took turns.

        A loop that has used up its work otherwise is taken to be long: its state changes, and no atomic operation
        decides whether it ends.
        """
        _, awaited = self.program.loops[stopped.loop]
        if stopped.turned is None and not awaited:
            return False
        return may_wait(self.program, stopped.loop, alone=self.count <= self.program.workgroups_per_batch)

    def sample_loop_lanes(self) -> float:
        """Run a workgroup from the middle of the grid, ahead of the run. Returns the fraction of lanes that loops need.

        The run gives the same results if no workgroup reads what another has stored.
        """
        workspace = self._template().workspace().begin(self._params(), self.race_shadow.shadow())
        return workspace.sample_loop_lanes(self.count // 2, _SAMPLED)

    @property
    def _threads(self) -> int:
        """How many threads may run it: one if their order matters, or if workgroups use atomic operations on storage,
        in whose order they usually meet."""
        options, program = self.options, self.program
        ordered = options.schedule != LOCKSTEP or program.has_storage_atomics or program.waits
        if options.threads == 1 or ordered or not is_on("threads"):
            return 1
        return max(1, min(options.threads or processors(), self.race_shadow.threads, self.count))

    def _thread_accesses(self) -> ThreadAccesses:
        """Make the notes of a thread: of the bindings that the shader can store to."""
        end = max([self._places[b.variable.name] + len(b.data) for b in self.writable], default=0)
        return thread_accesses(-(-end // self.race_shadow.grains["storage"]), loads=not self.program.independent)

    def _ends(self, place: int) -> Stopped | None:
        """Run the batch from this position on without probes. Returns how that was stopped, if it was.

        Where workgroups may see each other, all of them run, once.
        """
        if self._all_end or self._without_probes is None:
            return None
        last = min(place + self.program.workgroups_per_batch, self.count)
        places = range(place, last) if self.program.independent else range(self.count)
        stopped = self._without_probes(np.array([self.number(each) for each in places], np.int64))
        self._all_end = stopped is None and not self.program.independent
        return stopped

    @property
    def can_interleave(self) -> bool:
        """Whether workgroups may be interleaved in the lanes of a row, and the program has loops that may gain by it.

        No probe may see lanes, and lanes must not see each other. The order of workgroups then matters only if two of
        them store to one word, which the run detects.
        """
        options, program = self.options, self.program
        special = options.trace is not None or options.ignored is not None or options.schedule != LOCKSTEP
        if (
            program.probe_names
            or special
            or not is_on("interleaved")
            or "interleaved" not in options.passes
            or not narrows_in_loops(program)
        ):
            return False
        return program.independent and not program.exchanges_values

    # ---- textures ----

    def _in_texels(self, outcome: Outcome) -> Outcome:
        """Convert the bytes of texture sites to those of the texture formats."""
        for probe, tally in zip(self.program.memory_probes, outcome.tallies, strict=False):
            site = self.program.sites[probe.site]
            if site.variable in self._texel_bytes:
                tally[at.BYTES] = tally[at.BYTES] * site.bytes_per_lane // texture_handles.TEXEL_BYTES
        return outcome

    # ---- arrays ----

    def _template(self) -> Template:
        """Return the template of the workspaces. A traced launch has one of its own."""
        is_traced = self.options.trace is not None
        if self._setup.template is not None and not is_traced:
            return self._setup.template
        template = Template(self.machine_arrays())
        if not is_traced:
            LAUNCH_SETUPS.keep(self._setup, template)
        return template

    def machine_arrays(self) -> tuple[Any, ...]:
        """Make the arguments of `machine.core.run` for this program, before a launch fills them in."""
        options, setup = self.options, self._setup
        notes = 0 if options.trace is None else options.trace.limit
        arrays = MachineArrays(
            self.program, self.device, options.schedule.layout, setup.lockstep_groups, self._texel_bytes, notes
        )
        return arrays.arguments(setup.accesses, setup.watched)

    def _params(self) -> LaunchParams:
        """Return what this launch puts into the arrays of the machine."""
        ends = None if self._without_probes is None else self._ends
        if self.options.trace is None:
            tables = self._setup.tables(self.grid, self.options.of_tables, self._placed(), self._tables)
        else:
            tables = self._tables()
        return LaunchParams(
            tables,
            (self.storage, self._order, self._writers, self._touched),
            LongLoops(self.program, self.options.work, ends, self.invocations > 1),
        )

    def _tables(self) -> LaunchTables:
        """Make the part of the parameters that does not depend on data."""
        options, access = self.options, self._access_table()
        ignored = -1 if options.ignored is None else self.program.sites.index(options.ignored)
        config = (*self.grid, options.budget, ignored, options.ignored is not None)
        config += (*self._filled, self.program.shared_bytes // 4)
        order, in_turns = options.schedule, self._setup.lockstep_groups.count > 1
        config += (order.seed, order.pick, order.depth, order.patience, order.switches and in_turns)
        inputs = self.program.inputs
        rows = {inputs[name]: n for name, n in zip(_GRID, self.grid, strict=True) if name in inputs}
        watched = self._setup.watched.table(access)
        return LaunchTables(np.array(config, np.int64), rows, access, watched, self._traced())

    @property
    def _filled(self) -> tuple[int, int, int, int]:
        """The values of workgroup memory at the start, their step, and the words that have them: the first, and how
        many."""
        filling = self.options.filling
        words = range(self.program.shared_bytes // 4 if filling != _ZEROED else 0)
        if filling.variable is not None:
            start = self.program.shared_offsets[filling.variable]
            part = filling.part or range(t.size_of(self.workgroup_type(filling.variable)))
            words = range((start + part.start) // 4, -(-(start + part.stop) // 4))
        return filling.first, filling.step, words.start, len(words)

    def workgroup_type(self, name: str) -> t.Type:
        """Return the type of the variable of this name in workgroup memory."""
        return next(kind for each, kind in self.program.types.items() if each.name == name)

    def _traced(self) -> NDArray[np.int64]:
        """Return the row of `layout.TRACED`: all lanes are traced if the variable is in workgroup memory."""
        traced = np.zeros(1 + self._lanes, np.int64)
        traced[at.TRACED_WORKGROUP] = -1
        if self.options.trace is not None:
            (x, y, z), (width, height, _) = self.options.trace.workgroup, self.grid
            number = (z * height + y) * width + x
            runs_at = np.flatnonzero(self._order == number).tolist() if self._order.size else [number]
            traced[at.TRACED_WORKGROUP] = next(iter(runs_at), -1)
            shared = any(point.variable.space == "workgroup" for point in self.program.trace_points)
            lanes = None if shared else self.options.trace.lanes
            traced[at.TRACED_LANES :] = [lanes is None or lane in lanes for lane in range(self._lanes)]
        return traced

    def _access_table(self) -> NDArray[np.int64]:
        table = self._placed()
        if not self.options.racing:
            return table
        racing = [access.variable.name in self.options.racing for access in self.program.accesses]
        table = table.copy()
        table[: len(racing) * UNITS_PER_ACCESS, at.RACING] = np.repeat(racing, UNITS_PER_ACCESS)
        return table

    def _placed(self) -> NDArray[np.int64]:
        """Return the access table without races."""
        return self._setup.accesses.at(self._places, self._sizes)

    @property
    def _sizes(self) -> dict[str, int]:
        return {b.variable.name: len(b.data) for b in self._bound}

    def limits(self) -> list[int]:
        """Return the highest in-bounds address of each access."""
        return self._access_table()[::UNITS_PER_ACCESS, at.LIMIT].tolist()

    def elements(self, access: Access) -> int:
        """Return the length of the array that an access indexes."""
        return access.elements(self._sizes.get(access.variable.name, 0))

    def line(self, access: Access) -> int:
        """Return the units of an access per line of memory."""
        return units_of(self.device.line_bytes, access, self._texel_bytes)


def _depends_on_order(outcome: Outcome) -> bool:
    """Whether the result of interleaved workgroups depends on their order.

    It does if a loop does not terminate, lanes miss a barrier, or two workgroups store to one word.
    """
    return outcome.stopped is not None or bool(
        outcome.events[at.HEADER, at.RECORDED] or outcome.bounds[:, at.OUTSIDE].any()
    )

"""One launch: the arrays the machine runs on, and the threads it runs in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..bindings.bound import Bound, Key
from ..bindings.textures import BoundTexture
from ..machine import layout as at
from ..machine.native import machine
from ..machine.records import kept_words, make_probes, make_queue, queue_words
from ..models import Device
from ..program import handles
from ..program.access import NOWHERE, UNITS_PER_ACCESS, Access
from ..program.passes import ALL, Passes
from ..program.program import MemoryProbe, Program
from ..program.sites import Site
from ..wgsl import types as t
from ..wgsl.records import frozen
from ..wgsl.typed import Variable
from .arena import Arena, make_arena, zeros
from .pieces import Desk, Outcome, in_pieces, in_threads, total
from .schedules import LOCKSTEP, MIRRORED, Schedule
from .threads import processors
from .tracing import Trace
from .watching import Shadow, Watching

POLICIES = {"clamp": at.CLAMP, "zero": at.ZERO, "wrap": at.WRAP}
BUDGET = 1 << 24  # turns of loops: seconds, where loops of kernels that end take thousands
_NEVER = NOWHERE - 1  # the largest address of an access that needs no bound
_EVENTS = 256  # kinds of events at different places that one piece of a run may note


@frozen
class How:
    """Everything about a run that WGSL leaves open, or that is changed to see what depends on it.

    `policy`: what accesses out of bounds do. `filling`: what each word of workgroup memory holds at first. `ignored`:
    a barrier that is taken to order nothing; the run ends where it was needed. `threads`: at most. `trace`: a variable
    whose values are noted. `passes`: by which the program is made shorter; nothing depends on them. `chosen`: the
    workgroups that run, by their numbers in the grid (None: all).
    """

    policy: str = "clamp"
    budget: int = BUDGET
    schedule: Schedule = LOCKSTEP
    filling: int = 0
    ignored: Site | None = None
    threads: int | None = None
    trace: Trace | None = None
    passes: Passes = ALL
    chosen: NDArray[np.int64] | None = None


class Launch:
    """A program with its memory, `arena` or one of its own. `run` may be called once."""

    def __init__(
        self,
        program: Program,
        bound: list[Bound],
        grid: tuple[int, int, int],
        device: Device,
        how: How,
        arena: Arena | None = None,
    ) -> None:
        self._texel_bytes = {b.variable.name: b.format.bytes for b in bound if isinstance(b, BoundTexture)}
        self.program = self._with_widths(program)
        self.grid = grid
        self.device = device
        self._bound = bound
        self.how = how
        arena = arena or make_arena(bound)
        self._places, self.storage = arena.places, arena.words
        kinds, words = {probe.kind for probe in program.probes}, len(self.storage)
        self._writers = np.zeros(words if "writers" in kinds else 1, np.int64)
        self._touched = np.zeros(words if "touched" in kinds else 1, np.uint8)
        self._lanes = prod(program.workgroup_size)
        self._strand = self._strand_lanes()
        lanes = program.together * self._strand
        self._width = -(-lanes // at.VECTOR_LANES) * at.VECTOR_LANES
        self.count = prod(grid) if how.chosen is None else len(how.chosen)
        self._order = how.schedule.order(self.count)
        if how.chosen is not None:
            self._order = how.chosen[self._order] if self._order.size else how.chosen
        self.watching = Watching(program, self._places, len(self.storage))

    def output(self, bound: Bound) -> Any:
        start = self._places[bound.variable.name]
        return bound.output(self.storage.view(np.uint8)[start : start + len(bound.data)])

    def writer(self, bound: Bound, byte: int) -> int | None:
        """The invocation, counted through the grid, that stored to this byte last."""
        number = int(self._writers[(self._places[bound.variable.name] + byte) // 4])
        if not number:
            return None
        place, lane = divmod(number - 1, self._lanes)
        return self.number(place) * self._lanes + lane

    def take_touched(self) -> dict[str, int]:
        """Bytes of each storage buffer that were accessed, in whole words; of a launch with the probe `touched`, once:
        what it noted is let go."""
        noted, self._touched = self._touched, np.zeros(1, np.uint8)
        return {b.variable.name: self._noted(noted, b) for b in self._bound if b.variable.space == "storage"}

    def _noted(self, noted: NDArray[np.uint8], bound: Bound) -> int:
        first, size = self._places[bound.variable.name] // 4, len(bound.data)
        return min(size, 4 * int(np.count_nonzero(noted[first : first + -(-size // 4)])))

    @property
    def invocations(self) -> int:
        return self.count * self._lanes

    def outputs(self) -> dict[Key, Any]:
        """Every writable binding as it is now, by the key it was given by."""
        return {b.key: self.output(b) for b in self._bound if b.writable}

    def number(self, place: int) -> int:
        """The number in the grid of the workgroup that runs at this place."""
        return int(self._order[place]) if self._order.size else place

    def workgroup(self, place: int) -> tuple[int, int, int]:
        """The workgroup_id of the workgroup that runs at this place."""
        index = self.number(place)
        x, y, _ = self.grid
        return index % x, index // x % y, index // (x * y)

    def type_of(self, variable: Variable) -> t.Type:
        """The store type of a variable, with what overrides decide."""
        return self.program.types[variable]

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """Run every workgroup, in pieces on as many threads as there are processors where that cannot matter."""
        work = len(self.program.code) * self._lanes
        program, dealt = self.program, self.watching.watches_storage  # each thread's pieces are noted in its own shadow
        pieces = in_pieces(self.count, self._threads(), program.together, work, bool(program.loops), dealt)
        return total(self._outcomes(pieces, progress))

    def run_each(self) -> list[Outcome]:
        """The same, and what came of each workgroup alone."""
        return self._outcomes([(place, place + 1) for place in range(self.count)], None)

    def _outcomes(self, pieces: list[tuple[int, int]], progress: Callable[[int, int], None] | None) -> list[Outcome]:
        threads = self._threads()
        access = self._access_table()
        shadows = self.watching.shadows(threads)
        ready = machine().ready
        idle: dict[int, list[Desk]] = {id(shadow): [] for shadow in shadows}

        def piece(first: int, last: int, shadow: Shadow) -> Outcome:
            desks = idle[id(shadow)]
            desk = desks.pop() if desks else Desk(ready, self._arguments(access, shadow))
            outcome = desk.run(first, last)
            desks.append(desk)
            return outcome

        outcomes = in_threads(piece, pieces, threads, shadows, progress)
        self.met = threads > 1 and (self.watching.overlap(shadows) or any(map(self._stores_outside, outcomes)))
        return [self._in_texels(outcome) for outcome in outcomes]

    def _threads(self) -> int:
        """How many threads may work on it: one where workgroups see each other, or go in an order that counts."""
        if self.how.schedule != LOCKSTEP or not self._independent():
            return 1
        return max(1, min(self.how.threads or processors(), self.watching.threads, self.count))

    def _stores_outside(self, outcome: Outcome) -> bool:
        """Whether stores out of bounds have gone to places that others store to as well."""
        accesses = [self.program.accesses[probe.access] for probe in self.program.probes]
        counts = zip(accesses, outcome.bounds[:, at.OUTSIDE], strict=False)
        return self.how.policy != "zero" and any(n > 0 and a.writes and a.space == "storage" for a, n in counts)

    @property
    def _exchanges(self) -> bool:
        """Whether subgroups exchange values, so that their invocations stay side by side."""
        return any(site.kind == "subgroup" for site in self.program.sites)

    def _places_taken(self, size: int) -> NDArray[np.int64]:
        """Which invocation of a strand each of its lanes is."""
        lanes, group = np.arange(size), self.device.subgroup_size if self._exchanges else 1
        if self.how.schedule != MIRRORED or size % group:
            return lanes
        return lanes.reshape(-1, group)[::-1].reshape(-1)

    def _strand_lanes(self) -> int:
        """Invocations that go in step from barrier to barrier."""
        match self.how.schedule.alone:
            case "workgroup":
                return self._lanes
            case "invocation" if not self._exchanges:
                return 1
            case _:
                return min(self._lanes, self.device.subgroup_size)

    def _independent(self) -> bool:
        """Whether workgroups cannot see each other: nothing in storage is both read and written, or atomic."""
        storage = [a for a in self.program.accesses if a.space == "storage"]
        written = {a.variable for a in storage if a.writes}
        read = {a.variable for a in storage if not a.writes}
        atomic = any(s.kind == "atomic" and s.space == "storage" for s in self.program.sites)
        return not atomic and not (written & read)

    # ---- textures: counted as their formats pack them ----

    def _with_widths(self, program: Program) -> Program:
        """The program, whose texture sites have the width of the texels that are bound."""
        widths = self._texel_bytes
        if not widths:
            return program
        sites = [replace(s, bytes_per_lane=widths[s.variable]) if s.variable in widths else s for s in program.sites]
        return replace(program, sites=sites)

    def _in_texels(self, outcome: Outcome) -> Outcome:
        """The outcome, whose bytes of texture sites are those of the format."""
        for probe, tally in zip(self.program.probes, outcome.tallies, strict=False):
            site = self.program.sites[probe.site]
            if site.variable in self._texel_bytes:
                tally[at.BYTES] = tally[at.BYTES] * site.bytes_per_lane // handles.TEXEL_BYTES
        return outcome

    # ---- arrays ----

    def _arguments(self, access: NDArray[np.int64], shadow: Shadow) -> tuple[Any, ...]:
        """What the machine takes, see `machine.core.run`, for no workgroups yet."""
        program = self.program
        shared = zeros(max(1, program.shared_bytes // 4 * program.together))
        events = np.zeros((_EVENTS, at.EVENT_SIZE), np.int64)
        strands = -(-self._lanes // self._strand)
        configs = np.stack([self._config(strand) for strand in range(strands)])
        registers = zeros(strands, program.rows, self._width)
        for strand in range(strands):
            self._fill(registers[strand], strand)
        patterns = np.zeros((strands, program.rows, at.PATTERN_SIZE), np.int64)
        places, turns = np.zeros((strands, at.PLACE_SIZE), np.int64), np.zeros(strands, np.int64)
        watch = self.watching.watch(access, self._width)._replace(storage=shadow)
        return (
            *(program.code, configs, registers, shared, self.storage, access, events, patterns, places, turns),
            *(self._order, self._probes(), watch),
            make_queue(*(zeros(words(program.code, self._width)) for words in (queue_words, kept_words))),
        )

    def _config(self, strand: int) -> NDArray[np.int64]:
        config = np.zeros(at.CONFIG_SIZE, np.int64)
        config[at.LANES] = min(self._strand, self._lanes - strand * self._strand)
        config[at.SUBGROUP] = self.device.subgroup_size
        config[at.TOGETHER] = self.program.together
        config[at.SHARED_WORDS] = self.program.shared_bytes // 4
        config[at.GRID_X : at.GRID_Z + 1] = self.grid
        config[at.BUDGET] = self.how.budget
        config[at.WGID_ROW] = self.program.inputs["group_x"]
        config[at.WIDTH] = self._width
        ignored = self.how.ignored
        config[at.IGNORED] = -1 if ignored is None else self.program.sites.index(ignored)
        config[at.STOP] = ignored is not None
        config[at.SEED], config[at.STRANDS] = self.how.schedule.seed, -(-self._lanes // self._strand)
        config[at.FIRST_LANE] = strand * self._strand
        config[at.WATCHES], config[at.FILLING] = bool(self.program.watched), self.how.filling
        return config

    def _fill(self, registers: NDArray[np.uint32], strand: int) -> None:
        """Put constants and inputs into the rows of a strand."""
        for bits, row in self.program.constants.items():
            registers[row] = bits
        size = min(self._strand, self._lanes - strand * self._strand)
        lane = strand * self._strand + self._places_taken(size)[np.arange(self._width) % size]
        x, y, _ = self.program.workgroup_size
        subgroup = self.device.subgroup_size
        workgroup = np.arange(self._width) // size
        values: dict[str, Callable[[], Any]] = {
            "local_x": lambda: lane % x,
            "local_y": lambda: lane // x % y,
            "local_z": lambda: lane // (x * y),
            "local_index": lambda: lane,
            "grid_x": lambda: self.grid[0],
            "grid_y": lambda: self.grid[1],
            "grid_z": lambda: self.grid[2],
            "subgroup_lane": lambda: lane % subgroup,
            "subgroup_index": lambda: lane // subgroup,
            "subgroup_size": lambda: subgroup,
            "subgroup_count": lambda: -(-self._lanes // subgroup),
            "shared_base_4": lambda: workgroup * (self.program.shared_bytes // 4),
            "shared_base_2": lambda: workgroup * (self.program.shared_bytes // 2),
            **dict.fromkeys(("group_x", "group_y", "group_z"), lambda: 0),  # the machine's affair
        }
        for name, row in self.program.inputs.items():
            registers[row] = values[name]()

    def _access_table(self) -> NDArray[np.int64]:
        table = np.zeros((max(1, len(self.program.accesses)), UNITS_PER_ACCESS, at.ACCESS_SIZE), np.int64)
        sizes = {b.variable.name: len(b.data) for b in self._bound}
        row = [0] * at.ACCESS_SIZE
        for number, access in enumerate(self.program.accesses):
            count = self._count(access, sizes)
            row[at.BASE] = self._start(access) // access.unit + access.offset
            row[at.LIMIT] = (count - 1) * access.stride if access.stride else _NEVER
            row[at.UNIT], row[at.UNITS] = access.unit, access.units
            row[at.SPACE] = at.SHARED if access.space == "workgroup" else at.GLOBAL
            row[at.POLICY] = self._policy_of(access)
            row[at.COUNT_OF] = count
            row[at.STRIDE] = access.stride
            table[number] = row
        table[:, :, at.BASE] += np.arange(UNITS_PER_ACCESS)
        return table.reshape(-1, at.ACCESS_SIZE)

    def _policy_of(self, access: Access) -> int:
        """Of an access past the end. A texel that is not there is never stored; its address, clamped, is that of the
        border, and wraps around to that of the nearest texel that is."""
        if not isinstance(access.variable.type, t.Texture):
            return POLICIES[self.how.policy]
        if access.writes:
            return at.ZERO
        return at.CLAMP if self.device.texel_outside == "zero" else at.WRAP

    def _start(self, access: Access) -> int:
        if access.space == "index":
            return 0
        name = access.variable.name
        return self.program.shared_offsets[name] if access.space == "workgroup" else self._places[name]

    def _count(self, access: Access, sizes: dict[str, int]) -> int:
        if access.count is not None:
            return access.count
        assert access.tail is not None
        offset, stride = access.tail
        return (sizes[access.variable.name] - offset) // stride

    def limits(self) -> list[int]:
        """The highest address of each access that is in bounds."""
        return self._access_table()[::UNITS_PER_ACCESS, at.LIMIT].tolist()

    def elements(self, access: Access) -> int:
        """How many elements the array has that an access indexes."""
        return self._count(access, {b.variable.name: len(b.data) for b in self._bound})

    def _probes(self) -> Any:
        program = self.program
        limit = 0 if self.how.trace is None else self.how.trace.limit
        counts = (len(program.probes), self._width, len(program.runs), len(program.inspected))
        probes = make_probes(*counts, self._writers, self._touched, self._watched(), limit, program.margins)
        for slot, probe in enumerate(program.probes):
            self._rule(probe, probes.rules[slot], probes.orders[slot])
        return probes

    def _watched(self) -> NDArray[np.int64]:
        """The workgroup that is traced, and its lanes: all of them for memory that they share."""
        watched = np.zeros(1 + self._lanes, np.int64)
        watched[0] = -1
        if self.how.trace is not None:
            (x, y, z), (width, height, _) = self.how.trace.workgroup, self.grid
            watched[0] = (z * height + y) * width + x
            shared = any(point.variable.space == "workgroup" for point in self.program.points)
            lanes = None if shared else self.how.trace.lanes
            watched[1:] = [lanes is None or lane in lanes for lane in range(self._lanes)]
        return watched

    def _rule(self, probe: MemoryProbe, row: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        access = self.program.accesses[probe.access]
        rule = self.device.bank_rule(access.bytes_per_lane, access.writes)
        row[at.SHIFT], row[at.COLUMNS], row[at.MERGE] = rule.shift, rule.columns, rule.merge
        row[at.ORDERED] = len(rule.order)
        row[at.TURNS_TAKEN] = self.program.sites[probe.site].takes_turns
        order[: len(rule.order)] = rule.order
        row[at.SECTOR] = self._units(self.device.sector_bytes, access)
        row[at.LINE] = self.line(access)

    def line(self, access: Access) -> int:
        """How many units of an access a line of memory holds."""
        return self._units(self.device.line_bytes, access)

    def _units(self, size: int, access: Access) -> int:
        """Of textures as many texels as the format packs into `size` bytes, which take more room here."""
        room = handles.TEXEL_BYTES // self._texel_bytes.get(access.variable.name, handles.TEXEL_BYTES)
        return size * room // access.unit

"""One launch: the arrays the machine runs on, and the threads it runs in."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bound import Bound
from .machine import layout as at
from .machine.lanes import VECTOR_LANES
from .models import Device
from .program import handles
from .program.access import UNITS_PER_ACCESS, Access
from .program.program import MemoryProbe, Program
from .textures import BoundTexture
from .tracing import Trace
from .wgsl import types as t

POLICIES = {"clamp": at.CLAMP, "zero": at.ZERO, "wrap": at.WRAP}
_NEVER = 0xFFFFFFFF  # the largest address of an access that needs no bound
_EVENTS = 256  # kinds of events at different places that one piece of a run may note
_ALIGN = handles.TEXELS  # bytes, between bindings: no line of memory, or of texels, belongs to two


@dataclass
class Outcome:
    """What the machine counted: see `layout` for the rows. `finished`: workgroups that ran to their end."""

    blocks: NDArray[np.int64]
    tallies: NDArray[np.int64]
    bounds: NDArray[np.int64]
    events: NDArray[np.int64]
    worked: int
    finished: int
    trace: NDArray[np.int64]


class Launch:
    """A program with its memory. `run` may be called once."""

    def __init__(
        self,
        program: Program,
        bound: list[Bound],
        grid: tuple[int, int, int],
        device: Device,
        policy: str,
        budget: int,
        trace: Trace | None = None,
    ) -> None:
        self._texel_bytes = {b.variable.name: b.format.bytes for b in bound if isinstance(b, BoundTexture)}
        self.program = self._with_widths(program)
        self.grid = grid
        self.device = device
        self._bound = bound
        self._policy = POLICIES[policy]
        self._budget = budget
        self._places, self.storage = _arena(bound)
        watched = any(probe.kind == "writers" for probe in program.probes)
        self.writers = np.zeros(len(self.storage) if watched else 1, np.int64)
        self._lanes = int(np.prod(program.workgroup_size))
        lanes = program.together * self._lanes
        self._width = -(-lanes // VECTOR_LANES) * VECTOR_LANES
        self._trace = trace

    def output(self, bound: Bound) -> Any:
        start = self._places[bound.variable.name]
        return bound.output(self.storage.view(np.uint8)[start : start + len(bound.data)])

    def writer(self, bound: Bound, byte: int) -> int | None:
        """The invocation, counted through the grid, that stored to this byte last."""
        number = int(self.writers[(self._places[bound.variable.name] + byte) // 4])
        return number - 1 if number else None

    def run(self, progress: Callable[[int, int], None] | None = None) -> Outcome:
        """Run every workgroup, in pieces on as many threads as there are processors where that cannot matter."""
        from .machine.core import prepare, run

        count = int(np.prod(self.grid))
        threads = max(1, min(os.cpu_count() or 1, count)) if self._independent() else 1
        pieces = _pieces(count, threads, self.program.together)
        outcomes: list[Outcome] = []
        access = self._access_table()
        prepare(*self._arguments(access, 0, 0))
        with ThreadPoolExecutor(threads) as pool:
            done = 0
            jobs = [pool.submit(self._piece, run, access, first, last) for first, last in pieces]
            for (first, last), job in zip(pieces, jobs, strict=True):
                outcomes.append(job.result())
                done += last - first
                if progress:
                    progress(done, count)
        return self._in_texels(_sum(outcomes))

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

    def _arguments(self, access: NDArray[np.int64], first: int, last: int) -> tuple[Any, ...]:
        """What `machine.core.run` takes, for workgroups `first` to `last`."""
        program = self.program
        shared = np.zeros(max(1, program.shared_bytes // 4 * program.together), np.uint32)
        events = np.zeros((_EVENTS, at.EVENT_SIZE), np.int64)
        config = self._config(first, last)
        return (program.code, config, self._registers(), shared, self.storage, access, events, self._probes())

    def _piece(self, run: Any, access: NDArray[np.int64], first: int, last: int) -> Outcome:
        arguments = self._arguments(access, first, last)
        *_, events, probes = arguments
        finished = run(*arguments)
        p = probes
        return Outcome(p.blocks, p.tallies, p.bounds, events, int(p.worked[1]), int(finished), p.trace)

    def _config(self, first: int, last: int) -> NDArray[np.int64]:
        config = np.zeros(at.CONFIG_SIZE, np.int64)
        config[at.LANES] = self._lanes
        config[at.SUBGROUP] = self.device.subgroup_size
        config[at.TOGETHER] = self.program.together
        config[at.SHARED_WORDS] = self.program.shared_bytes // 4
        config[at.GRID_X : at.GRID_Z + 1] = self.grid
        config[at.FIRST], config[at.LAST] = first, last
        config[at.BUDGET] = self._budget
        config[at.WGID_ROW] = self.program.inputs["group_x"]
        config[at.WIDTH] = self._width
        return config

    def _registers(self) -> NDArray[np.uint32]:
        registers = np.zeros((self.program.rows, self._width), np.uint32)
        for bits, row in self.program.constants.items():
            registers[row] = bits
        lane = np.arange(self._width) % self._lanes
        x, y, _ = self.program.workgroup_size
        subgroup = self.device.subgroup_size
        workgroup = np.arange(self._width) // self._lanes
        values: dict[str, Any] = {
            "local_x": lane % x,
            "local_y": lane // x % y,
            "local_z": lane // (x * y),
            "local_index": lane,
            "grid_x": self.grid[0],
            "grid_y": self.grid[1],
            "grid_z": self.grid[2],
            "subgroup_lane": lane % subgroup,
            "subgroup_index": lane // subgroup,
            "subgroup_size": subgroup,
            "subgroup_count": -(-self._lanes // subgroup),
            "shared_base_4": workgroup * (self.program.shared_bytes // 4),
            "shared_base_2": workgroup * (self.program.shared_bytes // 2),
            **dict.fromkeys(("group_x", "group_y", "group_z"), 0),
        }
        for name, row in self.program.inputs.items():
            registers[row] = values[name]
        return registers

    def _access_table(self) -> NDArray[np.int64]:
        table = np.zeros((max(1, len(self.program.accesses)) * UNITS_PER_ACCESS, at.ACCESS_SIZE), np.int64)
        sizes = {b.variable.name: len(b.data) for b in self._bound}
        for number, access in enumerate(self.program.accesses):
            for unit in range(UNITS_PER_ACCESS):
                row = table[number * UNITS_PER_ACCESS + unit]
                count = self._count(access, sizes)
                row[at.BASE] = self._start(access) // access.unit + access.offset + unit
                row[at.LIMIT] = (count - 1) * access.stride if access.stride else _NEVER
                row[at.UNIT], row[at.UNITS] = access.unit, access.units
                row[at.SPACE] = at.SHARED if access.space == "workgroup" else at.GLOBAL
                row[at.POLICY] = self._policy_of(access)
                row[at.COUNT_OF] = count
                row[at.STRIDE] = access.stride
        return table

    def _policy_of(self, access: Access) -> int:
        """Of an access past the end. A texel that is not there is never stored; its address, clamped, is that of the
        border, and wraps around to that of the nearest texel that is."""
        if not isinstance(access.variable.type, t.Texture):
            return self._policy
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

    def elements(self, access: Access) -> int:
        """How many elements the array has that an access indexes."""
        return self._count(access, {b.variable.name: len(b.data) for b in self._bound})

    def _probes(self) -> Any:
        from .machine.probes import make_probes

        program = self.program
        limit = 0 if self._trace is None else self._trace.limit
        counts = (len(program.probes), self._width, len(program.runs), program.rows)
        probes = make_probes(*counts, self.writers, self._watched(), limit)
        for slot, probe in enumerate(program.probes):
            self._rule(probe, probes.rules[slot], probes.orders[slot])
        return probes

    def _watched(self) -> NDArray[np.int64]:
        """The workgroup that is traced, and its lanes: all of them for memory that they share."""
        watched = np.zeros(1 + self._lanes, np.int64)
        watched[0] = -1
        if self._trace is not None:
            (x, y, z), (width, height, _) = self._trace.workgroup, self.grid
            watched[0] = (z * height + y) * width + x
            shared = any(point.variable.space == "workgroup" for point in self.program.points)
            lanes = None if shared else self._trace.lanes
            watched[1:] = [lanes is None or lane in lanes for lane in range(self._lanes)]
        return watched

    def _rule(self, probe: MemoryProbe, row: NDArray[np.int64], order: NDArray[np.int64]) -> None:
        access = self.program.accesses[probe.access]
        rule = self.device.bank_rule(access.bytes_per_lane, access.writes)
        row[at.SHIFT], row[at.COLUMNS], row[at.MERGE] = rule.shift, rule.columns, rule.merge
        row[at.ORDERED] = len(rule.order)
        order[: len(rule.order)] = rule.order
        # As many texels as the format packs into a sector or a line, which take more room here.
        room = handles.TEXEL_BYTES // self._texel_bytes.get(access.variable.name, handles.TEXEL_BYTES)
        row[at.SECTOR] = self.device.sector_bytes * room // access.unit
        row[at.LINE] = self.device.line_bytes * room // access.unit


def _arena(bound: list[Bound]) -> tuple[dict[str, int], NDArray[np.uint32]]:
    """All bindings side by side in one array: where each starts in bytes, and the words."""
    places: dict[str, int] = {}
    size = 0
    for each in bound:
        places[each.variable.name] = size
        size += -(-len(each.data) // _ALIGN) * _ALIGN
    storage = np.zeros(max(_ALIGN, size) // 4, np.uint32)
    for each in bound:
        start = places[each.variable.name]
        storage.view(np.uint8)[start : start + len(each.data)] = each.data
    return places, storage


def _pieces(count: int, threads: int, together: int) -> list[tuple[int, int]]:
    """Ranges of workgroups, several for each thread, none smaller than a batch."""
    if count == 0:
        return [(0, 0)]  # an empty grid runs nothing, and counts nothing
    pieces = min(count, 16 if threads == 1 else threads * 8)
    size = -(-count // pieces)
    size = -(-size // together) * together
    return [(first, min(first + size, count)) for first in range(0, count, size)]


def _sum(outcomes: list[Outcome]) -> Outcome:
    first = outcomes[0]
    for each in outcomes[1:]:
        first.blocks += each.blocks
        first.tallies += each.tallies
        fresh = first.bounds[:, at.OUTSIDE] == 0
        first.bounds[fresh, 1:] = each.bounds[fresh, 1:]
        first.bounds[:, at.OUTSIDE] += each.bounds[:, at.OUTSIDE]
        kept = [o.events[1 : 1 + int(o.events[0, 0])] for o in (first, each)]
        first.events = np.concatenate([first.events[:1], *kept])
        first.events[0, 0] = len(first.events) - 1
        if each.trace[0, 0]:  # one workgroup is traced, in one piece
            first.trace = each.trace
        first.worked += each.worked
        first.finished += each.finished
    return first

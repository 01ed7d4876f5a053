"""The machine's arrays as a program has them before it runs, whatever it is given: see `machine.core.run`.

What depends on a launch stands in a few places, which it fills in: `Configs`, the table of accesses, `STORAGE`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..ir.access import NOWHERE, UNITS_PER_ACCESS, Access
from ..machine import layout as at
from ..machine.probe_arrays import kept_words, make_probes, make_queue, queue_words
from ..models import Device
from ..wgsl import types as t
from .race_tables import Watched
from .schedules import MIRRORED, Schedule

POLICIES = {"clamp": at.CLAMP, "zero": at.ZERO, "wrap": at.WRAP}
_NEVER = NOWHERE - 1  # the largest address of an access that needs no bound
_EVENTS = 256  # kinds of events at different places that one piece of a run may note


@frozen
class LockstepGroups:
    """How the invocations of a workgroup lie in rows of registers. `lanes`: of them all; `size`: those that go in step
    from barrier to barrier; `count`: how many times that; `width`: lanes of a row, of all workgroups of a batch."""

    lanes: int
    size: int
    count: int
    width: int


def strands_of(program: Program, device: Device, schedule: Schedule) -> LockstepGroups:
    x, y, z = program.workgroup_size
    lanes = size = x * y * z
    if schedule.alone == "invocation" and not program.exchanges_values:
        size = 1
    elif schedule.alone != "workgroup":
        size = min(lanes, device.subgroup_size)
    width = -(-program.workgroups_per_batch * size // at.VECTOR_LANES) * at.VECTOR_LANES
    return LockstepGroups(lanes, size, -(-lanes // size), width)


class AccessTable:
    """The machine's table of accesses, but for where bindings lie and how long they are."""

    def __init__(self, program: Program, device: Device, policy: str) -> None:
        accesses = program.accesses
        table = np.zeros((max(1, len(accesses)), UNITS_PER_ACCESS, at.ACCESS_SIZE), np.int64)
        names: dict[str, int] = {}
        placed, tails = [], []
        for number, access in enumerate(accesses):
            name, count, start = access.variable.name, access.count or 0, 0
            if access.space == "workgroup":
                start = program.shared_offsets[name] // access.unit
            elif access.space != "index":
                placed.append((number, names.setdefault(name, len(names)), access.unit))
            if access.count is None:
                assert access.tail is not None
                tails.append((number, names.setdefault(name, len(names)), *access.tail, access.stride))
            row = table[number]
            row[:, at.BASE] = start + access.offset
            row[:, at.LIMIT] = (count - 1) * access.stride if access.stride else _NEVER
            row[:, at.UNIT], row[:, at.UNITS] = access.unit, access.units
            row[:, at.SPACE] = at.SHARED if access.space == "workgroup" else at.GLOBAL
            row[:, at.POLICY] = _policy_of(access, device, policy)
            row[:, at.COUNT_OF], row[:, at.STRIDE] = count, access.stride
        table[:, :, at.BASE] += np.arange(UNITS_PER_ACCESS)
        self._table, self._names = table, list(names)
        self._placed = np.array(placed, np.int64).reshape(-1, 3).T
        self._tails = np.array(tails, np.int64).reshape(-1, 5).T
        self._bounded = self._tails[4] != 0
        self._last: tuple[Any, NDArray[np.int64]] = (None, table)

    @property
    def blank(self) -> NDArray[np.int64]:
        """The table where nothing is bound."""
        return self._table.reshape(-1, at.ACCESS_SIZE)

    def at(self, places: Mapping[str, int], sizes: Mapping[str, int]) -> NDArray[np.int64]:
        """The table where bindings lie at these bytes, and are so long; not to be changed."""
        key = [(places[name], sizes[name]) for name in self._names]
        known, table = self._last
        if known != key:
            table = self._placed_at(np.array(key, np.int64).reshape(-1, 2))
            self._last = key, table  # at once: of two threads, each has its own
        return table

    def _placed_at(self, extents: NDArray[np.int64]) -> NDArray[np.int64]:
        """The table, by first byte and size of each of `_names`."""
        table = self._table.copy()
        rows, of, units = self._placed
        table[rows, :, at.BASE] += (extents[of, 0] // units)[:, np.newaxis]
        rows, of, offsets, pitches, strides = self._tails
        counts = (extents[of, 1] - offsets) // pitches
        table[rows, :, at.COUNT_OF] = counts[:, np.newaxis]
        table[rows, :, at.LIMIT] = np.where(self._bounded, (counts - 1) * strides, _NEVER)[:, np.newaxis]
        return table.reshape(-1, at.ACCESS_SIZE)


def _policy_of(access: Access, device: Device, policy: str) -> int:
    """Of an access past the end. A texel that is not there is never stored; its address, clamped, is that of the
    border, and wraps around to that of the nearest texel that is."""
    if not isinstance(access.variable.type, t.Texture):
        return POLICIES[policy]
    if access.writes:
        return at.ZERO
    return at.CLAMP if device.texel_outside == "zero" else at.WRAP


def units_of(size: int, access: Access, texel_bytes: Mapping[str, int]) -> int:
    """How many units of an access so many bytes are: of textures as many texels as the format packs into them, which
    take more room here. `texel_bytes`: of a format, by the name of the texture."""
    room = texture_handles.TEXEL_BYTES // texel_bytes.get(access.variable.name, texture_handles.TEXEL_BYTES)
    return size * room // access.unit


@frozen
class MachineArrays:
    """Makes the arrays of a program on a device, with room for so many `notes` of a trace."""

    program: Program
    device: Device
    schedule: Schedule
    lockstep_groups: LockstepGroups
    texel_bytes: Mapping[str, int]
    notes: int

    def arguments(self, accesses: AccessTable, watched: Watched) -> tuple[Any, ...]:
        """What the machine takes, for no workgroups of no grid. Of what a launch lends there is a word each."""
        program, lockstep_groups, access = self.program, self.lockstep_groups, accesses.blank
        registers = np.zeros((lockstep_groups.count, program.rows, lockstep_groups.width), np.uint32)
        for lockstep_group in range(lockstep_groups.count):
            self._fill(registers[lockstep_group], lockstep_group)
        return (
            program.code,
            np.stack([self._config(lockstep_group) for lockstep_group in range(lockstep_groups.count)]),
            registers,
            np.zeros(max(1, program.shared_bytes // 4 * program.workgroups_per_batch), np.uint32),
            np.zeros(1, np.uint32),
            access,
            np.zeros((_EVENTS, at.EVENT_SIZE), np.int64),
            np.zeros((lockstep_groups.count, program.rows, at.PATTERN_SIZE), np.int64),
            np.zeros((lockstep_groups.count, at.PLACE_SIZE), np.int64),
            np.zeros(lockstep_groups.count, np.int64),
            np.zeros(1, np.int64),
            self._probes(),
            watched.watch(access, lockstep_groups.width),
            make_queue(
                *(np.zeros(n(program.code, lockstep_groups.width), np.uint32) for n in (queue_words, kept_words))
            ),
        )

    def _config(self, lockstep_group: int) -> NDArray[np.int64]:
        lockstep_groups, config = self.lockstep_groups, np.zeros(at.CONFIG_SIZE, np.int64)
        config[at.LANES] = min(lockstep_groups.size, lockstep_groups.lanes - lockstep_group * lockstep_groups.size)
        config[at.SUBGROUP] = self.device.subgroup_size
        config[at.TOGETHER] = self.program.workgroups_per_batch
        config[at.SHARED_WORDS] = self.program.shared_bytes // 4
        config[at.WGID_ROW] = self.program.inputs["group_x"]
        config[at.WIDTH] = lockstep_groups.width
        config[at.SEED], config[at.STRANDS] = self.schedule.seed, lockstep_groups.count
        config[at.FIRST_LANE] = lockstep_group * lockstep_groups.size
        config[at.LANE_PITCH], config[at.GROUP_PITCH] = self.program.pitches(lockstep_groups.size)
        config[at.WATCHES] = bool(self.program.race_probes)
        return config

    def _places_taken(self, size: int) -> NDArray[np.int64]:
        """Which invocation of a strand each of its lanes is."""
        lanes, group = np.arange(size), self.device.subgroup_size if self.program.exchanges_values else 1
        if self.schedule != MIRRORED or size % group:
            return lanes
        return lanes.reshape(-1, group)[::-1].reshape(-1)

    def _fill(self, registers: NDArray[np.uint32], lockstep_group: int) -> None:
        """Put constants and inputs into the rows of a strand."""
        for bits, row in self.program.constants.items():
            registers[row] = bits
        lockstep_groups, places = self.lockstep_groups, np.arange(self.lockstep_groups.width)
        size = min(lockstep_groups.size, lockstep_groups.lanes - lockstep_group * lockstep_groups.size)
        lane_pitch, group_pitch = self.program.pitches(size)
        lane = lockstep_group * lockstep_groups.size + self._places_taken(size)[places // lane_pitch % size]
        x, y, _ = self.program.workgroup_size
        subgroup = self.device.subgroup_size
        workgroup = places // group_pitch % self.program.workgroups_per_batch
        launched = ("grid_x", "grid_y", "grid_z", "group_x", "group_y", "group_z")  # the launch's and machine's affair
        values: dict[str, Callable[[], Any]] = {
            "local_x": lambda: lane % x,
            "local_y": lambda: lane // x % y,
            "local_z": lambda: lane // (x * y),
            "local_index": lambda: lane,
            "subgroup_lane": lambda: lane % subgroup,
            "subgroup_index": lambda: lane // subgroup,
            "subgroup_size": lambda: subgroup,
            "subgroup_count": lambda: -(-lockstep_groups.lanes // subgroup),
            "shared_base_4": lambda: workgroup * (self.program.shared_bytes // 4),
            "shared_base_2": lambda: workgroup * (self.program.shared_bytes // 2),
            **dict.fromkeys(launched, lambda: 0),
        }
        for name, row in self.program.inputs.items():
            registers[row] = values[name]()

    def _probes(self) -> Any:
        program = self.program
        counts = (
            len(program.memory_probes),
            self.lockstep_groups.width,
            len(program.block_sites),
            len(program.value_checks),
        )
        lent = (np.zeros(1, np.int64), np.zeros(1, np.uint8), np.zeros(1 + self.lockstep_groups.lanes, np.int64))
        probes = make_probes(*counts, *lent, self.notes, program.margin_count)
        for slot, probe in enumerate(program.memory_probes):
            access, row = program.accesses[probe.access], probes.rules[slot]
            rule = self.device.bank_rule(access.bytes_per_lane, access.writes)
            row[at.SHIFT], row[at.COLUMNS], row[at.MERGE] = rule.shift, rule.columns, rule.merge
            row[at.ORDERED] = len(rule.order)
            row[at.TURNS_TAKEN] = program.sites[probe.site].takes_turns
            probes.orders[slot, : len(rule.order)] = rule.order
            row[at.SECTOR] = units_of(self.device.sector_bytes, access, self.texel_bytes)
            row[at.LINE] = units_of(self.device.line_bytes, access, self.texel_bytes)
        return probes

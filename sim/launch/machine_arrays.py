"""The machine's arrays for a program before it runs, independent of its bindings: the arguments of `machine.core.run`.

A launch fills in what depends on it: the grid, the access table, storage (see `workspace.LaunchParams`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir import texture_handles
from ..ir.access import BUFFERS, NOWHERE, UNITS_PER_ACCESS, Access
from ..machine import layout as at
from ..machine.probe_arrays import kept_rows, kept_words, make_probes, make_queue, make_turns, queue_words
from ..models import Device
from ..wgsl import types as t
from ..wgsl.diagnostics import fail
from .race_tables import WatchedAccesses
from .schedules import Schedule

# The codes of policies. `zero-buffers` is zero in `BUFFERS` and clamp elsewhere.
POLICIES = {"clamp": at.CLAMP, "zero": at.ZERO, "wrap": at.WRAP, "zero-buffers": at.CLAMP}
_NEVER = NOWHERE - 1  # largest address of an access without bounds
_EVENTS = 256  # rows of the event list, its header included


@frozen
class LockstepGroups:
    """How the invocations of a batch are divided into groups that run in lockstep.

    The `lanes` invocations of each of `beside` workgroups make groups of at most `size`, of which the batch has `count`
    in all; a register row of a group is `width` lanes wide. `beside` 0: the batch, of any number of workgroups, is one
    group.
    """

    lanes: int
    size: int
    count: int
    width: int
    beside: int

    @property
    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """By group: the position of its workgroup in the batch, its first invocation, and how many it has."""
        place, part = np.divmod(np.arange(self.count), self.count // max(1, self.beside))
        first = part * self.size
        return place, first, np.minimum(self.size, self.lanes - first)


def lockstep_groups_of(program: Program, device: Device, schedule: Schedule) -> LockstepGroups:
    """Divide a batch of the program as the schedule says."""
    x, y, z = program.workgroup_size
    lanes = size = x * y * z
    granularity, beside = schedule.granularity, program.workgroups_per_batch
    if granularity == "invocation" and not program.exchanges_values:
        size = 1
    elif granularity in ("invocation", "subgroup"):
        size = min(lanes, device.subgroup_size)
    count = -(-lanes // size) * (beside if schedule.takes_turns else 1)
    if count == 1 or not schedule.takes_turns:
        return LockstepGroups(lanes, lanes, 1, _whole(beside * lanes), 0)
    return LockstepGroups(lanes, size, count, _whole(size), beside)


def _whole(lanes: int) -> int:
    """Return so many lanes in whole vectors."""
    return -(-lanes // at.VECTOR_LANES) * at.VECTOR_LANES


class AccessTable:
    """The access table, but for the places and sizes of bindings."""

    def __init__(self, program: Program, device: Device, policy: str) -> None:
        accesses = program.accesses
        table = at.ACCESS.new(max(1, len(accesses)), UNITS_PER_ACCESS)
        names: dict[str, int] = {}
        placed: list[tuple[int, int, int]] = []  # access, name, bytes per unit
        tails: list[tuple[int, int, int, int, int]] = []  # access, name, offset and pitch in bytes, stride
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
        self._last: tuple[Any, NDArray[np.int64]] = (None, table)

    @property
    def blank(self) -> NDArray[np.int64]:
        """The table without bindings."""
        return self._table.reshape(-1, at.ACCESS.size)

    def at(self, places: Mapping[str, int], sizes: Mapping[str, int]) -> NDArray[np.int64]:
        """Return the table for bindings at these byte offsets and of these sizes. Callers must not change it."""
        key = [(places[name], sizes[name]) for name in self._names]
        known, table = self._last
        if known != key:
            table = self._placed_at(np.array(key, np.int64).reshape(-1, 2))
            self._last = key, table  # one assignment: another thread sees both or neither
        return table

    def _placed_at(self, extents: NDArray[np.int64]) -> NDArray[np.int64]:
        """Make the table. `extents` has first byte and size of each of `_names`."""
        table = self._table.copy()
        rows, of, units = self._placed
        starts, sizes = extents.T
        table[rows, :, at.BASE] += (starts[of] // units)[:, np.newaxis]
        rows, of, offsets, pitches, strides = self._tails
        counts = (sizes[of] - offsets) // pitches
        if (counts < 1).any():  # only views of a buffer: the size of other bindings is checked
            worst = int(np.argmin(counts))
            name, least = self._names[int(of[worst])], offsets[worst] + pitches[worst]
            raise fail("binding-size", f"{name} has {sizes[of[worst]]} bytes, and a view of it needs {least}", None)
        table[rows, :, at.COUNT_OF] = counts[:, np.newaxis]
        table[rows, :, at.LIMIT] = np.where(strides != 0, (counts - 1) * strides, _NEVER)[:, np.newaxis]
        return table.reshape(-1, at.ACCESS.size)


def _policy_of(access: Access, device: Device, policy: str) -> int:
    """Return the code of what an out-of-bounds access does.

    Texels outside a texture are never stored. Loaded, their address is clamped to the border, or wraps around to the
    nearest texel.
    """
    if not isinstance(access.variable.type, t.Texture):
        of_buffer = policy == "zero-buffers" and access.space in BUFFERS
        return at.ZERO if of_buffer else POLICIES[policy]
    if access.writes:
        return at.ZERO
    return at.CLAMP if device.texel_outside == "zero" else at.WRAP


def units_of(size: int, access: Access, texel_bytes: Mapping[str, int]) -> int:
    """Return how many units of an access are `size` bytes of device memory.

    `texel_bytes` has the size of a texel in the format of each texture, by name: here a texel takes more room.
    """
    room = texture_handles.TEXEL_BYTES // texel_bytes.get(access.variable.name, texture_handles.TEXEL_BYTES)
    return size * room // access.unit


@frozen
class MachineArrays:
    """The machine's arrays for a program on a device. `notes` is the capacity of the trace."""

    program: Program
    device: Device
    schedule: Schedule
    lockstep_groups: LockstepGroups
    texel_bytes: Mapping[str, int]
    notes: int

    def arguments(self, accesses: AccessTable, watched: WatchedAccesses) -> tuple[Any, ...]:
        """Make the arguments of `machine.core.run`, for an empty grid. Arrays of the launch have one word each."""
        program, lockstep_groups, access = self.program, self.lockstep_groups, accesses.blank
        return (
            program.code,
            self._configs(watched.grains["storage"]),
            self._registers(),
            np.zeros(max(1, program.shared_bytes // 4 * program.workgroups_per_batch), np.uint32),
            np.zeros(1, np.uint32),
            access,
            at.EVENTS.new(_EVENTS),
            at.PATTERNS.new(lockstep_groups.count, program.rows),
            at.PROGRESS.new(lockstep_groups.count),
            make_turns(lockstep_groups.count, lockstep_groups.beside),
            np.zeros(1, np.int64),
            self._probes(),
            watched.watch(access, lockstep_groups.width),
            make_queue(
                *(np.zeros(n(program.code, lockstep_groups.width), np.uint32) for n in (queue_words, kept_words))
            ),
            np.zeros(1, np.uint32),
            np.zeros((lockstep_groups.count, kept_rows(program.code), lockstep_groups.width), np.uint32),
        )

    def _configs(self, grain: int) -> NDArray[np.int64]:
        """Make the configs of all lockstep groups, which differ in their place alone."""
        lockstep_groups, config = self.lockstep_groups, at.CONFIG.new()
        config[at.BESIDE], config[at.WORKGROUP_LANES] = lockstep_groups.beside, lockstep_groups.lanes
        config[at.SUBGROUP_SIZE] = self.device.subgroup_size
        config[at.WORKGROUPS_PER_BATCH] = 1 if lockstep_groups.beside else self.program.workgroups_per_batch
        config[at.WGID_ROW] = self.program.inputs["group_x"]
        config[at.WIDTH], config[at.GRAIN] = lockstep_groups.width, grain
        config[at.LOCKSTEP_GROUPS] = lockstep_groups.count
        config[at.LANE_PITCH], config[at.GROUP_PITCH] = self.program.pitches(lockstep_groups.size)
        config[at.WATCHES] = bool(self.program.race_probes)
        configs = np.tile(config, (lockstep_groups.count, 1))
        configs[:, [at.PLACE, at.LANE_OFFSET, at.LANES]] = np.stack(lockstep_groups.all, axis=1)
        return configs

    def _places_taken(self, size: int) -> NDArray[np.int64]:
        """Return the invocation of a lockstep group that each of its lanes runs."""
        lanes, group = np.arange(size), self.device.subgroup_size if self.program.exchanges_values else 1
        if not self.schedule.mirrors or size % group:
            return lanes
        return lanes.reshape(-1, group)[::-1].ravel()

    def _registers(self) -> NDArray[np.uint32]:
        """Make the register rows of all lockstep groups, with constants and inputs."""
        lockstep_groups = self.lockstep_groups
        registers = np.zeros((lockstep_groups.count, self.program.rows, lockstep_groups.width), np.uint32)
        for bits, row in self.program.constants.items():
            registers[:, row] = bits
        _, _, sizes = lockstep_groups.all
        for size in np.unique(sizes).tolist():  # the last group of a workgroup may be smaller
            self._fill(registers, size)
        return registers

    def _fill(self, registers: NDArray[np.uint32], size: int) -> None:
        """Put inputs into the register rows of the lockstep groups of so many invocations."""
        lockstep_groups, places = self.lockstep_groups, np.arange(self.lockstep_groups.width)
        places_of, firsts, sizes = lockstep_groups.all
        numbers = np.flatnonzero(sizes == size)
        place, first = places_of[numbers, np.newaxis], firsts[numbers, np.newaxis]  # a column of groups each
        lane_pitch, group_pitch = self.program.pitches(size)
        lane = first + self._places_taken(size)[places // lane_pitch % size]
        x, y, _ = self.program.workgroup_size
        subgroup = self.device.subgroup_size
        workgroup = place if lockstep_groups.beside else places // group_pitch % self.program.workgroups_per_batch
        launched = (
            "grid_x",
            "grid_y",
            "grid_z",
            "group_x",
            "group_y",
            "group_z",
        )  # set later
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
            registers[numbers, row] = values[name]()

    def _probes(self) -> Any:
        program = self.program
        lockstep_groups = self.lockstep_groups
        counts = (
            len(program.memory_probes),
            max(lockstep_groups.width, lockstep_groups.lanes * lockstep_groups.beside),
            len(program.block_sites),
            len(program.value_checks),
        )
        traced = np.zeros(at.TRACED_LANES + lockstep_groups.lanes, np.int64)
        probes = make_probes(
            *counts, np.zeros(1, np.int64), np.zeros(1, np.uint8), traced, self.notes, program.margin_count
        )
        bank_rule = cache(self.device.bank_rule)  # many accesses have the same
        for slot, probe in enumerate(program.memory_probes):
            access, row = program.accesses[probe.access], probes.rules[slot]
            rule = bank_rule(access.bytes_per_lane, access.writes)
            row[at.SHIFT], row[at.COLUMNS], row[at.MERGE] = rule.shift, rule.columns, rule.merge
            row[at.ORDER_LENGTH] = len(rule.order)
            row[at.SERIALIZES] = program.sites[probe.site].takes_turns
            probes.orders[slot, : len(rule.order)] = rule.order
            row[at.SECTOR] = units_of(self.device.sector_bytes, access, self.texel_bytes)
            row[at.LINE] = units_of(self.device.line_bytes, access, self.texel_bytes)
        return probes

"""The tables of the race probes: the watched accesses, their shadow memory, and the races that threads found."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import ORDERS, Program
from ..ir.access import UNITS_PER_ACCESS, Access
from ..machine import layout as at
from ..machine.probe_arrays import LANES, SLOTS, Watch, make_shadow, make_watch, no_watch
from ..mechanisms import is_on
from ..wgsl.diagnostics import fail
from .shadow_pool import SHADOWS, StorageShadow, shadow_bytes

_SAME = (at.RACE_FIRST, at.RACE_SECOND, at.RACE_ACROSS)  # races that agree in these are one row
_BY_GRAINS = frozenset(("order", "atomics", "commuting", "components"))  # probes of more than plain loads and stores
_ROOM = 1 << 35  # bytes of address space for all shadows; most pages are never written
_COUNTS = (at.RACE_TIMES, at.RACE_DIFFERENT)


_nothing = cache(no_watch)  # shared: no run writes to it
_no_shadow = cache(lambda: StorageShadow(_nothing().storage))  # likewise


class WatchedAccesses:
    """The accesses that a program watches, independent of its bindings. Raises `WgslError` if there are too many."""

    def __init__(self, program: Program) -> None:
        watched = [program.accesses[each.access] for each in program.race_probes]
        if len(watched) > SLOTS or (watched and prod(program.workgroup_size) > LANES):
            raise fail("unsupported", "this program is too large to be watched for races", None)
        self.grains = {kind: _grain(program.accesses, kind == "workgroup") for kind in ORDERS}
        self.storage = {access.variable.name for access in watched if access.space != "workgroup"}
        self.variables = {name: number for number, name in enumerate(sorted({a.variable.name for a in watched}))}
        self.own = program.workgroups_per_batch * program.shared_bytes // self.grains["workgroup"]
        self.workgroups_per_batch = program.workgroups_per_batch
        self._entries = np.array([each.access * UNITS_PER_ACCESS for each in program.race_probes], np.int64)
        self._table = at.WATCHED.new(len(watched))
        loaded = {access.variable for access in program.accesses if not access.writes}
        blocks = is_on("blocks") and not program.probe_names & _BY_GRAINS
        for row, access in zip(self._table, watched, strict=True):
            grain = self.grains[access.memory]
            row[at.WATCHED_FACTOR] = factor = access.unit // grain
            row[at.WATCHED_GRAINS], row[at.WATCHED_GRAIN] = access.units * factor, grain
            row[at.WATCHED_PITCH] = program.shared_bytes // grain if access.space == "workgroup" else 0
            row[at.WATCHED_VARIABLE] = self.variables[access.variable.name]
            row[at.WATCHED_MEMORY] = ORDERS[access.memory]
            row[at.WATCHED_READ] = access.variable in loaded
            row[at.WATCHED_BLOCKS] = access.space != "workgroup" and blocks
            row[at.WATCHED_UNWRITTEN] = access.space == "workgroup" and "uninit" in program.probe_names

    def table(self, access: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the `watched` table of the machine for this access table."""
        if not len(self._table):
            return _nothing().table
        table = self._table.copy()
        table[:, at.WATCHED_BASE] = access[self._entries, at.BASE] * table[:, at.WATCHED_FACTOR]
        table[:, at.WATCHED_LIMIT] = access[self._entries, at.LIMIT]
        return table

    def watch(self, access: NDArray[np.int64], lanes: int) -> Watch:
        """Make the arrays of the race probes, with one word of storage shadow, for register rows of `lanes`."""
        if not len(self._table):
            return _nothing()
        variables, own = len(self.variables), make_shadow(self.own)
        return make_watch(self.table(access), variables, self.workgroups_per_batch, lanes, own, make_shadow(1))


def _grain(accesses: list[Access], own: bool) -> int:
    """Return the bytes of a grain: of workgroup memory (`own`), or of everything else."""
    return min((a.unit for a in accesses if (a.space == "workgroup") == own), default=4)


class LaunchShadow:
    """The shadow memory of a launch. `places` has the byte offset of each binding in storage of `words` words."""

    def __init__(self, program: Program, watched: WatchedAccesses, places: dict[str, int], words: int) -> None:
        self._program, self._watched, self._places, self._words = program, watched, places, words
        self.grains = watched.grains

    @property
    def threads(self) -> int:
        """How many threads can have a storage shadow of their own."""
        return max(1, _ROOM // shadow_bytes(self._grains)) if self.watches_storage else 1 << 10

    @property
    def watches_storage(self) -> bool:
        """Whether some watched access is to storage."""
        return bool(self._watched.storage)

    @property
    def _grains(self) -> int:
        return max((extent.stop for extent in self._extents()), default=1)

    def shadow(self) -> StorageShadow:
        """Return a storage shadow for a thread, of one word if storage is not watched."""
        return SHADOWS.take(self._grains) if self.watches_storage else _no_shadow()

    def _extents(self) -> list[slice]:
        """Return the grains of each binding with stores."""
        grain, ends = self.grains["storage"], [*self._places.values(), self._words * 4]
        first = [self._places[name] for name in self._watched.storage]
        return [slice(start // grain, min(end for end in ends if end > start) // grain) for start in first]

    def byte(self, slot: int, place: int) -> int:
        """Return the byte offset of a grain in the variable of a watched access."""
        access = self._program.accesses[self._program.race_probes[slot].access]
        grain = self.grains[access.memory]
        size = self._program.shared_bytes if access.space == "workgroup" else 0
        starts = self._program.shared_offsets if size else self._places
        return (place * grain % size if size else place * grain) - starts[access.variable.name]


def race_rows(races: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the rows of a table of races, without its header."""
    return races[1 : 1 + int(races[at.HEADER, at.RECORDED])]


def merged_races(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Merge two tables of races, in the order of first occurrence."""
    rows: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for table in (ours, theirs):
        for row in race_rows(table):
            known = rows.setdefault(tuple(row[list(_SAME)]), row)
            if known is not row:
                known[list(_COUNTS)] += row[list(_COUNTS)]
    merged = at.RACES.new(1 + len(rows))
    merged[at.HEADER, at.RECORDED] = len(rows)
    for total in (at.BARRIER_PASSED, at.BARRIER_NEEDED, at.UNWATCHED):
        merged[at.HEADER, total] = ours[at.HEADER, total] + theirs[at.HEADER, total]
    if rows:
        merged[1:] = list(rows.values())
    return merged

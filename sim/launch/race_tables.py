"""The tables of the watching probes: what is watched, where its shadow lies, and what several threads have seen."""

from __future__ import annotations

from functools import cache
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..codegen.program import ORDERS, Program
from ..ir.access import UNITS_PER_ACCESS, Access
from ..machine import layout as at
from ..machine.probe_arrays import LANES, SLOTS, WRITER, Shadow, Watch, make_shadow, make_watch, no_watch
from ..wgsl.diagnostics import fail

_SAME = (at.R_FIRST, at.R_SECOND, at.R_ACROSS)  # races that are counted together
_ENTRY, _ROOM = 40, 1 << 34  # bytes of a shadow's entry; of all shadows, most of which nobody ever touches
_COUNTS = (at.R_TIMES, at.R_DIFFERENT)


_nothing = cache(no_watch)  # from which no run takes more than the bytes


class Watched:
    """What a program watches, whatever it is given: see `Watching`, and `layout` for the rows of the table."""

    def __init__(self, program: Program) -> None:
        watched = [program.accesses[each.access] for each in program.race_probes]
        if len(watched) > SLOTS or (watched and prod(program.workgroup_size) > LANES):
            raise fail("unsupported", "this program is too large to be watched for races", None)
        self.grains = {kind: _grain(program.accesses, kind == "workgroup") for kind in ORDERS}
        self.storage = any(access.space != "workgroup" for access in watched)
        self.stored = {access.variable.name for access in watched if access.writes and access.space != "workgroup"}
        self.variables = {name: number for number, name in enumerate(sorted({a.variable.name for a in watched}))}
        self.own = program.workgroups_per_batch * program.shared_bytes // self.grains["workgroup"]
        self.workgroups_per_batch = program.workgroups_per_batch
        self._entries = np.array([each.access * UNITS_PER_ACCESS for each in program.race_probes], np.int64)
        self._table = np.zeros((len(watched), at.WATCHED_SIZE), np.int64)
        loaded = {access.variable for access in program.accesses if not access.writes}
        for row, access in zip(self._table, watched, strict=True):
            grain = self.grains[access.memory]
            row[at.W_FACTOR] = factor = access.unit // grain
            row[at.W_GRAINS], row[at.W_GRAIN] = access.units * factor, grain
            row[at.W_PITCH] = program.shared_bytes // grain if access.space == "workgroup" else 0
            row[at.W_VARIABLE] = self.variables[access.variable.name]
            row[at.W_MEMORY] = ORDERS[access.memory]
            row[at.W_READ] = access.variable in loaded
            row[at.W_UNWRITTEN] = access.space == "workgroup" and "uninit" in program.probe_names

    def table(self, access: NDArray[np.int64]) -> NDArray[np.int64]:
        """The machine's table of what is watched. `access`: its table of accesses."""
        if not len(self._table):
            return _nothing().table
        table = self._table.copy()
        table[:, at.W_BASE] = access[self._entries, at.BASE] * table[:, at.W_FACTOR]
        table[:, at.W_LIMIT] = access[self._entries, at.LIMIT]
        return table

    def watch(self, access: NDArray[np.int64], lanes: int) -> Watch:
        """The machine's record, with a shadow of storage of one word. `lanes` of a register row."""
        if not len(self._table):
            return _nothing()
        variables, own = len(self.variables), make_shadow(self.own)
        return make_watch(self.table(access), variables, self.workgroups_per_batch, lanes, own, make_shadow(1))


def _grain(accesses: list[Access], own: bool) -> int:
    """Bytes that a shadow's entry stands for: of workgroup memory, or of everything else."""
    return min((a.unit for a in accesses if (a.space == "workgroup") == own), default=4)


class Watching:
    """What the watching probes of a launch see. `places`: byte offset of each binding in storage of `words` words."""

    def __init__(self, program: Program, watched: Watched, places: dict[str, int], words: int) -> None:
        self._program, self._watched, self._places, self._words = program, watched, places, words
        self.grains = watched.grains

    @property
    def threads(self) -> int:
        """How many threads may have a shadow of storage each."""
        return max(1, _ROOM // (self._grains * _ENTRY)) if self.watches_storage else 1 << 10

    @property
    def watches_storage(self) -> bool:
        """Whether there is a shadow of storage at all."""
        return self._watched.storage

    @property
    def _grains(self) -> int:
        return self._words * 4 // self.grains["storage"]

    def shadow(self) -> Shadow:
        """Storage's shadow for a thread; of one word where storage is not watched."""
        return make_shadow(self._grains if self.watches_storage else 1)

    def overlap(self, shadows: list[Shadow]) -> bool:
        """Whether two threads have stored to one word: neither has seen the other's stores."""
        for grains in self._stored() if len(shadows) > 1 else ():
            written = shadows[0].stamps[WRITER, grains] != 0
            for shadow in shadows[1:]:
                mine = shadow.stamps[WRITER, grains] != 0
                if np.any(written & mine):
                    return True
                written |= mine
        return False

    def _stored(self) -> list[slice]:
        """Where in its shadow the bindings lie that are stored to."""
        grain, ends = self.grains["storage"], [*self._places.values(), self._words * 4]
        first = [self._places[name] for name in self._watched.stored]
        return [slice(start // grain, min(end for end in ends if end > start) // grain) for start in first]

    def byte(self, slot: int, place: int) -> int:
        """Where a grain lies in the variable of a watched access."""
        access = self._program.accesses[self._program.race_probes[slot].access]
        grain = self.grains[access.memory]
        size = self._program.shared_bytes if access.space == "workgroup" else 0
        starts = self._program.shared_offsets if size else self._places
        return (place * grain % size if size else place * grain) - starts[access.variable.name]


def race_rows(races: NDArray[np.int64]) -> NDArray[np.int64]:
    """The rows of a table of races that are in use."""
    return races[1 : 1 + int(races[0, at.HOW_MANY])]


def merged_races(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Two tables of races as one: pairs of places in the order in which they were first seen."""
    rows: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for table in (ours, theirs):
        for row in race_rows(table):
            known = rows.setdefault(tuple(row[list(_SAME)]), row)
            if known is not row:
                known[list(_COUNTS)] += row[list(_COUNTS)]
    merged = np.zeros((1 + len(rows), at.RACE_SIZE), np.int64)
    merged[0, at.HOW_MANY], merged[0, at.NEEDED] = len(rows), ours[0, at.NEEDED] + theirs[0, at.NEEDED]
    if rows:
        merged[1:] = list(rows.values())
    return merged

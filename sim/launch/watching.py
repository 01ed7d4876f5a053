"""The tables of the watching probes: what is watched, where its shadow lies, and what several threads have seen."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..machine import layout as at
from ..machine.records import LANES, SLOTS, WRITER, Shadow, Watch, make_shadow, make_watch, no_watch
from ..program.access import UNITS_PER_ACCESS
from ..program.emit import ORDERS
from ..program.program import Program
from ..wgsl.diagnostics import fail

_SAME = (at.R_FIRST, at.R_SECOND, at.R_ACROSS)  # races that are counted together
_ENTRY, _ROOM = 40, 1 << 34  # bytes of a shadow's entry; of all shadows, most of which nobody ever touches
_COUNTS = (at.R_TIMES, at.R_DIFFERENT)


_nothing = cache(no_watch)  # which no run changes


class Watching:
    """What a program's watching probes need. `places`: byte offset of each binding in storage of `words` words."""

    def __init__(self, program: Program, places: dict[str, int], words: int) -> None:
        self._program = program
        self._starts, self._places = {**program.shared_offsets, **places}, places
        self._words = words
        self._unwritten = "uninit" in program.named
        used = {program.accesses[w.access].variable.name for w in program.watched}
        self._variables = {name: number for number, name in enumerate(sorted(used))}
        self.grains = {kind: self._grain(kind == "workgroup") for kind in ORDERS}

    def _grain(self, own: bool) -> int:
        """Bytes that a shadow's entry stands for: of workgroup memory, or of everything else."""
        accesses = [a for a in self._program.accesses if (a.space == "workgroup") == own]
        return min((a.unit for a in accesses), default=4)

    @property
    def threads(self) -> int:
        """How many threads may have a shadow of storage each."""
        return (
            max(1, _ROOM // (self._words * 4 // self.grains["storage"] * _ENTRY)) if self.watches_storage else 1 << 10
        )

    @property
    def watches_storage(self) -> bool:
        """Whether there is a shadow of storage at all."""
        return any(self._program.accesses[w.access].space != "workgroup" for w in self._program.watched)

    def shadows(self, threads: int) -> list[Shadow]:
        """Storage's shadow for each thread; one where storage is not watched."""
        grains = self._words * 4 // self.grains["storage"]
        return [make_shadow(grains) for _ in range(threads)] if self.watches_storage else [make_shadow(1)]

    def watch(self, access: NDArray[np.int64], lanes: int) -> Watch:
        """The machine's record, with no shadow of storage yet. `access`: its table of accesses; `lanes` of a register
        row."""
        program = self._program
        if not program.watched:
            return _nothing()
        if len(program.watched) > SLOTS or int(np.prod(program.workgroup_size)) > LANES:
            raise fail("unsupported", "this program is too large to be watched for races", None)
        table = np.zeros((len(program.watched), at.WATCHED_SIZE), np.int64)
        for slot, row in enumerate(table):
            self._row(slot, row, access)
        own = make_shadow(program.together * program.shared_bytes // self.grains["workgroup"])
        return make_watch(table, len(self._variables), program.together, lanes, own, make_shadow(1))

    def _row(self, slot: int, row: NDArray[np.int64], access: NDArray[np.int64]) -> None:
        number = self._program.watched[slot].access
        what, entry = self._program.accesses[number], access[number * UNITS_PER_ACCESS]
        grain = self.grains[what.memory]
        row[at.W_FACTOR] = what.unit // grain
        row[at.W_BASE], row[at.W_LIMIT] = entry[at.BASE] * row[at.W_FACTOR], entry[at.LIMIT]
        row[at.W_GRAINS], row[at.W_GRAIN] = what.units * row[at.W_FACTOR], grain
        row[at.W_PITCH] = self._program.shared_bytes // grain if what.space == "workgroup" else 0
        row[at.W_VARIABLE] = self._variables[what.variable.name]
        row[at.W_MEMORY] = ORDERS[what.memory]
        row[at.W_READ] = any(a.variable is what.variable and not a.writes for a in self._program.accesses)
        row[at.W_UNWRITTEN] = what.space == "workgroup" and self._unwritten

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
        accesses = [self._program.accesses[each.access] for each in self._program.watched]
        names = {a.variable.name for a in accesses if a.writes and a.space != "workgroup"}
        grain, ends = self.grains["storage"], [*self._places.values(), self._words * 4]
        first = [self._places[name] for name in names]
        return [slice(start // grain, min(end for end in ends if end > start) // grain) for start in first]

    def byte(self, slot: int, place: int) -> int:
        """Where a grain lies in the variable of a watched access."""
        access = self._program.accesses[self._program.watched[slot].access]
        grain = self.grains[access.memory]
        size = self._program.shared_bytes if access.space == "workgroup" else 0
        return (place * grain % size if size else place * grain) - self._starts[access.variable.name]


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

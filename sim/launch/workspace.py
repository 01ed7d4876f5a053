"""The memory that the machine runs in: a copy of a template, which has the arrays of a program before it runs.

A template never changes once it is made, so every run begins with the same bytes, and several threads may copy it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import accumulate, count
from math import prod
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity, frozen
from ..machine import layout as at
from ..machine.compile.loader import address_of, flat, header, machine
from ..mechanisms import is_on
from .long_loops import LongLoops, PausedBatch, Stopped, Unit
from .partition import Outcome
from .shadow_pool import StorageShadow
from .thread_accesses import NOT_NOTED, ThreadAccesses

_NO_SNAPSHOT = np.zeros(1, np.uint32)
_NO_SNAPSHOT_HEADER = header(_NO_SNAPSHOT)
_TURNS = slice(at.TURNS, at.TURNS + at.MOST_LOOPS)
_MOST_KEPT = 1 << 20  # bytes of a workspace that is kept: to allocate a larger one takes no more time than to clear it
_MOST_IDLE = 8  # workspaces that are kept: as many as threads usually run at once
_LINE = 64  # bytes of the cache: a vector across two lines costs twice as much
_LAUNCHED = np.array(
    [
        *(at.GRID_X, at.GRID_Y, at.GRID_Z, at.BUDGET, at.IGNORED_BARRIER, at.STOP),
        *(at.FILL, at.FILL_STEP, at.FILL_WORD, at.FILL_WORDS, at.FILL_PITCH),
        *(at.SEED, at.PICK, at.DEPTH, at.PATIENCE, at.SWITCHES),
    ]
)


@entity
class LaunchTables:
    """What launches with the same options, grid and places of bindings put into the arrays of their template.

    `config` has the fields `_LAUNCHED`; `rows` the values of uniform register rows, by number; `access`, `watched` and
    `traced` are tables. None of them changes.
    """

    config: NDArray[np.int64]
    rows: dict[int, int]
    access: NDArray[np.int64]
    watched: NDArray[np.int64]
    traced: NDArray[np.int64]


@entity
class LaunchParams:
    """What a launch puts into the arrays of its template.

    `shared` are the arrays that are passed by address: storage, the order of workgroups, the last writers, and the
    touched words; `long_loops` decides about batches that pause.
    """

    tables: LaunchTables
    shared: tuple[NDArray[Any], ...]
    long_loops: LongLoops


@frozen
class Part:
    """The place of an array in memory: its first byte, shape and type."""

    start: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]

    def of(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        return np.ndarray(self.shape, self.kind, memory, self.start)  # a view


class Template:
    """The arrays of `MachineArrays`, placed consecutively.

    First comes the record of all addresses and lengths, then the counting tables, then the other arrays, those with the
    most zeros at their end last. At the very end are those that are zero when a part of a launch begins.

    `image` has the bytes up to the last one that is not zero; `size` is the size of all arrays, in bytes. `nbytes` are
    the bytes of its images and of the workspaces that it keeps: not a property, since a cache often adds up hundreds.
    """

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        arrays, number = list(flat(arguments)), _numbered(arguments, count())
        (
            code,
            configs,
            registers,
            workgroup_memory,
            storage,
            access,
            events,
            _,
            progress,
            _,
            order,
            probes,
            watch,
            _,
            snapshot,
            _,
        ) = number
        counted = [probes.blocks, probes.by_workgroup, probes.tallies, probes.bounds, probes.reached, probes.margins]
        counted += [watch.unwritten, probes.checks]
        shared = [
            storage,
            order,
            probes.writers,
            probes.touched,
            *watch.storage,
            probes.stored,
            probes.loaded,
            snapshot,
        ]
        used = [_used(array) for array in arrays]
        lists, state = [events, watch.races, probes.notes], [probes.worked, probes.working, progress]
        known = {code, *shared, *counted, *lists, *state}
        others = [i for i in range(len(arrays)) if i not in known]
        others.sort(key=lambda i: arrays[i].nbytes - used[i])  # those with many zeros at their end last
        others += [*lists, *state]
        fields = np.array(machine().record(*arrays), np.int64)
        self._code = arrays[code]  # its address is in the record
        self.record, *parts = _placed([fields, *(arrays[i] for i in (*counted, *others))])
        part = dict(zip((*counted, *others), parts, strict=True))
        self.size = _end(parts[-1])
        ends = list(accumulate(1 + array.ndim for array in arrays))
        headers = [end - 1 - array.ndim for end, array in zip(ends, arrays, strict=True)]
        self.moved = np.array([headers[i] for i in part])  # positions of addresses of arrays in this memory
        fields[self.moved] = [each.start for each in part.values()]
        self.replaced = np.array([place for i in shared for place in range(headers[i], ends[i])])
        self.image = _image([(self.record, fields, fields.nbytes), *((part[i], arrays[i], used[i]) for i in part)])
        self.counted = slice(part[probes.blocks].start, _end(part[counted[-1]]))
        first = self.counted.start
        self.tables = [Part(part[i].start - first, part[i].shape, part[i].kind) for i in counted]
        self.lists, self.state = [part[i] for i in lists], [part[i] for i in state]
        self.begins_at_zero = slice(part[events].start, self.size)  # in each part of a launch
        self.configs, self.registers, self.workgroup_memory = part[configs], part[registers], part[workgroup_memory]
        self.snapshot = slice(headers[snapshot], ends[snapshot])
        self.clocks, self.watch_state = part[watch.clocks], part[watch.state]
        self.tabled = [part[i] for i in (access, watch.table, probes.traced)]
        self._idle: list[Workspace] = []
        self._filled: tuple[LaunchTables | None, NDArray[np.uint8]] = None, self.image
        self.nbytes = self._bytes_taken()

    def workspace(self) -> Workspace:
        """Return a workspace: one that an earlier launch has used, or a new one."""
        if is_on("kept workspaces"):
            with suppress(IndexError):  # another thread may have taken the last
                taken = self._idle.pop()
                self.nbytes = self._bytes_taken()
                return taken
        return Workspace(self)

    def filled(self, tables: LaunchTables) -> NDArray[np.uint8]:
        """Return the image with the tables of a launch in their places: made once for launches with the same ones."""
        known, image = self._filled
        if known is not tables:
            parts = self.configs, *self.tabled
            image = np.zeros(max(self.image.size, *map(_end, parts)), np.uint8)
            image[: self.image.size] = self.image
            configs, access, watched, traced = (part.of(image) for part in parts)
            configs[:, _LAUNCHED] = tables.config
            access[...], watched[...], traced[...] = tables.access, tables.watched, tables.traced
            self._filled = tables, image  # one assignment: another thread sees both or neither
            self.nbytes = self._bytes_taken()
        return image

    def keep(self, workspaces: Iterable[Workspace]) -> None:
        """Keep workspaces for launches to come."""
        for workspace in workspaces:
            workspace.end()
            if len(self._idle) < _MOST_IDLE and self.size <= _MOST_KEPT:
                self._idle.append(workspace)
        self.nbytes = self._bytes_taken()

    def _bytes_taken(self) -> int:
        _, filled = self._filled
        return self.image.nbytes + filled.nbytes + self.size * len(self._idle)


class Workspace:
    """Memory for one run of the machine at a time, on one part of a launch after another.

    `begin` starts a launch, and `end` frees what belongs to it; then another may begin.
    """

    def __init__(self, template: Template) -> None:
        room = np.zeros(template.size + _LINE, np.uint8)
        start = address_of(room)
        self._memory = memory = room[-start % _LINE :]
        self._address = start + -start % _LINE
        self._template, self._used = template, False
        self._record, self._configs = template.record.of(memory), template.configs.of(memory)
        memory[: template.counted.start] = template.image[: template.counted.start]
        self._record[template.moved] += self._address
        self._registers, self._workgroup_memory = template.registers.of(memory), template.workgroup_memory.of(memory)
        self._is_divided = len(self._configs) > 1  # such a batch cannot go on once it has paused
        self._first, self._end = self._configs[:, at.FIRST_WORKGROUP], self._configs[:, at.END_WORKGROUP]
        self._work = self._configs[:, at.WORK]
        self._clocks, self._watch_state = template.clocks.of(memory)[:, at.CLOCK], template.watch_state.of(memory)
        self._lists = [part.of(memory) for part in template.lists]
        self._worked, _, self._progress = [part.of(memory) for part in template.state]
        self._pauses, self._jumps = self._progress[:, at.PAUSED], self._progress[:, at.BUDGET_USED]
        _, _, self._tallies, self._bounds, *_ = [part.of(memory[template.counted]) for part in template.tables]
        self._paused: PausedBatch | None = None
        self._params: LaunchParams | None = None
        self._run = machine().ready(self._address)

    def begin(self, params: LaunchParams, shadow: StorageShadow, accesses: ThreadAccesses = NOT_NOTED) -> Workspace:
        """Begin a launch, with every byte as in its template and tables. Returns the workspace."""
        memory, template, image = self._memory, self._template, self._template.filled(params.tables)
        first, end = template.counted.start, image.size  # the record before them stays
        memory[first:end] = image[first:]
        if self._used:
            memory[end : template.size] = 0
        self._used = self._fresh = True
        shared = [number for array in params.shared for number in header(array)]
        self._record[template.replaced] = [*shared, *shadow.headers, *accesses.headers, *_NO_SNAPSHOT_HEADER]
        long_loops = params.long_loops
        self._work[:] = long_loops.work if self._is_divided else long_loops.first_pause
        for row, value in params.tables.rows.items():
            self._registers[:, row] = value
        self._clocks[:] = self._watch_state[at.BEGUN] = shadow.begun
        self._params, self._borrowed, self._snapshot = params, (shadow, accesses), _NO_SNAPSHOT
        return self

    def end(self) -> None:
        """Drop what belongs to the launch."""
        self._params = self._borrowed = self._paused = None
        self._snapshot = _NO_SNAPSHOT

    def run(self, first: int, last: int) -> Outcome:
        """Run workgroups `first` to `last` (exclusive) of a launch.

        Registers and address patterns persist from part to part, as they do from batch to batch.
        """
        finished = self.finish(first, last)
        counts = self._memory[self._template.counted].copy()
        blocks, by_workgroup, tallies, bounds, reached, margins, unwritten, checks = [
            part.of(counts) for part in self._template.tables
        ]
        events, races, notes = map(_taken, self._lists)
        return Outcome(
            *(blocks, by_workgroup, tallies, bounds, reached, margins, events, races, unwritten, checks, notes),
            worked=int(self._worked[at.WORKED_LANES]),
            finished=finished,
            jumps=max(self._jumps.tolist()),
            stopped=None if self._paused is None else self._stopped(self._paused),
        )

    @property
    def memory_counts(self) -> tuple[list[list[int]], list[list[int]]]:
        """The rows of `layout.BOUNDS` and `layout.TALLIES` that its last workgroups counted."""
        return self._bounds.tolist(), self._tallies.tolist()

    @property
    def clock(self) -> int:
        """The last clock of its workgroups, counted over all batches."""
        return int(self._clocks.max())

    def _stopped(self, batch: PausedBatch) -> Stopped:
        """Return where a batch was stopped, with the units of one of several lockstep groups."""
        stopped = batch.stopped()
        if not self._is_divided or not batch.progress[at.REPEATED]:
            return stopped
        pairs = zip(self._configs.tolist(), self._progress.tolist(), strict=True)
        units = tuple(_unit(batch.first, config, progress) for config, progress in pairs if progress[at.PC] >= 0)
        return replace(stopped, turned=stopped.progress[_TURNS], units=units)

    def sample_loop_lanes(self, place: int, iterations: int) -> float:
        """Run one workgroup to its end, or to `iterations` of its loops, and nothing afterwards.

        Returns the fraction of lanes in loops that are needed, up to the last active one; 1 without loops.
        """
        self._configs[:, at.SAMPLING], self._configs[:, at.BUDGET] = 1, iterations
        self.finish(place, place + 1)
        needed, every = self._progress[:, [at.NEEDED_LANES, at.ALL_LANES]].sum(axis=0).tolist()
        return needed / every if every else 1.0

    def finish(self, first: int, last: int) -> int:
        """Run these workgroups with all counters at 0. Returns how many ran to their end."""
        self._first[:], self._end[:] = first, last
        if not self._fresh:
            counted = self._template.counted
            self._memory[counted] = self._template.image[counted]
            self._memory[self._template.begins_at_zero] = 0
            self._paused, self._configs[:, at.RESUMES] = None, 0
        self._fresh = False
        start = first
        while True:
            place = start + self._run()
            batch = self._paused = self._paused_batch(place)
            if batch is None or self._is_divided or not self._goes_on(batch):
                return place - first
            self._first[:] = start = batch.first
            self._configs[:, at.RESUMES] = 1

    @property
    def _launch(self) -> LaunchParams:
        assert self._params is not None
        return self._params

    def _goes_on(self, batch: PausedBatch) -> bool:
        """Prepare a batch that has paused to go on, unless it must stop."""
        storage, *_ = self._launch.shared
        memory = {"registers": self._registers[0], "workgroup": self._workgroup_memory, "storage": storage}
        return self._launch.long_loops.goes_on(batch, memory, self._keep)

    def _paused_batch(self, place: int) -> PausedBatch | None:
        """Return the batch from this workgroup on, if it has paused: the same one as before, or a new one."""
        if not np.count_nonzero(self._pauses):
            return None
        if self._paused is not None and self._paused.first == place:
            return self._paused
        groups, given = np.flatnonzero(self._pauses), int(self._configs[0, at.WORK])
        return PausedBatch(place, self._progress[int(groups[0])], given, self._launch.long_loops.work)

    def _keep(self, snapshot: NDArray[Any]) -> None:
        """Let the machine compare the state with a snapshot."""
        self._snapshot, self._record[self._template.snapshot] = snapshot, header(snapshot)


def _unit(first: int, config: list[int], progress: list[int]) -> Unit:
    """Return a unit of the batch from workgroup `first` on."""
    loop = progress[at.AT_LOOP] if progress[at.STOPPED] == at.SPINS else None
    awaited = progress[at.AWAITED] - 1 if progress[at.AWAITED] else None
    lanes = range(config[at.LANE_OFFSET], config[at.LANE_OFFSET] + config[at.LANES])
    return Unit(first + config[at.PLACE], lanes, progress[at.PC], loop, awaited, progress[at.AWAITED_PLACE])


def _taken(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Copy the header of a list and the rows it counts, as far as they fit."""
    return table[: 1 + int(table[at.HEADER, at.RECORDED])].copy()


def _numbered(arguments: Any, numbers: Iterator[int]) -> Any:
    """Replace each array in nested tuples by its number."""
    if not isinstance(arguments, tuple):
        return next(numbers)
    record = cast("tuple[Any, ...]", arguments)
    made = [_numbered(each, numbers) for each in record]
    return type(record)(*made) if hasattr(record, "_fields") else tuple(made)


def _used(array: NDArray[Any]) -> int:
    """Return the bytes of an array up to its last item that is not zero."""
    (places,) = array.ravel().nonzero()  # `np.flatnonzero` takes three times as long with small arrays
    return (int(places[-1]) + 1) * array.itemsize if places.size else 0


def _placed(arrays: list[NDArray[Any]]) -> list[Part]:
    """Place arrays consecutively, each from the start of a cache line on."""
    parts: list[Part] = []
    start = 0
    for array in arrays:
        parts.append(Part(start, array.shape, array.dtype))
        start = _end(parts[-1])
    return parts


def _end(part: Part) -> int:
    size = prod(part.shape) * part.kind.itemsize
    return part.start + -(-size // _LINE) * _LINE


def _image(arrays: list[tuple[Part, NDArray[Any], int]]) -> NDArray[np.uint8]:
    """Return the bytes of all arrays, of which so many are used, up to the last one that is not zero."""
    arrays = [each for each in arrays if each[-1]]  # most are all zeros
    image = np.zeros(max(part.start + used for part, _, used in arrays), np.uint8)
    for part, array, used in arrays:
        image[part.start : part.start + used] = array.ravel().view(np.uint8)[:used]
    return image

"""Classes of workgroups that provably do the same: one of each class runs, and its counts are multiplied.

`analysis.workgroup_equivalence` says which values must be equal, and which may differ by a constant. The machine
computes them for every workgroup of the grid; workgroups that agree are a class. The first workgroup of a class runs
and notes the range of its addresses and how close its comparisons are. A workgroup moves to another class if one of its
addresses would be out of bounds where that of the first is not (or the reverse), or if it would branch another way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analysis.tabulate import TABLE
from ..analysis.workgroup_equivalence import Axes, Equivalence, Form, Moving, Unproven, find_equivalence
from ..bindings.binding import Bound
from ..bindings.buffers import blank
from ..bounded_cache import remember
from ..codegen.build import Draft
from ..codegen.program import Program
from ..fast_dataclass import entity, frozen
from ..ir.ir import Value
from ..machine import layout as at
from ..models import Device
from .device_memory import DeviceMemory, make_device_memory
from .launch import Launch, RunOptions
from .long_loops import Stopped
from .partition import Outcome, times, total

_TABLE_WORDS = (1 << 23) + 1  # values computed at once; large enough that unused pages take no memory
_MOST_WORKGROUPS = 1 << 24  # of a grid that can be classified
_MOST_ROUNDS = 64  # of splitting classes
_MOST_ANALYSES = 4  # that are kept for a program
_MOST_TABULATED = 16  # programs that are kept for an analysis
_DENSE = 1 << 40  # keys above are renumbered

Numbers = NDArray[np.int64]


@frozen
class Classes:
    """The outcome of a run of one workgroup of each class.

    `outcome` is that of the whole grid. `representatives` are numbers in the grid, in ascending order; `sizes` says how
    many workgroups each represents.
    """

    launch: Launch
    outcome: Outcome
    representatives: Numbers
    sizes: Numbers
    exact: int  # values that are equal within a class
    threads_interfered: bool  # two representatives have stored to one word, or loaded what the other stores


@entity
class Analysis:
    """How workgroups of a program may differ, for any data and grid for which some values are as in `rounds`.

    `rounds`: values in the order in which they were looked at, with what they are in all workgroups. `refused`: why
    there is no `equivalence`. `program` notes addresses and margins; `tabulated`: programs that compute values.
    """

    draft: Draft
    rounds: list[dict[Value, int | None]] = field(default_factory=lambda: list[dict[Value, int | None]]())
    refused: str = ""
    equivalence: Equivalence | None = None
    program: Program | None = None
    tabulated: dict[tuple[Any, ...], Program] = field(default_factory=lambda: dict[tuple[Any, ...], Program]())


def run_classes(
    analyses: list[Analysis],
    make_draft: Callable[[], Draft],
    bound: list[Bound],
    grid: tuple[int, int, int],
    device: Device,
    options: RunOptions,
    without_probes: Callable[[Numbers], Stopped | None],
) -> Classes:
    """Run one workgroup of each class. `without_probes`: see `Launch`.

    `analyses`: those of earlier runs of the draft, to which that of this run is added.

    Raises `Unproven` if data decides what workgroups do, or if too many of them differ.
    """
    return _Classifier(analyses, make_draft, bound, grid, device, options, without_probes).run()


class _Classifier:
    def __init__(
        self,
        analyses: list[Analysis],
        make_draft: Callable[[], Draft],
        bound: list[Bound],
        grid: tuple[int, int, int],
        device: Device,
        options: RunOptions,
        without_probes: Callable[[Numbers], Stopped | None],
    ) -> None:
        self._without_probes = without_probes
        self._grid = grid
        self._count = int(np.prod(grid))
        self._device = device
        self._options = options
        self._bound = [*bound, blank(TABLE, _TABLE_WORDS, np.uint32)]
        self._memory = make_device_memory(self._bound)
        self._bases: dict[Value, NDArray[np.uint32]] = {}  # value of each atom in lane 0, by position
        if self._count > _MOST_WORKGROUPS:
            raise Unproven(f"a grid of more than {_MOST_WORKGROUPS:,} workgroups is not looked at")
        analysis = next((each for each in analyses if self._applies(each)), None)
        if analysis is None:
            analysis = self._analysed(make_draft())
            analyses[:] = [analysis, *analyses[: _MOST_ANALYSES - 1]]
        if analysis.equivalence is None or analysis.program is None:
            raise Unproven(analysis.refused)
        self._analysis, self._equivalence, self._program = analysis, analysis.equivalence, analysis.program
        self._any = self._launch(self._program, np.zeros(1, np.int64))

    def _applies(self, analysis: Analysis) -> bool:
        """Whether the values that an analysis has looked at are the same here."""
        return all(self._numbers(analysis, [*known]) == known for known in analysis.rounds)

    def _analysed(self, draft: Draft) -> Analysis:
        analysis, numbers = Analysis(draft), dict[Value, int | None]()
        try:
            equivalence = find_equivalence(draft.lowered, numbers)
            while equivalence.unknown:
                analysis.rounds.append(self._numbers(analysis, equivalence.unknown))
                numbers |= analysis.rounds[-1]
                equivalence = find_equivalence(draft.lowered, numbers)
        except Unproven as reason:
            analysis.refused = str(reason)
            return analysis
        draft.watch(equivalence.comparisons)
        analysis.equivalence, analysis.program = equivalence, draft.program()
        return analysis

    def _numbers(self, analysis: Analysis, values: list[Value]) -> dict[Value, int | None]:
        """Return the number that each value is in all workgroups; None where it differs."""
        numbers: dict[Value, int | None] = {}
        for _, value, rows in self._tables(analysis, values, frozenset()):
            first = rows.item(0)
            numbers[value] = first if np.all(rows == first) else None
        return numbers

    def run(self) -> Classes:
        pending = self._members(self._keys())
        done: list[tuple[Numbers, Outcome]] = []
        interfered = False
        for _ in range(_MOST_ROUNDS):
            if 2 * (len(done) + len(pending)) > self._count:
                raise Unproven(f"at least {len(done) + len(pending):,} of the {self._count:,} workgroups differ")
            launch = self._launch(self._program, np.array([members[0] for members in pending]))
            outcomes = launch.run_each()
            if outcomes[-1].stopped is not None:
                raise Unproven("a workgroup was stopped in a loop")
            interfered |= launch.threads_interfered and launch.race_shadow.watches_storage
            left: list[Numbers] = []
            for members, outcome in zip(pending, outcomes, strict=True):
                fits = self._fits(launch, outcome, members)
                done.append((members[fits], outcome))
                if not fits.all():
                    left.append(members[~fits])
            if not left:
                return self._gathered(sorted(done, key=_representative), interfered)
            pending = left
        raise Unproven(f"{len(done):,} workgroups and more differ in what is out of bounds")

    def _gathered(self, done: list[tuple[Numbers, Outcome]], interfered: bool) -> Classes:
        representatives = np.array([members[0] for members, _ in done])
        sizes = np.array([len(members) for members, _ in done])
        self._memory = DeviceMemory(self._memory.places, np.zeros(1, np.uint32))  # frees the contents, which are large
        launch = self._launch(self._program, representatives)
        for place, (_, outcome) in enumerate(done):
            _at_place(outcome, place)
        by_workgroup = self._by_workgroup(done)
        outcome = total([times(outcome, len(members)) for members, outcome in done])
        outcome = replace(outcome, by_workgroup=by_workgroup)
        return Classes(launch, outcome, representatives, sizes, len(self._equivalence.exact), interfered)

    def _by_workgroup(self, done: list[tuple[Numbers, Outcome]]) -> Numbers:
        """Return what each workgroup of the grid executes, as a run of all of them counts it."""
        (_, first), *_ = done
        found = np.zeros_like(first.by_workgroup)
        for members, outcome in done if first.blocks.any() else ():
            slots = members if self._count <= len(found) else members * len(found) // self._count
            found += outcome.by_workgroup.sum() * np.bincount(slots, minlength=len(found))
        return found

    def _launch(self, program: Program, chosen: Numbers) -> Launch:
        options = replace(self._options, chosen=chosen)
        without_probes = self._without_probes if program.probe_names else None
        return Launch(
            program, self._bound, self._grid, self._device, options, self._memory, without_probes=without_probes
        )

    # ---- values of every workgroup ----

    def _workgroups(self, axes: Axes) -> tuple[int, int]:
        """Return how many values depend on these components of workgroup_id, and the step between their workgroups."""
        x, y, z = self._grid
        known = {(): (1, 1), (0,): (x, 1), (1,): (y, x), (2,): (z, x * y), (0, 1): (x * y, 1), (1, 2): (y * z, x)}
        return known.get(tuple(sorted(axes)), (self._count, 1))

    def _positions(self, axes: Axes, workgroups: Numbers) -> Numbers:
        """Return the position of each workgroup's value among them."""
        count, step = self._workgroups(axes)
        return workgroups // step % count

    def _tables(
        self, analysis: Analysis, values: list[Value], axes: Axes
    ) -> Iterator[tuple[int, Value, NDArray[np.uint32]]]:
        """Compute values for all workgroups. Yields a first position, a value, and its numbers[position, lane]."""
        count, step = self._workgroups(axes)
        lanes = prod(analysis.draft.pipeline.workgroup_size)
        room = _TABLE_WORDS // (lanes * max(1, len(values)))
        if not values:
            return
        if not room:
            raise Unproven(f"{len(values):,} values decide what a workgroup does")
        program = remember(
            analysis.tabulated, (*values, step), lambda: analysis.draft.tabulated(values, step, room), _MOST_TABULATED
        )
        for first in range(0, count, room):
            launch = self._launch(program, np.arange(first, min(first + room, count)) * step)
            launch.run()
            size = launch.count * len(values) * lanes
            start = self._memory.places[TABLE.name] // 4
            table = self._memory.words[start : start + size].reshape(launch.count, len(values), lanes)
            for number, value in enumerate(values):
                yield first, value, table[:, number]

    def _keys(self) -> dict[Axes, Numbers]:
        """Return keys, by axes and position: workgroups with different keys are of different classes."""
        equivalence = self._equivalence
        exact, atoms = equivalence.exact, [atom for atom in equivalence.atoms if atom not in equivalence.exact]
        keys: dict[Axes, Numbers] = {}
        for axes in {equivalence.axes[value] for value in (*exact, *atoms)}:
            count, _ = self._workgroups(axes)
            key = np.zeros(count, np.int64)
            for column in self._columns(*([v for v in each if equivalence.axes[v] == axes] for each in (exact, atoms))):
                key = _joined(key, column)
            keys[axes] = key
        return keys

    def _columns(self, exact: list[Value], atoms: list[Value]) -> Iterator[Numbers]:
        """Yield what must be equal as a number per position, for values that depend on the same axes."""
        values = list(dict.fromkeys([*exact, *atoms]))
        if not values:
            return
        axes = self._equivalence.axes[values[0]]
        count, _ = self._workgroups(axes)
        numbers = {value: (_Rows(), np.zeros(count, np.int64)) for value in values}
        self._bases |= {atom: np.zeros(count, np.uint32) for atom in atoms}
        for first, value, rows in self._tables(self._analysis, values, axes):
            here = slice(first, first + len(rows))
            if value in self._bases:
                self._bases[value][here] = rows[:, at.FIRST_LANE]
                rows = rows - rows[:, : at.FIRST_LANE + 1]
            known, column = numbers[value]
            column[here] = known.numbered(rows)
        yield from (column for _, column in numbers.values())
        for atom in atoms:
            for factor, units in self._moves(atom):
                yield self._bases[atom].astype(np.int64) * factor % units

    def _moves(self, atom: Value) -> set[tuple[int, int]]:
        """Return the coefficients of an atom in addresses, each with the units per line of that memory."""
        found: set[tuple[int, int]] = set()
        for moving in self._equivalence.accesses:
            access = self._analysis.draft.lowered.accesses[moving.item.access]
            if atom in moving.form and access.space == "storage":
                found.add((moving.form[atom], self._any.line(access)))
        return found

    def _members(self, keys: dict[Axes, Numbers]) -> list[Numbers]:
        """Group the workgroups by key, in ascending order."""
        everyone = np.arange(self._count)
        key = np.zeros(self._count, np.int64)
        for axes, column in keys.items():
            key = _joined(key, column[self._positions(axes, everyone)])
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order])) + 1
        return np.split(order, starts)

    # ---- bounds and branches ----

    def _fits(self, launch: Launch, outcome: Outcome, members: Numbers) -> NDArray[np.bool_]:
        """Which members of a class are in bounds exactly where its first is, and branch as it does."""
        fits = self._decide_alike(outcome, members)
        limits = launch.limits()
        for moving, reached in self._reached(launch.program, outcome):
            low, high = reached.tolist()
            if not moving.form or low > high:
                continue
            limit, moved = limits[moving.item.access], self._moved(moving.form, members)
            fits &= (low + moved >= 0) & (high + moved <= limit) if high <= limit else moved == 0
        return fits

    def _decide_alike(self, outcome: Outcome, members: Numbers) -> NDArray[np.bool_]:
        """In which members no comparison has another result or wraps around."""
        alike = np.ones(len(members), bool)
        for each, row in zip(self._equivalence.comparisons, outcome.margins.tolist(), strict=False):
            if row[at.A_LOW] > row[at.A_HIGH]:
                continue
            one, other = (self._moved(form, members) for form in each.forms)
            lowest = -(1 << 31) if each.signed else 0
            for moved, low, high in ((one, at.A_LOW, at.A_HIGH), (other, at.B_LOW, at.B_HIGH)):
                alike &= (row[low] + moved >= lowest) & (row[high] + moved < lowest + (1 << 32))
            nearer = other - one
            alike &= (row[at.HELD_BY] + nearer >= each.least) & (row[at.FAILED_BY] + nearer < each.least)
        return alike

    def _reached(self, program: Program, outcome: Outcome) -> Iterator[tuple[Moving, Numbers]]:
        """Pair the accesses that have bounds, in program order, with their lowest and highest addresses."""
        bounded = (each for each in self._equivalence.accesses if program.accesses[each.item.access].stride)
        rows = (
            row for probe, row in zip(program.memory_probes, outcome.reached, strict=False) if probe.kind == "reach"
        )
        return zip(bounded, rows, strict=True)

    def _moved(self, form: Form, members: Numbers) -> Numbers:
        """Return the distance of an address of each member from that of the first member."""
        place = np.zeros(len(members), np.uint32)
        for atom, factor in form.items():
            if atom in self._bases:  # others are equal within a class
                base = self._bases[atom][self._positions(self._equivalence.axes[atom], members)]
                place += base * np.uint32(factor)
        return (place - place[:1]).view(np.int32).astype(np.int64)


class _Rows:
    """Numbers rows of words: equal rows have equal numbers."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._first: NDArray[np.uint32] | None = None

    def numbered(self, rows: NDArray[np.uint32]) -> Numbers:
        if self._first is None:
            first: NDArray[np.uint32] = next(iter(rows)).copy()
            self._first, self._known[first.tobytes()] = first, 0
        first = self._first
        numbers = np.zeros(len(rows), np.int64)
        for place in np.flatnonzero((rows != first).any(axis=1)).tolist():
            numbers[place] = self._known.setdefault(rows[place].tobytes(), len(self._known))
        return numbers


def _joined(one: Numbers, other: Numbers) -> Numbers:
    """Combine two keys into one that is equal where both are."""
    span = int(other.max(initial=0)) + 1
    if (int(one.max(initial=0)) + 1) * span > _DENSE:
        one, other = _renumbered(one), _renumbered(other)
        span = int(other.max(initial=0)) + 1
    return one * span + other


def _renumbered(keys: Numbers) -> Numbers:
    """Replace keys by consecutive numbers."""
    _, numbers = np.unique(keys, return_inverse=True)
    return numbers.ravel()


def _representative(done: tuple[Numbers, Outcome]) -> int:
    members, _ = done
    return int(members[0])


def _at_place(outcome: Outcome, place: int) -> None:
    """Set the position of the workgroup in the outcome of a run of one workgroup."""
    for table, counts, column in (
        (outcome.bounds, at.OUTSIDE, at.WORKGROUP),
        (outcome.unwritten, at.OUTSIDE, at.WORKGROUP),
        (outcome.checks, at.CHECK_TIMES, at.CHECK_WORKGROUP),
        (outcome.events[1:], at.TIMES, at.EVENT_WORKGROUP),
    ):
        table[table[:, counts] > 0, column] = place

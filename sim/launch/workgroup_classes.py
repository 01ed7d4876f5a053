"""Workgroups that provably do the same, as classes: one of each runs, and its counts are multiplied.

`program.likeness` says what must be equal and what may move. Here those values are computed for every workgroup of the
grid, by the machine itself; workgroups that agree in them are a class. Its first workgroup runs and notes how far its
addresses go, and how close its comparisons are: a workgroup whose addresses, moved, would leave an array that those of
the first stay in (or the other way round), or whose branches would be decided otherwise, is put into another class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..analysis.tabulate import TABLE
from ..analysis.workgroup_equivalence import Axes, Equivalence, Form, Moving, Unproven, find_equivalence
from ..bindings.binding import Bound
from ..bindings.buffers import blank
from ..codegen.build import Draft
from ..codegen.program import Program
from ..fast_dataclass import frozen
from ..ir.ir import Value
from ..machine import layout as at
from ..models import Device
from .device_memory import DeviceMemory, make_arena
from .launch import Launch, RunOptions
from .partition import Outcome, times, total

_TABLE_WORDS = (1 << 23) + 1  # values that are computed at once; so many bytes that the system gives only those used
_MOST_WORKGROUPS = 1 << 24  # of a grid that is looked at one by one
_MOST_ROUNDS = 64  # in which classes are split
_DENSE = 1 << 40  # from here on keys of workgroups are numbered anew

Numbers = NDArray[np.int64]


@frozen
class Classes:
    """What one workgroup of each class did, and what all of the grid do. `representatives` by number in the grid, in
    ascending order; `sizes`: how many workgroups each stands for."""

    launch: Launch
    outcome: Outcome
    representatives: Numbers
    sizes: Numbers
    exact: int  # values that are equal in all of a class
    met: bool  # whether two that ran have stored to one word


def run_classes(
    draft: Draft, bound: list[Bound], grid: tuple[int, int, int], device: Device, how: RunOptions
) -> Classes:
    """Run one workgroup of each class. Raises `Unproven` where data decides what workgroups do, or they all differ."""
    return _Classifier(draft, bound, grid, device, how).run()


class _Classifier:
    def __init__(
        self, draft: Draft, bound: list[Bound], grid: tuple[int, int, int], device: Device, how: RunOptions
    ) -> None:
        self._draft = draft
        self._grid = grid
        self._count = int(np.prod(grid))
        self._device = device
        self._how = how
        self._lanes = int(np.prod(draft.pipeline.workgroup_size))
        self._bound = [*bound, blank(TABLE, _TABLE_WORDS, np.uint32)]
        self._arena = make_arena(self._bound)
        self._bases: dict[Value, NDArray[np.uint32]] = {}  # of each atom, by position: what it is in lane 0
        self._likeness = self._find_likeness()
        draft.watch(self._likeness.comparisons)
        self._program = draft.program()
        self._any = self._launch(self._program, np.zeros(1, np.int64))

    def _find_likeness(self) -> Equivalence:
        if self._count > _MOST_WORKGROUPS:
            raise Unproven(f"a grid of more than {_MOST_WORKGROUPS:,} workgroups is not looked at")
        numbers: dict[Value, int | None] = {}
        while True:
            equivalence = find_equivalence(self._draft.lowered, numbers)
            if not equivalence.unknown:
                return equivalence
            for _, value, rows in self._tables(equivalence.unknown, frozenset()):
                numbers[value] = int(rows[0, 0]) if np.all(rows == rows[0, 0]) else None

    def run(self) -> Classes:
        pending = self._members(self._keys())
        done: list[tuple[int, int, Outcome]] = []
        met = False
        for _ in range(_MOST_ROUNDS):
            if 2 * (len(done) + len(pending)) > self._count:
                raise Unproven(f"at least {len(done) + len(pending):,} of the {self._count:,} workgroups differ")
            launch = self._launch(self._program, np.array([members[0] for members in pending]))
            outcomes = launch.run_each()
            met |= launch.met
            left = []
            for members, outcome in zip(pending, outcomes, strict=True):
                fits = self._fits(launch, outcome, members)
                done.append((int(members[0]), int(fits.sum()), outcome))
                if not fits.all():
                    left.append(members[~fits])
            if not left:
                return self._gathered(sorted(done, key=lambda each: each[0]), met)
            pending = left
        raise Unproven(f"{len(done):,} workgroups and more differ in what is out of bounds")

    def _gathered(self, done: list[tuple[int, int, Outcome]], met: bool) -> Classes:
        representatives, sizes = (np.array([each[i] for each in done]) for i in (0, 1))
        self._arena = DeviceMemory(
            self._arena.places, np.zeros(1, np.uint32)
        )  # what it held is large, and of no more use
        launch = self._launch(self._program, representatives)
        for place, (_, _, outcome) in enumerate(done):
            _at_place(outcome, place)
        outcome = total([times(outcome, size) for _, size, outcome in done])
        return Classes(launch, outcome, representatives, sizes, len(self._likeness.exact), met)

    def _launch(self, program: Program, chosen: Numbers) -> Launch:
        how = replace(self._how, chosen=chosen)
        return Launch(program, self._bound, self._grid, self._device, how, self._arena)

    # ---- values of every workgroup ----

    def _workgroups(self, axes: Axes) -> tuple[int, int]:
        """How many values there are of what depends on these components of workgroup_id; the first workgroups that have
        them are that far apart."""
        x, y, z = self._grid
        known = {(): (1, 1), (0,): (x, 1), (1,): (y, x), (2,): (z, x * y), (0, 1): (x * y, 1), (1, 2): (y * z, x)}
        return known.get(tuple(sorted(axes)), (self._count, 1))

    def _positions(self, axes: Axes, workgroups: Numbers) -> Numbers:
        """Which of these values workgroups have."""
        count, step = self._workgroups(axes)
        return workgroups // step % count

    def _tables(self, values: list[Value], axes: Axes) -> Iterator[tuple[int, Value, NDArray[np.uint32]]]:
        """First position, value, and what it is there and after, [position, lane]."""
        count, step = self._workgroups(axes)
        room = _TABLE_WORDS // (self._lanes * max(1, len(values)))
        if not values:
            return
        if not room:
            raise Unproven(f"{len(values):,} values decide what a workgroup does")
        program = self._draft.tabulated(values, step, room)
        for first in range(0, count, room):
            launch = self._launch(program, np.arange(first, min(first + room, count)) * step)
            launch.run()
            size = launch.count * len(values) * self._lanes
            start = self._arena.places[TABLE.name] // 4
            table = self._arena.words[start : start + size].reshape(launch.count, len(values), self._lanes)
            for number, value in enumerate(values):
                yield first, value, table[:, number]

    def _keys(self) -> dict[Axes, Numbers]:
        """By what values depend on, and position: workgroups that differ in a number are not alike."""
        equivalence = self._likeness
        exact, atoms = equivalence.exact, [atom for atom in equivalence.atoms if atom not in equivalence.exact]
        keys: dict[Axes, Numbers] = {}
        for axes in {equivalence.axes[value] for value in (*exact, *atoms)}:
            key = np.zeros(self._workgroups(axes)[0], np.int64)
            for column in self._columns(*([v for v in each if equivalence.axes[v] == axes] for each in (exact, atoms))):
                key = _joined(key, column)
            keys[axes] = key
        return keys

    def _columns(self, exact: list[Value], atoms: list[Value]) -> Iterator[Numbers]:
        """What must be equal, as numbers by position, of values that depend on the same."""
        values = list(dict.fromkeys([*exact, *atoms]))
        if not values:
            return
        axes = self._likeness.axes[values[0]]
        count = self._workgroups(axes)[0]
        numbers = {value: (_Rows(), np.zeros(count, np.int64)) for value in values}
        self._bases |= {atom: np.zeros(count, np.uint32) for atom in atoms}
        for first, value, rows in self._tables(values, axes):
            here = slice(first, first + len(rows))
            if value in self._bases:
                self._bases[value][here] = rows[:, 0]
                rows = rows - rows[:, :1]
            known, column = numbers[value]
            column[here] = known.numbered(rows)
        yield from (column for _, column in numbers.values())
        for atom in atoms:
            for factor, units in self._moves(atom):
                yield self._bases[atom].astype(np.int64) * factor % units

    def _moves(self, atom: Value) -> set[tuple[int, int]]:
        """Coefficients of an atom in addresses, with the units that a line of that memory has."""
        found = set()
        for moving in self._likeness.accesses:
            access = self._draft.lowered.accesses[moving.item.access]
            if atom in moving.form and access.space == "storage":
                found.add((moving.form[atom], self._any.line(access)))
        return found

    def _members(self, keys: dict[Axes, Numbers]) -> list[Numbers]:
        """The workgroups of each class, in ascending order, by their keys."""
        everyone = np.arange(self._count)
        key = np.zeros(self._count, np.int64)
        for axes, column in keys.items():
            key = _joined(key, column[self._positions(axes, everyone)])
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.diff(key[order])) + 1
        return np.split(order, starts)

    # ---- who stays in bounds ----

    def _fits(self, launch: Launch, outcome: Outcome, members: Numbers) -> NDArray[np.bool_]:
        """Which members of a class are in bounds, and out of them, just where its first is."""
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
        """In which members no comparison of numbers that move comes out otherwise, nor wraps around."""
        alike = np.ones(len(members), bool)
        for each, row in zip(self._likeness.comparisons, outcome.margins.tolist(), strict=False):
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
        """The accesses that have bounds, in the order of the program, with their lowest and highest addresses."""
        bounded = (each for each in self._likeness.accesses if program.accesses[each.item.access].stride)
        rows = (
            row for probe, row in zip(program.memory_probes, outcome.reached, strict=False) if probe.kind == "reach"
        )
        return zip(bounded, rows, strict=True)

    def _moved(self, form: Form, members: Numbers) -> Numbers:
        """How far an address of each member is from the first member's."""
        place = np.zeros(len(members), np.uint32)
        for atom, factor in form.items():
            if atom in self._bases:  # others are equal in all of a class
                base = self._bases[atom][self._positions(self._likeness.axes[atom], members)]
                place += base * np.uint32(factor)
        return (place - place[0]).view(np.int32).astype(np.int64)


class _Rows:
    """Numbers for rows of words: equal ones have the same."""

    def __init__(self) -> None:
        self._known: dict[bytes, int] = {}
        self._first: NDArray[np.uint32] | None = None

    def numbered(self, rows: NDArray[np.uint32]) -> Numbers:
        first = rows[0].copy() if self._first is None else self._first
        if self._first is None:
            self._first = first
            self._known[first.tobytes()] = 0
        numbers = np.zeros(len(rows), np.int64)
        for place in np.flatnonzero((rows != first).any(axis=1)).tolist():
            numbers[place] = self._known.setdefault(rows[place].tobytes(), len(self._known))
        return numbers


def _joined(one: Numbers, other: Numbers) -> Numbers:
    """A key that is equal where both are."""
    span = int(other.max(initial=0)) + 1
    if (int(one.max(initial=0)) + 1) * span > _DENSE:
        one, other = (np.unique(each, return_inverse=True)[1].reshape(-1) for each in (one, other))
        span = int(other.max(initial=0)) + 1
    return one * span + other


def _at_place(outcome: Outcome, place: int) -> None:
    """Let what a workgroup that ran alone has left say at which place of all it is."""
    for table, counts, column in (
        (outcome.bounds, at.OUTSIDE, at.WORKGROUP),
        (outcome.unwritten, at.OUTSIDE, at.WORKGROUP),
        (outcome.checks, at.CHECK_TIMES, at.CHECK_WORKGROUP),
        (outcome.events[1:], at.TIMES, at.EVENT_WORKGROUP),
    ):
        table[table[:, counts] > 0, column] = place

"""What the machine works with, cast from a mould: the bytes of all arrays of a program before it runs.

A mould never changes once it is made, so that every run begins with the same bytes, and threads may cast from one at
once. Of what a desk then holds, nothing finds its way back.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity, frozen
from ..machine import layout as at
from ..machine.compile.loader import flat, header, machine
from ..machine.probe_arrays import Shadow
from .partition import Outcome

_LINE = 64  # bytes of the cache: a vector across two lines costs twice as much
_LAUNCHED = (*range(at.GRID_X, at.GRID_Z + 1), at.BUDGET, at.IGNORED, at.STOP, at.FILLING)  # columns of a config


@entity
class LaunchParams:
    """What a launch puts into the arrays. `config`: columns `_LAUNCHED`; `rows`: of registers, which hold a number
    each; `access`, `watched`, `traced`: tables; `lent`: storage, order of workgroups, who stored, what is touched."""

    config: tuple[int, ...]
    rows: dict[int, int]
    access: NDArray[np.int64]
    watched: NDArray[np.int64]
    traced: NDArray[np.int64]
    lent: tuple[NDArray[Any], ...]


@frozen
class Part:
    """An array in memory: its first byte, its shape and type."""

    start: int
    shape: tuple[int, ...]
    kind: np.dtype[Any]

    def of(self, memory: NDArray[np.uint8]) -> NDArray[Any]:
        return np.ndarray(self.shape, self.kind, memory, self.start)  # a view


class Template:
    """The machine's arrays as `Arrays` makes them, one behind the other: the record of them all, those that count, the
    others, and last what is zero. `image`: all before that; `size`: of all, in bytes."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        arrays, number = list(flat(arguments)), _numbered(arguments, count())
        code, configs, registers, _, storage, access, events, _, places, _, order, probes, watch, _ = number
        counted = [probes.blocks, probes.tallies, probes.bounds, probes.reached, probes.margins]
        counted += [watch.unwritten, probes.checks]
        lent = [storage, order, probes.writers, probes.touched, *watch.storage]
        others = [i for i in range(len(arrays)) if i not in {code, *lent, *counted}]
        fields = np.array(machine().record(*arguments), np.int64)
        self._code = arrays[code]  # stays where it is, as long as this
        self.record, *parts = _in_line([fields, *(arrays[i] for i in (*counted, *_zeros_last(arrays, others)))])
        part = dict(zip((*counted, *_zeros_last(arrays, others)), parts, strict=True))
        self.size = _end(parts[-1])
        headers = [0, *accumulate(1 + array.ndim for array in arrays)]
        self.moved = np.array([headers[i] for i in part])  # in the record: addresses in here
        fields[self.moved] = [each.start for each in part.values()]
        self.replaced = np.array([place for i in lent for place in range(headers[i], headers[i + 1])])
        self.image = _image([(self.record, fields), *((part[i], arrays[i]) for i in part)])
        self.counted = slice(part[counted[0]].start, _end(part[counted[-1]]))
        first = self.counted.start
        self.tables = [Part(part[i].start - first, part[i].shape, part[i].kind) for i in counted]
        self.lists = [part[i] for i in (events, watch.races, probes.notes)]
        self.state = [part[i] for i in (probes.worked, probes.working, places)]
        self.configs, self.registers = part[configs], part[registers]
        self.tabled = [part[i] for i in (access, watch.table, probes.watched)]


class Workspace:
    """Memory for one run of the machine at a time, one piece after the other."""

    def __init__(self, template: Template, given: LaunchParams, shadow: Shadow) -> None:
        room = np.zeros(template.size + _LINE, np.uint8)
        start, _ = room.__array_interface__["data"]
        self._memory = memory = room[-start % _LINE :]
        address = start + -start % _LINE
        memory[: template.image.size] = template.image
        record = template.record.of(memory)
        record[template.moved] += address
        record[template.replaced] = [number for array in (*given.lent, *shadow) for number in header(array)]
        self._configs = template.configs.of(memory)
        self._configs[:, _LAUNCHED] = given.config
        for part, table in zip(template.tabled, (given.access, given.watched, given.traced), strict=True):
            part.of(memory)[...] = table
        registers = template.registers.of(memory)
        for row, value in given.rows.items():
            registers[:, row] = value
        self._mould, self._lent = template, (given, shadow)
        *self._lists, self._worked, _, self._places = self._state = [
            part.of(memory) for part in (*template.lists, *template.state)
        ]
        self._fresh, self._run = True, machine().ready(address)

    def run(self, first: int, last: int) -> Outcome:
        """Run workgroups `first` to `last` of a launch. Registers and known patterns stay from piece to piece, as they
        do from batch to batch."""
        finished = self._finished(first, last)
        counts = self._memory[self._mould.counted].copy()
        blocks, tallies, bounds, reached, margins, unwritten, checks = (part.of(counts) for part in self._mould.tables)
        events, races, notes = (_taken(table) for table in self._lists)
        return Outcome(
            *(blocks, tallies, bounds, reached, margins, events, races, unwritten, checks, notes),
            worked=int(self._worked[1]),
            finished=finished,
            jumps=int(self._places[:, at.MOST].max()),
        )

    def glance(self, place: int, turns: int) -> float:
        """Run one workgroup, to its end or so many turns of its loops, and nothing after it: of the lanes that it has
        in loops, the part that is needed, up to the last active one. 1 where there are no loops."""
        self._configs[:, at.GLANCE], self._configs[:, at.BUDGET] = 1, turns
        self._finished(place, place + 1)
        needed, every = self._places[:, [at.NEEDED_LANES, at.ALL_LANES]].sum(axis=0).tolist()
        return needed / every if every else 1.0

    def _finished(self, first: int, last: int) -> int:
        """Run these workgroups, with nothing counted before them; how many came to their end."""
        self._configs[:, at.FIRST], self._configs[:, at.LAST] = first, last
        if not self._fresh:
            counted = self._mould.counted
            self._memory[counted] = self._mould.image[counted]
            for table in self._state:
                table[:] = 0
        self._fresh = False
        return self._run()


def _taken(table: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of a table the row that says first how many others there are, and those; it may say more than there is room."""
    return table[: 1 + int(table[0, 0])].copy()


def _numbered(arguments: Any, numbers: Iterator[int]) -> Any:
    """The same records, with its number in place of each array."""
    if not isinstance(arguments, tuple):
        return next(numbers)
    made = [_numbered(each, numbers) for each in arguments]
    return type(arguments)(*made) if hasattr(arguments, "_fields") else tuple(made)


def _zeros_last(arrays: list[NDArray[Any]], numbers: list[int]) -> list[int]:
    """In the order in which an image of them takes the least room."""
    return sorted(numbers, key=lambda i: arrays[i].nbytes - _used(arrays[i]))


def _used(array: NDArray[Any]) -> int:
    """Bytes of an array before only zeros follow."""
    places = np.flatnonzero(array)
    return (int(places[-1]) + 1) * array.itemsize if places.size else 0


def _in_line(arrays: list[NDArray[Any]]) -> list[Part]:
    """Arrays one behind the other, each on a line of its own."""
    parts, start = [], 0
    for array in arrays:
        parts.append(Part(start, array.shape, array.dtype))
        start = _end(parts[-1])
    return parts


def _end(part: Part) -> int:
    size = int(np.prod(part.shape)) * part.kind.itemsize
    return part.start + -(-size // _LINE) * _LINE


def _image(arrays: list[tuple[Part, NDArray[Any]]]) -> NDArray[np.uint8]:
    """The bytes of all arrays, up to where only zeros follow."""
    image = np.zeros(max(part.start + _used(array) for part, array in arrays if array.any()), np.uint8)
    for part, array in arrays:
        used = array.reshape(-1).view(np.uint8)[: _used(array)]
        image[part.start : part.start + used.size] = used
    return image

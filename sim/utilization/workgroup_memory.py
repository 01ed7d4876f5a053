"""What a slice knows of the lanes and the memory of a workgroup, in either direction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Slot, Value
from .steps import Step

_GRAIN = 2  # bytes: the smallest unit of memory

Cell = Value | Slot | tuple[ir.Block, int]


class Lanes:
    """Sets of lanes, as the bits of an int."""

    def __init__(self, count: int, subgroup_size: int) -> None:
        self.all = (1 << count) - 1
        self._subgroup_size = subgroup_size
        self._count, self._bytes = count, (count + 7) // 8
        self.subgroups = [
            ((1 << min(subgroup_size, count - start)) - 1) << start for start in range(0, count, subgroup_size)
        ]

    def of(self, lanes: NDArray[np.int64], which: NDArray[np.bool_] | None = None) -> int:
        """Return these lanes, or `which` of them."""
        if which is not None:
            lanes = lanes[which]
        if len(lanes) == self._count:
            return self.all
        if len(lanes) == 1:
            return 1 << int(lanes[0])
        bits = np.zeros(self._count, np.uint8)
        bits[lanes] = 1
        return int.from_bytes(np.packbits(bits, bitorder="little").tobytes(), "little")

    def among(self, some: int, lanes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of the lanes are in a set."""
        if some in (0, self.all):
            return np.full(len(lanes), bool(some))
        data = np.frombuffer(some.to_bytes(self._bytes, "little"), np.uint8)
        return np.unpackbits(data, bitorder="little")[lanes].astype(np.bool_)

    def slots(self, active: int) -> int:
        """Return the issue slots of an instruction: the lanes of the subgroups with an active one."""
        return self._subgroup_size * sum(1 for lanes in self.subgroups if active & lanes)

    def sources(self, step: Step, asking: NDArray[np.bool_]) -> int:
        """Return the lanes from which the asking ones of a shuffle read: the facts of the step are numbers in a
        subgroup."""
        size = self._subgroup_size
        lanes = step.lanes[asking]
        read = lanes - lanes % size + np.minimum(step.facts[asking], size - 1)
        return self.of(read[read < self._count])

    def picks(self, block: ir.Block, step: Step) -> Iterator[tuple[Cell, int]]:
        """Yield each scalar of a block that the lanes of a step pick, with the lanes that do."""
        rows = np.minimum(step.facts, block.rows - 1)
        for row in map(int, np.unique(rows)):
            cell: Cell = (block, row) if block.is_table else block.slots[row]
            yield cell, self.of(step.lanes, rows == row)


class Memory:
    """Grains of one variable, from number `start` on: `zero`, those that hold a padding zero, or in a buffer a zero;
    `needed`, those whose present contents something reads."""

    def __init__(self, zero: NDArray[np.bool_], start: int, is_buffer: bool) -> None:
        self.zero = zero
        self.needed = np.full(len(zero), is_buffer)
        self.start = start
        self.is_buffer = is_buffer


class Memories:
    """The memory that a workgroup may change, by variable, as it is before the workgroup runs.

    `contents`: the bytes of each writable buffer; `workgroup_bytes`: the size of each workgroup variable. Of buffers,
    which may be large, it has the range that the steps touch.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        accesses: Sequence[Access],
        contents: Mapping[str, NDArray[np.uint8]],
        workgroup_bytes: Mapping[str, int],
    ) -> None:
        self._accesses = accesses
        self._of: dict[str, Memory] = {}
        for name, size in workgroup_bytes.items():
            self._of[name] = Memory(np.ones(size // _GRAIN, np.bool_), 0, False)
        for name, grains in self._touched(steps).items():
            if name in contents:
                data = contents[name][grains.start * _GRAIN : grains.stop * _GRAIN]
                words = data[: len(data) // _GRAIN * _GRAIN].reshape(-1, _GRAIN)
                self._of[name] = Memory(words.max(axis=1, initial=0) == 0, grains.start, True)

    def _touched(self, steps: Sequence[Step]) -> dict[str, range]:
        """Return the range of grains of each variable that the steps touch."""
        found: dict[str, range] = {}
        for step in steps:
            item = step.chunk.first
            if isinstance(item, ir.Load | ir.Store | ir.Atomic):
                name = self._accesses[item.access].variable.name
                units = self._accesses[item.access].units
                low, high = (self._first_grain(item.access, at, 0) for at in (step.facts.min(), step.facts.max()))
                known = found.get(name, range(low, low))
                stop = high + units * self._width(item.access)
                found[name] = range(min(known.start, low), max(known.stop, stop))
        return found

    def _width(self, access: int) -> int:
        return max(1, self._accesses[access].unit // _GRAIN)

    def _first_grain(self, access: int, at: Any, place: int) -> Any:
        """Return the first grain of unit `place` at an address, or in each lane."""
        row = self._accesses[access]
        return ((at + (row.offset + place)) & 0xFFFFFFFF) * row.unit // _GRAIN

    def grains(self, access: int, step: Step, place: int) -> tuple[Memory, NDArray[np.int64]] | None:
        """Return the memory of an access, and the places in it of unit `place` (grains per unit x lanes).

        An address out of bounds counts as the last one. None for what the workgroup cannot change.
        """
        memory = self._of.get(self._accesses[access].variable.name)
        if memory is None or not len(memory.zero):
            return None
        first = self._first_grain(access, step.facts, place) - memory.start
        return memory, np.clip(first + np.arange(self._width(access))[:, None], 0, len(memory.zero) - 1)

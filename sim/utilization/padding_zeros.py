"""Padding zeros: zeros that come from no data.

These are constants, memory that the workgroup has not written, products with a padding zero, and sums of two.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir import ir
from ..ir.ir import Value
from .steps import Part, Step
from .workgroup_memory import Cell, Lanes, Memories

Known = dict[int, tuple[int, ...]]
"""The lanes with padding zeros that parts of a step need to know, by number of the part."""


class PaddingZeros:
    """Follows padding zeros forward, through the steps of a workgroup."""

    def __init__(self, lanes: Lanes, memories: Memories) -> None:
        self._lanes, self._memories = lanes, memories
        self._zero: dict[Cell, int] = {}  # the lanes in which a value or variable is a padding zero

    def follow(self, steps: Sequence[Step], active: Sequence[int]) -> list[Known]:
        """Return what each step needs to know. `active`: the lanes of each."""
        found: list[Known] = []
        for step, lanes in zip(steps, active, strict=True):
            parts = enumerate(step.chunk.parts)
            found.append({number: zeros for number, part in parts if any(zeros := self._through(part, step, lanes))})
        return found

    def _through(self, part: Part, step: Step, active: int) -> tuple[int, ...]:
        """Follow padding zeros through a part; return those of its operands, or what else its needs depend on."""
        zero = self._zero
        match part:
            case Value():
                return self._through_value(part, step)
            case ir.Set(slot=slot, value=value):
                zero[slot] = self._of(slot) & ~active | self._of(value) & active
            case ir.Pick(result=result, block=block):
                zero[result] = 0
                for cell, lanes in self._lanes.picks(block, step):
                    zero[result] |= self._of(cell) & lanes
            case ir.Put(block=block, value=value):
                for cell, lanes in self._lanes.picks(block, step):
                    zero[cell] = self._of(cell) & ~lanes | self._of(value) & lanes
            case ir.Load(results=results, access=access):
                for place, result in enumerate(results):
                    found = self._memories.grains(access, step, place)
                    if found is not None and not found[0].is_buffer:
                        zero[result] = self._lanes.of(step.lanes, np.logical_and.reduce(found[0].zero[found[1]]))
                    else:
                        zero[result] = 0
            case ir.Store(values=values, access=access):
                return tuple(self._store(value, access, step, place) for place, value in enumerate(values))
            case ir.Atomic(op=op, access=access) if op != "load":
                if (held := self._memories.grains(access, step, 0)) is not None:
                    held[0].zero[held[1]] = False
            case _:
                pass
        return ()

    def _store(self, value: Value, access: int, step: Step, place: int) -> int:
        """Store to memory; return the lanes that store a padding zero over a zero in a buffer."""
        if (held := self._memories.grains(access, step, place)) is None:
            return 0
        memory, grains = held
        zeros = self._lanes.among(self._of(value), step.lanes)
        in_vain = zeros & np.logical_and.reduce(memory.zero[grains])
        memory.zero[grains] = zeros
        return self._lanes.of(step.lanes, in_vain) if memory.is_buffer else 0

    def _through_value(self, value: Value, step: Step) -> tuple[int, ...]:
        stem = stem_of(value.op)
        if value.op == "get":
            self._zero[value] = self._of(value.imm)
            return ()
        if stem == "select":
            chosen = self._lanes.of(step.lanes, step.facts != 0)
            other, one, _ = map(self._of, value.args)
            self._zero[value] = other & ~chosen | one & chosen
            return (chosen,)
        if stem not in _RESULTS:
            self._zero[value] = 0
            return ()
        known = tuple(self._of(each) for each in value.args)
        self._zero[value] = _RESULTS[stem](*known)
        return known

    def _of(self, cell: Cell) -> int:
        if isinstance(cell, Value) and cell.op == "const":
            return 0 if cell.imm else self._lanes.all
        return self._zero.get(cell, 0)


def _either(one: int, other: int) -> int:
    return one | other


def _both(one: int, other: int) -> int:
    return one & other


def _first(one: int, _: int = 0) -> int:
    return one


def _fused(one: int, other: int, more: int) -> int:
    return (one | other) & more


# The lanes in which the result of an operation is a padding zero, from those of its operands.
_RESULTS = {
    "mul": _either,
    "and": _either,
    "add": _both,
    "or": _both,
    "xor": _both,
    "sub": _both,
    "min": _both,
    "max": _both,
    "fma": _fused,
    "div": _first,
    "shl": _first,
    "shr": _first,
    "neg": _first,
    "abs": _first,
    "bits": _first,
    "convert": _first,
}


def stem_of(op: str) -> str:
    """Return what an operation does, whatever its types.

    >>> [stem_of(op) for op in ("add_f32", "convert_u32_f32", "bits")]
    ['add', 'convert', 'bits']
    """
    return "convert" if op.startswith("convert_") else op.rpartition("_")[0] or op

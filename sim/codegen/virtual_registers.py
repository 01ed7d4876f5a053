"""Instructions on virtual registers, and their allocation to rows.

Codegen emits `Ins` with `Reg`s; `allocate` gives each a row, such that no two that are live at once share one.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from dataclasses import field
from itertools import chain
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..analysis.loop_nest import LoopNest
from ..fast_dataclass import entity
from ..wgsl.source import Span


@entity(slots=True)
class Reg:
    """A register: `rows` adjacent rows, allocated from `row` on; or, with `of`, row number `row` of another register.

    Inputs and constants are `fixed`: their row is known from the start. `first` and `last` are the positions between
    which the register is live.
    """

    rows: int = 1
    row: int = -1
    fixed: bool = False
    of: Reg | None = None
    first: int = -1
    last: int = -1


Field = Reg | int
FIELDS = ("dest", "a", "b", "c", "e", "mask", "x")  # of `Ins`, in the order of an encoded instruction
_WORDS = 1 + len(FIELDS)  # of an encoded instruction


@entity(slots=True)
class Ins:
    """One instruction: an opcode and its `FIELDS` (see `machine.instruction`)."""

    op: int
    dest: Field = -1
    a: Field = -1
    b: Field = -1
    c: Field = -1
    e: Field = -1
    mask: Field = -1
    x: Field = -1
    span: Span | None = None  # the source it was generated from

    def fields(self) -> tuple[Field, ...]:
        return (self.dest, self.a, self.b, self.c, self.e, self.mask, self.x)

    def registers(self) -> list[Reg]:
        """Return the registers it touches; for a part of a register, the whole."""
        return [each.of or each for each in _fields(self) if type(each) is Reg]


_fields: Callable[[Ins], tuple[Field, ...]] = attrgetter(*FIELDS)


@entity
class Label:
    """A target of jumps. `levels`: the levels of the jumps to it (see `control_flow`)."""

    position: int = -1
    levels: set[int] = field(default_factory=set[int])


@entity
class Code:
    """A growing list of instructions, with its jumps, and its loops by first and last position.

    `span`: the source of the instructions that are added now.
    """

    instructions: list[Ins] = field(default_factory=list[Ins])
    loops: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    jumps: list[tuple[int, Label]] = field(default_factory=list[tuple[int, Label]])
    block_start: int = 0  # first position of the present basic block
    span: Span | None = None

    def add(self, ins: Ins) -> Ins:
        ins.span = self.span
        self.instructions.append(ins)
        return ins

    def jump(self, ins: Ins, label: Label) -> None:
        ins.span = self.span
        self.jumps.append((len(self.instructions), label))
        self.instructions.append(ins)
        self.block_start = self.here

    def place(self, label: Label) -> None:
        label.position = self.block_start = self.here

    @property
    def here(self) -> int:
        return len(self.instructions)

    def opcodes(self) -> set[int]:
        """Return the opcodes in it: a pass may have nothing to do."""
        return set(map(attrgetter("op"), self.instructions))


def assemble(code: Code, first_row: int, shared: bool = True) -> tuple[NDArray[np.int32], int]:
    """Give every register its rows, from `first_row` on. Returns the instructions as int32[n, 8] (see
    `machine.instruction`), and the number of all rows.

    `shared`: registers that are never live at once may have the same rows."""
    words: list[Any] = list(chain.from_iterable(map(attrgetter("op", *FIELDS), code.instructions)))
    places = [place for place, kind in enumerate(map(type, words)) if kind is Reg]
    top = _allocate(_live_ranges(code, words, places), first_row, shared)
    for place in places:
        reg = words[place]
        words[place] = reg.row + reg.of.row if reg.of else reg.row
    return np.array(words, np.int32).reshape(-1, _WORDS), top


def _allocate(registers: list[Reg], first_row: int, shared: bool) -> int:
    """Give registers, in the order of `first`, their rows. Returns the number of all rows."""
    by_end = sorted(registers, key=attrgetter("last")) if shared else []
    free, dead = _Free(first_row), 0
    for reg in registers:
        # Operations are elementwise, so the result may take the row of an operand that dies here.
        while dead < len(by_end) and (dying := by_end[dead]).last <= reg.first and dying.first < reg.first:
            free.give(dying.row, dying.rows)
            dead += 1
        reg.row = free.take(reg.rows)
    return free.top


class _Free:
    """The free rows below `top`, as sorted ranges that do not touch: first rows, and the rows after the last."""

    def __init__(self, top: int) -> None:
        self.top = top
        self._firsts: list[int] = []
        self._ends: list[int] = []

    def take(self, rows: int) -> int:
        """Take the lowest adjacent free rows, or new ones. Returns the first."""
        firsts, ends = self._firsts, self._ends
        for i, first in enumerate(firsts):
            after = first + rows
            if after < ends[i]:
                firsts[i] = after
                return first
            if after == ends[i]:
                del firsts[i], ends[i]
                return first
        self.top += rows
        return self.top - rows

    def give(self, first: int, rows: int) -> None:
        """Make rows free."""
        end, at = first + rows, bisect(self._firsts, first)
        if at < len(self._firsts) and self._firsts[at] == end:
            end = self._ends[at]
            del self._firsts[at], self._ends[at]
        if at and self._ends[at - 1] == first:
            self._ends[at - 1] = end
        else:
            self._firsts.insert(at, first)
            self._ends.insert(at, end)


def _live_ranges(code: Code, words: list[Any], places: list[int]) -> list[Reg]:
    """Set `first` and `last` of every register, and list them by `first`. One that is live into a loop is live to its
    end. `places`: those of registers among the words of the instructions."""
    registers: list[Reg] = []
    for place in places:
        reg = words[place]
        reg = reg.of or reg
        if reg.fixed:
            continue
        if reg.first < 0:
            reg.first = place // _WORDS
            registers.append(reg)
        reg.last = place // _WORDS
    if code.loops:
        loops = LoopNest(code.loops)
        for reg in registers:
            reg.last = loops.last_use(reg.first, reg.last)
    return registers

"""Instructions on virtual registers, and their allocation to rows.

Codegen emits `Ins` with `Reg`s; `allocate` gives each a row, such that no two that are live at once share one.
"""

from __future__ import annotations

from dataclasses import field

from ..fast_dataclass import entity
from ..wgsl.source import Span


@entity
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


@entity
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
        fields = (self.dest, self.a, self.b, self.c, self.e, self.mask, self.x)
        return [each.of or each for each in fields if isinstance(each, Reg)]

    def encode(self) -> tuple[int, ...]:
        """Return the row of the program. Every register must have its row."""
        return (self.op, *[_row(f) if isinstance(f, Reg) else f for f in self.fields()])


def _row(reg: Reg) -> int:
    return reg.row if reg.of is None else reg.of.row + reg.row


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


def allocate(code: Code, first_row: int, shared: bool = True) -> int:
    """Give every register its rows, from `first_row` on, and return the number of all rows.

    `shared`: registers that are never live at once may have the same rows."""
    registers = _live_ranges(code)
    starting: dict[int, list[Reg]] = {}
    ending: dict[int, list[Reg]] = {}
    for reg in registers:
        starting.setdefault(reg.first, []).append(reg)
        ending.setdefault(reg.last if shared else code.here, []).append(reg)
    free: set[int] = set()
    top = first_row
    for position in range(code.here):
        # Operations are elementwise, so the result may take the row of an operand that dies here.
        dying = [r for r in ending.get(position, []) if r.first < position]
        for reg in dying:
            free.update(range(reg.row, reg.row + reg.rows))
        for reg in starting.get(position, []):
            reg.row, top = _take(free, reg.rows, top)
        for reg in ending.get(position, []):
            if reg.first == position:
                free.update(range(reg.row, reg.row + reg.rows))
    return top


def _take(free: set[int], rows: int, top: int) -> tuple[int, int]:
    """Take the lowest adjacent free rows, or new ones. Returns the first row, and the new number of rows."""
    if rows == 1 and free:
        start = min(free)
        free.remove(start)
        return start, top
    for start in sorted(free):
        if all(start + i in free for i in range(rows)):
            free.difference_update(range(start, start + rows))
            return start, top
    return top, top + rows


def _live_ranges(code: Code) -> list[Reg]:
    """Set `first` and `last` of every register. A register that is live into a loop is live to its end."""
    registers: dict[int, Reg] = {}
    for position, ins in enumerate(code.instructions):
        for reg in ins.registers():
            if reg.fixed:
                continue
            if reg.first < 0:
                reg.first = position
                registers[id(reg)] = reg
            reg.last = position
    # Inner loops end first, so one pass from the inside out is enough.
    for start, end in sorted(code.loops, key=lambda loop: loop[1] - loop[0]):
        for reg in registers.values():
            if reg.first < start <= reg.last <= end:
                reg.last = end
    return list(registers.values())

"""Basic blocks of code that passes may rearrange: nothing jumps into or out of them, and they write to no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..machine import opcodes as op
from .virtual_registers import Code, Ins, Reg

LOADS = frozenset((op.LOAD, op.LOAD_KNOWN))
_COUNTS = (op.COUNT, op.BANKS, op.SECTORS, op.BOUNDS, op.WATCH_READ, op.CHECK)
_MOVABLE = frozenset((*LOADS, op.COPY, op.BROADCAST, op.LEARN, op.LENGTH, op.CHECKED, *_COUNTS))

Pieces = list[tuple[int, list[Ins]]]


def rewrite_blocks(code: Code, rewrite: Callable[[list[Ins]], list[Ins]]) -> None:
    """Replace each basic block by what `rewrite` returns for it."""
    starts = {label.position for _, label in code.jumps} | {start for start, _ in code.loops}
    pieces: Pieces = []
    blocks: list[int] = []  # the numbers of the pieces that are basic blocks
    in_block = False  # whether the last piece is one
    for position, ins in enumerate(code.instructions):
        movable = ins.op >= op.SCALAR or ins.op in _MOVABLE
        if movable and in_block and position not in starts:
            pieces[-1][1].append(ins)
            continue
        if movable:
            blocks.append(len(pieces))
        pieces.append((position, [ins]))
        in_block = movable
    changed = False
    for number in blocks:
        position, block = pieces[number]
        if (made := rewrite(block)) != block:
            pieces[number], changed = (position, made), True
    if changed:
        replace(code, pieces)


def replace(code: Code, pieces: Pieces) -> None:
    """Replace all instructions. Each piece replaces those from its position up to the position of the next piece."""
    starts: dict[int, int] = {}
    ends: dict[int, int] = {}
    made: list[Ins] = []
    for old, piece in pieces:
        starts[old] = len(made)
        made += piece
        ends[old] = len(made) - 1
    code.instructions = made
    for label in {id(label): label for _, label in code.jumps}.values():
        label.position = starts[label.position]
    code.jumps = [(ends[position], label) for position, label in code.jumps]
    code.loops = [(starts[first], ends[last]) for first, last in code.loops]


def uses_of(code: Code) -> Counter[Reg]:
    """Count the instructions that touch each register."""
    return Counter([reg for ins in code.instructions for reg in {*ins.registers()}])


def written(ins: Ins) -> list[Reg]:
    """Return the registers whose rows, or what the machine knows of them, an instruction changes."""
    fields = [ins.dest, ins.a if ins.op == op.LEARN else -1]
    return [f.of or f for f in fields if isinstance(f, Reg)]

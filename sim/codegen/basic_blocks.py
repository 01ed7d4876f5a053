"""Straight runs of code, which can be rearranged: what nothing jumps into or out of, and that writes to no memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ..machine import opcodes as op
from .virtual_registers import Code, Ins, Reg

LOADS = frozenset((op.LOAD, op.LOAD_KNOWN))
_COUNTS = (op.COUNT, op.BANKS, op.SECTORS, op.BOUNDS, op.WATCH_READ, op.CHECK)
_QUIET = frozenset((*LOADS, op.COPY, op.BROADCAST, op.LEARN, op.LENGTH, op.CHECKED, *_COUNTS))

Pieces = list[tuple[int, list[Ins]]]


def rewrite_runs(code: Code, rewrite: Callable[[list[Ins]], list[Ins]]) -> None:
    """Put in place of each run what `rewrite` makes of it."""
    starts = {label.position for _, label in code.jumps} | {start for start, _ in code.loops}
    pieces: Pieces = []
    runs = False  # whether the last piece is one
    for position, ins in enumerate(code.instructions):
        quiet = _is_quiet(ins)
        if quiet and runs and position not in starts:
            pieces[-1][1].append(ins)
        else:
            pieces.append((position, [ins]))
        runs = quiet
    replace(code, [(at, rewrite(run) if _is_quiet(run[0]) else run) for at, run in pieces])


def _is_quiet(ins: Ins) -> bool:
    return ins.op >= op.SCALAR or ins.op in _QUIET


def replace(code: Code, pieces: Pieces) -> None:
    """Put other instructions in place of the old: each piece stands for those from a position to that of the next."""
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
    """How many instructions touch each register."""
    return Counter([reg for ins in code.instructions for reg in {*ins.registers()}])


def written(ins: Ins) -> list[Reg]:
    """The registers whose rows, or what is known of them, an instruction changes."""
    fields = [ins.d, ins.a if ins.op == op.LEARN else -1]
    return [f.of or f for f in fields if isinstance(f, Reg)]

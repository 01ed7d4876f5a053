"""A pass that marks loads, or stores, of four units as one access.

It needs the final order of instructions. It changes only the first of the four: the machine may then execute all at
once, and skip the other three.
"""

from __future__ import annotations

from ..ir.access import UNITS_PER_ACCESS
from ..machine import opcodes as op
from ..machine.instruction import FOUR
from .virtual_registers import Code, Ins

_LOADS, _STORES = (op.LOAD, op.LOAD_KNOWN), (op.STORE, op.STORE_KNOWN)


def mark_wide_accesses(code: Code) -> None:
    """Mark the first of any four adjacent loads, or stores, of the units of one access in order."""
    entered = {label.position for _, label in code.jumps}
    for position in range(code.here - FOUR):  # the last instruction is no access: it ends the program
        four = code.instructions[position : position + FOUR]
        inside = range(position + 1, position + FOUR)
        if _is_one_access(four) and entered.isdisjoint(inside):
            _mark(four[0])


def _mark(first: Ins) -> None:
    if first.op in _LOADS:
        first.mask = FOUR
    else:
        first.op = op.STORE_FOUR


def _is_one_access(rows: list[Ins]) -> bool:
    first = rows[0]
    if first.op not in (*_LOADS, *_STORES):
        return False
    unit_of_first = first.e
    assert isinstance(unit_of_first, int)
    if unit_of_first % UNITS_PER_ACCESS:
        return False
    wanted = (first.op, first.a, first.b, first.c, 0 if first.op in _LOADS else first.mask, first.x)
    return all(
        (ins.op, ins.a, ins.b, ins.c, ins.mask, ins.x) == wanted and ins.e == unit_of_first + unit
        for unit, ins in enumerate(rows)
    )

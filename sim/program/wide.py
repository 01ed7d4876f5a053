"""Loads of four units become one: the rows stay as they are, and the first says that the machine may do all at once."""

from __future__ import annotations

from ..machine import opcodes as op
from .access import UNITS_PER_ACCESS
from .code import Code, Ins


def widen(code: Code) -> None:
    """Mark the first of each four loads that stand side by side and bring the units of one access, in order."""
    entered = {label.position for _, label in code.jumps}
    for position in range(code.here - op.FOUR + 1):
        four = code.instructions[position : position + op.FOUR]
        inside = range(position + 1, position + op.FOUR)
        if _is_one_access(four) and entered.isdisjoint(inside):
            four[0].m = op.FOUR


def _is_one_access(rows: list[Ins]) -> bool:
    first = rows[0]
    if first.op not in (op.LOAD, op.LOAD_KNOWN) or not isinstance(first.e, int) or first.e % UNITS_PER_ACCESS:
        return False
    wanted = (first.op, first.a, first.b, first.c, 0, first.x)
    return all(
        (ins.op, ins.a, ins.b, ins.c, ins.m, ins.x) == wanted and ins.e == first.e + unit
        for unit, ins in enumerate(rows)
    )

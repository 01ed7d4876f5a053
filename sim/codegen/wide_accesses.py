"""A pass that marks loads, or stores, of four consecutive units: those of one access, or of four neighbors in an array.

It needs the final order of instructions. It changes only the first of the four: the machine may then execute all at
once, and skip the other three.
"""

from __future__ import annotations

import itertools
from operator import attrgetter

from ..ir.access import UNITS_PER_ACCESS
from ..machine import opcodes as op
from ..machine.instruction import FOUR
from .virtual_registers import Code, Ins

_LOADS, _STORES = (op.LOAD, op.LOAD_KNOWN), (op.STORE, op.STORE_KNOWN)
_ACCESSES = frozenset((*_LOADS, *_STORES))


def mark_wide_accesses(code: Code) -> None:
    """Mark the first of any four adjacent loads, or stores, of consecutive units in order."""
    entered = {label.position for _, label in code.jumps}
    free = 0  # the first instruction after those that are marked
    opcodes = list(map(attrgetter("op"), code.instructions))
    # The last instruction is no access: it ends the program.
    for position, (opcode, following) in enumerate(itertools.pairwise(opcodes[: 1 - FOUR])):
        if opcode != following or position < free or opcode not in _ACCESSES:
            continue
        inside = range(position + 1, position + FOUR)
        if are_consecutive(code.instructions[position : position + FOUR]) and entered.isdisjoint(inside):
            _mark(code.instructions[position])
            free = position + FOUR


def _mark(first: Ins) -> None:
    if first.op in _LOADS:
        first.mask = FOUR
    else:
        first.op = op.STORE_FOUR


def are_consecutive(four: list[Ins]) -> bool:
    """Whether four accesses use the same registers of addresses, and the words that follow one another."""
    first = four[0]
    if first.op not in _ACCESSES:
        return False
    loads = first.op in _LOADS
    wanted = (first.op, first.a, first.b, 0 if loads else first.mask, first.x)
    if any((ins.op, ins.a, ins.b, ins.mask, ins.x) != wanted for ins in four):
        return False
    sources = (first.a, first.b, first.x)
    if loads and any(ins.dest is source for ins in four[:-1] for source in sources):
        return False
    return all(_follows(*pair) for pair in itertools.pairwise(four))


def _follows(before: Ins, after: Ins) -> bool:
    """Whether an access is to the next unit of the same element, or to the same unit with the next constant."""
    (unit, constant), (next_unit, next_constant) = _place(before), _place(after)
    if unit == next_unit:
        return next_constant == constant + 1
    return next_unit == unit + 1 and next_unit % UNITS_PER_ACCESS != 0 and next_constant == constant


def _place(ins: Ins) -> tuple[int, int]:
    """Return the row of an access, and the constant that is added to its addresses."""
    assert isinstance(ins.e, int)
    assert isinstance(ins.c, int)
    return ins.e, ins.c

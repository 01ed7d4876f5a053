"""Atomic operations: lane by lane, in lane order, on one 32-bit word of storage or workgroup memory."""

from __future__ import annotations

import numpy as np

from .compile.units import compiled, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, WORDS
from .layout import BASE, SHARED, SPACE
from .memory import address_of, shared_part
from .opcodes import ATOMICS, FIRST_ATOMIC

_LOAD, _STORE, _ADD, _SUB, _MAX_I, _MAX_U, _MIN_I, _MIN_U, _AND, _OR, _XOR, _EXCHANGE, _COMPARE = range(len(ATOMICS))


@compiled
def combine(what, old, value):
    """What the word becomes (`compare` is decided by the caller)."""
    if what == _LOAD:
        return old
    if what == _ADD:
        return np.uint32(old + value)
    if what == _SUB:
        return np.uint32(old - value)
    if what == _MAX_I:
        return np.uint32(max(np.int32(old), np.int32(value)))
    if what == _MAX_U:
        return max(old, value)
    if what == _MIN_I:
        return np.uint32(min(np.int32(old), np.int32(value)))
    if what == _MIN_U:
        return min(old, value)
    if what == _AND:
        return old & value
    if what == _OR:
        return old | value
    if what == _XOR:
        return old ^ value
    return value


@part(REGISTERS, INSTRUCTION, NUMBERS, WORDS, WORDS, LONG)
def atomic(regs, row, entry, storage, shared, lanes):
    """One atomic instruction: D = old value; `compare` also sets the row after D to whether it exchanged."""
    what, d, mask, offsets = row[0] - FIRST_ATOMIC, row[1], row[6], row[7]
    memory = shared if entry[SPACE] == SHARED else storage
    extra = shared_part(regs, row[3], row[4])
    base = np.uint32(entry[BASE])
    for lane in range(lanes):
        if mask >= 0 and regs[mask, lane] == 0:
            continue
        at, happens = address_of(regs[row[2], lane], extra, entry)
        if not happens:
            regs[d, lane] = 0
            if what == _COMPARE:
                regs[d + 1, lane] = 0
            continue
        place = base + np.uint32(at + regs[offsets, lane])
        old = memory[place]
        if what == _COMPARE:
            same = old == regs[d + 1, lane]
            if same:
                memory[place] = regs[d + 2, lane]
            regs[d + 1, lane] = np.uint32(same)
        else:
            memory[place] = combine(what, old, regs[d + 1, lane])
        regs[d, lane] = old

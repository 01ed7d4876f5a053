"""Atomic operations: lane by lane, in lane order, on one 32-bit word of storage or workgroup memory."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import opcodes as op
from .compile.units import compiled, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, WORDS
from .layout import BASE, SHARED, SPACE
from .memory import address_of, shared_part


@compiled
def combine(what, old, value):
    """Return the new value of the word. The caller handles `compare`."""
    if what == op.ATOMIC_LOAD:
        return old
    if what == op.ATOMIC_ADD_U32:
        return np.uint32(old + value)
    if what == op.ATOMIC_SUB_U32:
        return np.uint32(old - value)
    if what == op.ATOMIC_MAX_I32:
        return np.uint32(max(np.int32(old), np.int32(value)))
    if what == op.ATOMIC_MAX_U32:
        return max(old, value)
    if what == op.ATOMIC_MIN_I32:
        return np.uint32(min(np.int32(old), np.int32(value)))
    if what == op.ATOMIC_MIN_U32:
        return min(old, value)
    if what == op.ATOMIC_AND_U32:
        return old & value
    if what == op.ATOMIC_OR_U32:
        return old | value
    if what == op.ATOMIC_XOR_U32:
        return old ^ value
    return value


@part(REGISTERS, INSTRUCTION, NUMBERS, WORDS, WORDS, LONG)
def atomic(regs, row, entry, storage, shared, lanes):
    """Run an atomic instruction. DEST = old value; `compare` also sets row ATOMIC_VALUE to whether it exchanged."""
    what, d, mask, offsets = row[field.OP], row[field.DEST], row[field.MASK], row[field.SHIFTS]
    value, new = d + field.ATOMIC_VALUE, d + field.ATOMIC_NEW
    memory = shared if entry[SPACE] == SHARED else storage
    extra = shared_part(regs, row)
    base = np.uint32(entry[BASE])
    for lane in range(lanes):
        if mask >= 0 and regs[mask, lane] == 0:
            continue
        at, happens = address_of(regs[row[field.ADDRESS], lane], extra, entry)
        if not happens:
            regs[d, lane] = 0
            if what == op.ATOMIC_COMPARE:
                regs[value, lane] = 0
            continue
        place = base + np.uint32(at + regs[offsets, lane])
        old = memory[place]
        if what == op.ATOMIC_COMPARE:
            same = old == regs[value, lane]
            if same:
                memory[place] = regs[new, lane]
            regs[value, lane] = np.uint32(same)
        else:
            memory[place] = combine(what, old, regs[value, lane])
        regs[d, lane] = old

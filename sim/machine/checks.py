"""Checks of one operation: operands that it is not meant for, and results that are no number any more.

Pure operations run on every lane; a check looks at the lanes that the source runs it on.
"""

from __future__ import annotations

import numpy as np

from . import layout as at
from . import opcodes as op
from .jit import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS

_EXPONENT, _LEAST, _MINUS_ONE = np.uint32(0x7F800000), np.uint32(0x80000000), np.uint32(0xFFFFFFFF)


@inlined
def finite(bits):
    return bits & _EXPONENT != _EXPONENT


@compiled
def wrong(kind, a, b, c, result, as_float):
    """Whether one lane's operands or result are wrong. `as_float`: operand A as a number."""
    if kind == at.BORN:
        return not finite(result) and finite(a) and finite(b) and finite(c)
    if kind == at.DIVIDES_U32:
        return b == 0
    if kind == at.DIVIDES_I32:
        return b == 0 or (a == _LEAST and b == _MINUS_ONE)
    if kind == at.SHIFTS:
        return b >= 32
    if kind == at.TO_I32:
        return not (-2147483904.0 < as_float < 2147483648.0)  # numbers of f32 that i32 lacks
    return not (-1.0 < as_float < 4294967296.0)


@inlined
def all_finite(bits, lanes):
    """Whether no result needs a look."""
    largest = np.uint32(0)
    for lane in range(lanes):
        largest = max(largest, np.uint32(bits[lane] & _EXPONENT))
    return largest != _EXPONENT


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, NUMBERS, opcodes=(op.CHECK,))
def check(regs, row, config, workgroup, together, found):
    """One check of kind E: operands A to C and result D, in the lanes of mask M."""
    size, kind = config[at.LANES], np.int64(row[5])
    lanes = together * size
    numbers = regs[row[2]].view(np.float32)
    for lane in range(lanes):
        if row[6] >= 0 and regs[row[6], lane] == 0:
            continue
        a, result = regs[row[2], lane], regs[row[1], lane]
        b = regs[row[3], lane] if row[3] >= 0 else np.uint32(0)
        c = regs[row[4], lane] if row[4] >= 0 else np.uint32(0)
        if wrong(kind, a, b, c, result, np.float64(numbers[lane])):
            if found[at.CHECK_TIMES] == 0:
                found[at.CHECK_LANE], found[at.CHECK_WORKGROUP] = lane % size, workgroup + lane // size
                found[at.CHECK_A], found[at.CHECK_B], found[at.CHECK_C] = a, b, c
                found[at.CHECK_RESULT] = result
            found[at.CHECK_TIMES] += 1

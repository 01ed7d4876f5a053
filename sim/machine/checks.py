"""Checks of one operation: operands that it is not meant for, and results that are no number any more.

Pure operations run on every lane; a check looks at the lanes that the source runs it on.

What is not finite stays so when something is added to it, or to its multiple. So a sum of products that is finite was
so all along, and lanes and steps are looked at only where it is not.
"""

from __future__ import annotations

import numpy as np

from . import layout as at
from . import opcodes as op
from .alu import float_
from .compile.scalar_functions import jitted
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE
from .lanes import address_of_first, pitch_of
from .opcodes import scalar_opcodes

_mul, _mad, _fma = (jitted(name) for name in ("mul_f32", "mad_f32", "fma_f32"))
_MAD, _FMA = (np.int32(scalar_opcodes()[name]) for name in op.TILED)
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


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, NUMBERS)
def check(regs, row, config, workgroup, workgroups_per_batch, found):
    """One check of kind E: operands A to C and result D, in the lanes of mask M."""
    size, kind = config[at.LANES], np.int64(row[5])
    lanes = workgroups_per_batch * size
    numbers = regs[row[2]].view(np.float32)
    for lane in range(lanes):
        if row[6] >= 0 and regs[row[6], lane] == 0:
            continue
        a, result = regs[row[2], lane], regs[row[1], lane]
        b = regs[row[3], lane] if row[3] >= 0 else np.uint32(0)
        c = regs[row[4], lane] if row[4] >= 0 else np.uint32(0)
        if wrong(kind, a, b, c, result, np.float64(numbers[lane])):
            note(found, lane % size, workgroup + lane // size, a, b, c, result)


@inlined
def note(found, lane, workgroup, a, b, c, result):
    """Count it, and keep the first."""
    if found[at.CHECK_TIMES] == 0:
        found[at.CHECK_LANE], found[at.CHECK_WORKGROUP] = lane, workgroup
        found[at.CHECK_A], found[at.CHECK_B], found[at.CHECK_C] = a, b, c
        found[at.CHECK_RESULT] = result
    found[at.CHECK_TIMES] += 1


# ---- sums of products --------------------------------------------------------------------------------


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG, TABLE)
def checked_sum(regs, row, config, workgroup, lanes, width, checks):
    """A sum, and before it, for it may replace an operand, a look at what it makes."""
    size, kind = config[at.LANES], row[5]
    a, b, c = regs[row[2]].view(np.float32), regs[row[3]].view(np.float32), regs[row[4]].view(np.float32)
    if not sums_are_finite(kind, a, b, c, lanes):
        for lane in range(lanes):
            if row[6] < 0 or regs[row[6], lane] != 0:
                look_at_sum(row, a[lane], b[lane], c[lane], checks, lane % size, workgroup + lane // size)
    code = _FMA if kind == op.FUSED else _MAD
    float_(address_of_first(regs), pitch_of(regs), code, row[1], row[2], row[3], row[4], row[5], width)


@inlined
def sums_are_finite(kind, a, b, c, lanes):
    """Whether the sum of each lane is."""
    finite = True
    if kind == op.FUSED:
        for lane in range(lanes):
            finite &= abs(_fma(a[lane], b[lane], c[lane])) < np.float32(np.inf)
    else:
        for lane in range(lanes):
            finite &= abs(_mad(a[lane], b[lane], c[lane])) < np.float32(np.inf)
    return finite


@compiled
def look_at_sum(row, a, b, c, checks, lane, workgroup):
    """Note what is born in one lane of a checked sum. Returns the sum."""
    kind, place = row[5], np.int64(row[7])
    total, product = _mad(a, b, c), _mul(a, b)
    if kind == op.FUSED:
        total = _fma(a, b, c)
        look_at(a, b, c, total, checks[place], lane, workgroup)
    else:
        look_at(a, b, np.float32(0), product, checks[place], lane, workgroup)
        one, other = (product, c) if kind == op.PRODUCT_FIRST else (c, product)
        look_at(one, other, np.float32(0), total, checks[place + 1], lane, workgroup)
    return total


@inlined
def _bits(number):
    return np.float32(number).view(np.uint32)


@inlined
def look_at(a, b, c, result, found, lane, workgroup):
    if not np.isfinite(result) and np.isfinite(a) and np.isfinite(b) and np.isfinite(c):
        note(found, lane, workgroup, _bits(a), _bits(b), _bits(c), _bits(result))

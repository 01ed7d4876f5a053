"""Checks of one operation: operands that it is not defined for, and results that are no longer finite.

Pure operations run on every lane; a check examines the lanes that are active in the source.

A sum stays infinite or NaN once it is. So if a sum of products is finite at the end, it was finite in every step, and
only other sums are examined lane by lane and step by step.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
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
_SUM = 1  # rows from the check of a rounded product to that of the sum
_EXPONENT, _LEAST, _MINUS_ONE = np.uint32(0x7F800000), np.uint32(0x80000000), np.uint32(0xFFFFFFFF)


@inlined
def finite(bits):
    return bits & _EXPONENT != _EXPONENT


@compiled
def wrong(kind, a, b, c, result, as_float):
    """Whether one lane's operands or result fail the check. `as_float` is operand A as a number."""
    if kind == at.NON_FINITE:
        return not finite(result) and finite(a) and finite(b) and finite(c)
    if kind == at.DIVIDES_U32:
        return b == 0
    if kind == at.DIVIDES_I32:
        return b == 0 or (a == _LEAST and b == _MINUS_ONE)
    if kind == at.SHIFTS:
        return b >= 32
    if kind == at.TO_I32:
        return not (-2147483904.0 < as_float < 2147483648.0)  # exclusive: the f32 on either side of the range of i32
    return not (-1.0 < as_float < 4294967296.0)


@inlined
def all_finite(bits, lanes):
    """Whether all lanes are finite."""
    largest = np.uint32(0)
    for lane in range(lanes):
        largest = max(largest, np.uint32(bits[lane] & _EXPONENT))
    return largest != _EXPONENT


@inlined
def some_become_non_finite(regs, row, lanes):
    """Whether the result is infinite or NaN in a lane where no operand is. Most often an operand is: a NaN spreads."""
    result, a = regs[row[field.DEST]], regs[row[field.A]]
    b = regs[row[field.B]] if row[field.B] >= 0 else a
    c = regs[row[field.C]] if row[field.C] >= 0 else a
    found = False
    for lane in range(lanes):  # without branches, so that LLVM vectorizes it
        found |= (not finite(result[lane])) & finite(a[lane]) & finite(b[lane]) & finite(c[lane])
    return found


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, NUMBERS)
def check(regs, row, config, workgroup, workgroups_per_batch, found):
    """Check the operands and the result of an operation, in the lanes of the mask."""
    size, kind = config[at.LANES], np.int64(row[field.CHECK_KIND])
    lanes = workgroups_per_batch * size
    if kind == at.NON_FINITE and not some_become_non_finite(regs, row, lanes):
        return
    numbers = regs[row[field.A]].view(np.float32)
    for lane in range(lanes):
        if row[field.MASK] >= 0 and regs[row[field.MASK], lane] == 0:
            continue
        a, result = regs[row[field.A], lane], regs[row[field.DEST], lane]
        b = regs[row[field.B], lane] if row[field.B] >= 0 else np.uint32(0)
        c = regs[row[field.C], lane] if row[field.C] >= 0 else np.uint32(0)
        if wrong(kind, a, b, c, result, np.float64(numbers[lane])):
            note(found, config[at.LANE_OFFSET] + lane % size, workgroup + lane // size, a, b, c, result)


@inlined
def note(found, lane, workgroup, a, b, c, result):
    """Count a failure, and keep the operands of the first in the first workgroup."""
    if found[at.CHECK_TIMES] == 0 or workgroup < found[at.CHECK_WORKGROUP]:
        found[at.CHECK_LANE], found[at.CHECK_WORKGROUP] = lane, workgroup
        found[at.CHECK_A], found[at.CHECK_B], found[at.CHECK_C] = a, b, c
        found[at.CHECK_RESULT] = result
    found[at.CHECK_TIMES] += 1


# ---- sums of products --------------------------------------------------------------------------------


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG, TABLE)
def checked_sum(regs, row, config, workgroup, lanes, width, checks):
    """Check a sum of a product, then compute it: DEST may be an operand."""
    size, kind = config[at.LANES], row[field.ROUNDING]
    a_row, b_row, c_row = row[field.A], row[field.B], row[field.C]
    a, b, c = regs[a_row].view(np.float32), regs[b_row].view(np.float32), regs[c_row].view(np.float32)
    if some_sums_become_non_finite(kind, a, b, c, lanes):
        for lane in range(lanes):
            if row[field.MASK] < 0 or regs[row[field.MASK], lane] != 0:
                here = config[at.LANE_OFFSET] + lane % size
                check_sum_lane(row, a[lane], b[lane], c[lane], checks, here, workgroup + lane // size)
    code = _FMA if kind == op.FUSED else _MAD
    start, pitch = address_of_first(regs), pitch_of(regs)
    float_(start, pitch, code, row[field.DEST], a_row, b_row, c_row, kind, width)


@inlined
def some_sums_become_non_finite(kind, a, b, c, lanes):
    """Whether a lane's sum, or its product if that is rounded, is infinite or NaN, and no operand of it is."""
    found = False
    if kind == op.FUSED:
        for lane in range(lanes):
            operands = is_finite(a[lane]) & is_finite(b[lane]) & is_finite(c[lane])
            found |= operands & (not is_finite(_fma(a[lane], b[lane], c[lane])))
    else:
        for lane in range(lanes):
            product, total = is_finite(_mul(a[lane], b[lane])), is_finite(_mad(a[lane], b[lane], c[lane]))
            found |= is_finite(a[lane]) & is_finite(b[lane]) & (not product)
            found |= product & is_finite(c[lane]) & (not total)
    return found


@inlined
def is_finite(number):
    return abs(number) < np.float32(np.inf)


@compiled
def check_sum_lane(row, a, b, c, checks, lane, workgroup):
    """Check one lane of a sum of a product, and the product if it is rounded. Returns the sum."""
    kind, place = row[field.ROUNDING], np.int64(row[field.FIRST_CHECK])
    total, product = _mad(a, b, c), _mul(a, b)
    if kind == op.FUSED:
        total = _fma(a, b, c)
        check_finite(a, b, c, total, checks[place], lane, workgroup)
    else:
        check_finite(a, b, np.float32(0), product, checks[place], lane, workgroup)
        one, other = (product, c) if kind == op.PRODUCT_FIRST else (c, product)
        check_finite(one, other, np.float32(0), total, checks[place + _SUM], lane, workgroup)
    return total


@inlined
def _bits(number):
    return np.float32(number).view(np.uint32)


@inlined
def check_finite(a, b, c, result, found, lane, workgroup):
    if not np.isfinite(result) and np.isfinite(a) and np.isfinite(b) and np.isfinite(c):
        note(found, lane, workgroup, _bits(a), _bits(b), _bits(c), _bits(result))

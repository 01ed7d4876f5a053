"""Subgroup operations: exchanges and reductions among the active lanes of each subgroup.

A subgroup is `config[SUBGROUP_SIZE]` consecutive lanes of one workgroup, fewer in the last one. Lane 0 of a workgroup
is lane 0 of its first subgroup. The lanes of the mask row are active. Reductions go in lane order and use the scalar
operations of the rest of the machine. Only shuffles read values of inactive lanes.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import opcodes as op
from .alu import float_, half, integer
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .lanes import address_of_first, copy, pitch_of
from .layout import LANES, SUBGROUP_SIZE
from .opcodes import first_opcode

_HALF, _INTEGER = first_opcode("half"), first_opcode("integer")
_NONE = np.int32(-1)


@inlined
def active(regs, mask, lane):
    """Whether a lane takes part."""
    return mask < 0 or regs[mask, lane] != 0


@compiled
def gather_lane(regs, into, value, mask, k, size, width, workgroups_per_batch):
    """Gather VALUE of lane k of each subgroup into row INTO, one lane per subgroup, if that lane is active."""
    for w in range(workgroups_per_batch):
        group = w * ((size + width - 1) // width)
        for lane in range(w * size + k, (w + 1) * size, width):
            if active(regs, mask, lane):
                regs[into, group] = regs[value, lane]
            group += 1


@compiled
def scatter_lane(regs, d, total, k, size, width, workgroups_per_batch):
    """Scatter row TOTAL, which has one lane per subgroup, to lane k of each subgroup in row D."""
    for w in range(workgroups_per_batch):
        group = w * ((size + width - 1) // width)
        for lane in range(w * size + k, (w + 1) * size, width):
            regs[d, lane] = regs[total, group]
            group += 1


@inlined
def fold(regs, how, d, code, mask, size, width, workgroups_per_batch):
    """Combine a row over the lanes of each subgroup: all of them, those up to this one, or those before it.

    All subgroups add their next lane in one step; the totals and the next operands have one lane per subgroup.
    """
    value, neutral = np.int32(d + field.ROW_VALUE), np.int32(d + field.ROW_SECOND)
    total, operand = np.int32(d + field.ROW_TOTAL), np.int32(d + field.ROW_NEXT)
    groups = workgroups_per_batch * ((size + width - 1) // width)
    steps = min(size, width)
    start, pitch = address_of_first(regs), pitch_of(regs)
    copy(regs, total, neutral, groups)
    for k in range(steps):
        copy(regs, operand, neutral, groups)
        gather_lane(regs, operand, value, mask, k, size, width, workgroups_per_batch)
        if how == op.SUBGROUP_EXCLUSIVE:
            scatter_lane(regs, d, total, k, size, width, workgroups_per_batch)
        if code < _HALF:
            float_(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        elif code < _INTEGER:
            half(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        else:
            integer(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        if how == op.SUBGROUP_INCLUSIVE:
            scatter_lane(regs, d, total, k, size, width, workgroups_per_batch)
    if how == op.SUBGROUP_REDUCE:
        for k in range(steps):
            scatter_lane(regs, d, total, k, size, width, workgroups_per_batch)


@inlined
def shuffle(regs, d, start, end, clamped):
    """Read the value of another lane, active or not. Past the last lane it is 0 or, if `clamped`, the last lane's."""
    for lane in range(start, end):
        source = start + np.int64(regs[d + field.ROW_SECOND, lane])
        if clamped:
            source = min(source, end - 1)
        regs[d, lane] = regs[d + field.ROW_VALUE, source] if source < end else np.uint32(0)


@inlined
def first(regs, d, mask, start, end):
    """Set D to the lowest active lane of the subgroup."""
    lowest = end
    for lane in range(start, end):
        if lowest == end and active(regs, mask, lane):
            lowest = lane
    for lane in range(start, end):
        regs[d, lane] = np.uint32(lowest - start)


@inlined
def ballot(regs, d, mask, start, end):
    """Set four rows to a bit for each active lane in which the operand is true, 32 to a word."""
    for word in range(4):
        bits = np.uint32(0)
        for lane in range(start + 32 * word, min(end, start + 32 * word + 32)):
            if active(regs, mask, lane):
                bits |= regs[d + field.ROW_BALLOT, lane] << np.uint32((lane - start) & 31)
        for lane in range(start, end):
            regs[d + word, lane] = bits


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG)
def collective(regs, row, config, workgroups_per_batch):
    """Run a subgroup operation."""
    what, d, mask, size, width = row[field.OP], row[field.DEST], row[field.MASK], config[LANES], config[SUBGROUP_SIZE]
    if what <= op.SUBGROUP_EXCLUSIVE:
        fold(regs, what, d, row[field.SCALAR], mask, size, width, workgroups_per_batch)
    else:
        exchange(regs, what, d, mask, size, width, workgroups_per_batch)


@compiled
def exchange(regs, what, d, mask, size, width, workgroups_per_batch):
    """Run an operation that combines no values."""
    for w in range(workgroups_per_batch):
        for start in range(w * size, (w + 1) * size, width):
            end = min(start + width, (w + 1) * size)
            if what <= op.SUBGROUP_SHUFFLE_LAST:
                shuffle(regs, d, start, end, what == op.SUBGROUP_SHUFFLE_LAST)
            elif what == op.SUBGROUP_FIRST:
                first(regs, d, mask, start, end)
            else:
                ballot(regs, d, mask, start, end)

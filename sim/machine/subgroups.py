"""Subgroup operations: what the active lanes of a subgroup make of each other's values.

A subgroup is a run of `config[SUBGROUP]` lanes of one workgroup, its last one perhaps shorter; lane 0 of a workgroup is
lane 0 of its first subgroup. Active are the lanes of the mask row. Sums and the like go in lane order, by the scalar
operations that the rest of the machine uses. What lanes that are not active are given, only a shuffle sees.
"""

from __future__ import annotations

import numpy as np

from .alu import float_, half, integer
from .compile.units import compiled, inlined, part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .lanes import address_of_first, copy, pitch_of
from .layout import LANES, SUBGROUP
from .opcodes import COLLECTIVES, FIRST_COLLECTIVE, families, scalar_opcodes

_HALF, _INTEGER = (scalar_opcodes()[families()[f][0]] for f in ("half", "integer"))
_REDUCE, _INCLUSIVE, _EXCLUSIVE, _SHUFFLE, _SHUFFLE_LAST, _FIRST, _BALLOT = range(len(COLLECTIVES))
_NONE = np.int32(-1)


@inlined
def active(regs, mask, lane):
    """Whether a lane takes part."""
    return mask < 0 or regs[mask, lane] != 0


@compiled
def take(regs, into, value, mask, k, size, width, workgroups_per_batch):
    """Row INTO = VALUE of lane k of each subgroup, one subgroup beside the other, where that lane is active."""
    for w in range(workgroups_per_batch):
        group = w * ((size + width - 1) // width)
        for lane in range(w * size + k, (w + 1) * size, width):
            if active(regs, mask, lane):
                regs[into, group] = regs[value, lane]
            group += 1


@compiled
def deal(regs, d, total, k, size, width, workgroups_per_batch):
    """D of lane k of each subgroup = that subgroup's place in row TOTAL."""
    for w in range(workgroups_per_batch):
        group = w * ((size + width - 1) // width)
        for lane in range(w * size + k, (w + 1) * size, width):
            regs[d, lane] = regs[total, group]
            group += 1


@inlined
def fold(regs, how, d, code, mask, size, width, workgroups_per_batch):
    """D = D+1 combined over the lanes of each subgroup: all of them, those up to this one, or those before it.

    D+2 holds what to start from. All subgroups take their next lane together: D+3 and D+4 have a place for each.
    """
    value, neutral, total, operand = np.int32(d + 1), np.int32(d + 2), np.int32(d + 3), np.int32(d + 4)
    groups = workgroups_per_batch * ((size + width - 1) // width)
    steps = min(size, width)
    start, pitch = address_of_first(regs), pitch_of(regs)
    copy(regs, total, neutral, groups)
    for k in range(steps):
        copy(regs, operand, neutral, groups)
        take(regs, operand, value, mask, k, size, width, workgroups_per_batch)
        if how == _EXCLUSIVE:
            deal(regs, d, total, k, size, width, workgroups_per_batch)
        if code < _HALF:
            float_(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        elif code < _INTEGER:
            half(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        else:
            integer(start, pitch, code, total, total, operand, _NONE, _NONE, groups)
        if how == _INCLUSIVE:
            deal(regs, d, total, k, size, width, workgroups_per_batch)
    if how == _REDUCE:
        for k in range(steps):
            deal(regs, d, total, k, size, width, workgroups_per_batch)


@inlined
def shuffle(regs, d, start, end, clamped):
    """D = D+1 of the lane that D+2 names, active or not; past the last lane it is 0, or clamped the last lane's."""
    for lane in range(start, end):
        source = start + np.int64(regs[d + 2, lane])
        if clamped:
            source = min(source, end - 1)
        regs[d, lane] = regs[d + 1, source] if source < end else np.uint32(0)


@inlined
def first(regs, d, mask, start, end):
    """D = the lowest active lane of the subgroup."""
    lowest = end
    for lane in range(start, end):
        if lowest == end and active(regs, mask, lane):
            lowest = lane
    for lane in range(start, end):
        regs[d, lane] = np.uint32(lowest - start)


@inlined
def ballot(regs, d, mask, start, end):
    """D to D+3 = a bit for each active lane in which D+4 holds, 32 to a word."""
    for word in range(4):
        bits = np.uint32(0)
        for lane in range(start + 32 * word, min(end, start + 32 * word + 32)):
            if active(regs, mask, lane):
                bits |= regs[d + 4, lane] << np.uint32((lane - start) & 31)
        for lane in range(start, end):
            regs[d + word, lane] = bits


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG)
def collective(regs, row, config, workgroups_per_batch):
    """One subgroup operation."""
    what = row[0] - FIRST_COLLECTIVE
    if what <= _EXCLUSIVE:
        fold(regs, what, row[1], row[2], row[6], config[LANES], config[SUBGROUP], workgroups_per_batch)
    else:
        exchange(regs, what, row[1], row[6], config[LANES], config[SUBGROUP], workgroups_per_batch)


@compiled
def exchange(regs, what, d, mask, size, width, workgroups_per_batch):
    """An operation in which nothing is combined."""
    for w in range(workgroups_per_batch):
        for start in range(w * size, (w + 1) * size, width):
            end = min(start + width, (w + 1) * size)
            if what <= _SHUFFLE_LAST:
                shuffle(regs, d, start, end, what == _SHUFFLE_LAST)
            elif what == _FIRST:
                first(regs, d, mask, start, end)
            else:
                ballot(regs, d, mask, start, end)

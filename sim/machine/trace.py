"""The trace: values that the traced lanes of one workgroup write to the traced variable."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.units import part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE
from .memory import address_of, shared_part


@part(REGISTERS, INSTRUCTION, NUMBERS, TABLE, LONG, LONG, NUMBERS, TABLE)
def trace(regs, row, config, access, workgroup, workgroups_per_batch, traced, notes):
    """Note the written values, in lane order. The header counts notes that do not fit, too."""
    size, first, w = config[at.LANES], config[at.LANE_OFFSET], traced[at.TRACED_WORKGROUP] - workgroup
    if w < 0 or w >= workgroups_per_batch:
        return
    extra, place, happens = shared_part(regs, row), np.uint32(0), True
    for lane in range(size):
        here = w * size + lane
        if traced[at.TRACED_LANES + first + lane] == 0 or (row[field.MASK] >= 0 and regs[row[field.MASK], here] == 0):
            continue
        if row[field.ACCESS] < 0:
            place = np.uint32(regs[row[field.ADDRESS], here] + extra)
        else:
            place, happens = address_of(regs[row[field.ADDRESS], here], extra, access[row[field.ACCESS]])
        if happens:
            notes[at.HEADER, at.RECORDED] += 1
            if notes[at.HEADER, at.RECORDED] < len(notes):
                note = notes[notes[at.HEADER, at.RECORDED]]
                note[at.NOTE_POINT], note[at.NOTE_LANE], note[at.NOTE_PLACE] = row[field.SLOT], first + lane, place
                note[at.NOTE_VALUE] = regs[row[field.DEST], here]

"""The trace: what the watched lanes of one workgroup write to the variable that is traced."""

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS, TABLE
from .memory import address_of, shared_part


@part(REGISTERS, INSTRUCTION, NUMBERS, TABLE, LONG, LONG, NUMBERS, TABLE)
def trace(regs, row, config, access, workgroup, workgroups_per_batch, watched, notes):
    """Note what has been written, in lane order. Row 0 of `notes` counts on where there is no more room."""
    size, first, w = config[at.LANES], config[at.FIRST_LANE], watched[0] - workgroup
    if w < 0 or w >= workgroups_per_batch:
        return
    extra, place, happens = shared_part(regs, row[3], row[4]), np.uint32(0), True
    for lane in range(size):
        here = w * size + lane
        if watched[1 + first + lane] == 0 or (row[6] >= 0 and regs[row[6], here] == 0):
            continue
        if row[5] < 0:
            place = np.uint32(regs[row[2], here] + extra)
        else:
            place, happens = address_of(regs[row[2], here], extra, access[row[5]])
        if happens:
            notes[0, 0] += 1
            if notes[0, 0] < len(notes):
                note = notes[notes[0, 0]]
                note[at.POINT], note[at.TRACED_LANE], note[at.NOTED_AT] = row[7], first + lane, place
                note[at.NOTED] = regs[row[1], here]

"""How far the addresses of an access go, and how close a comparison is: what tells whether a workgroup whose numbers
are moved stays in bounds, and branches alike."""

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .memory import shared_part


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, NUMBERS)
def reach(regs, row, config, workgroups_per_batch, reached):
    """Widen the interval of addresses by those of the active lanes."""
    extra, addresses = shared_part(regs, row[3], row[4]), regs[row[2]]
    low, high = reached[at.LOW], reached[at.HIGH]
    for lane in range(workgroups_per_batch * config[at.LANES]):
        if row[6] < 0 or regs[row[6], lane] != 0:
            address = np.int64(np.uint32(addresses[lane] + extra))
            low, high = min(low, address), max(high, address)
    reached[at.LOW], reached[at.HIGH] = low, high


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, NUMBERS)
def margin(regs, row, config, workgroups_per_batch, known):
    """Widen the intervals of both sides, and narrow the margins, by the active lanes."""
    ones, others, least = regs[row[2]], regs[row[3]], np.int64(row[5])
    for lane in range(workgroups_per_batch * config[at.LANES]):
        if row[6] < 0 or regs[row[6], lane] != 0:
            one, other = np.int64(ones[lane]), np.int64(others[lane])
            if row[4] == 1:
                one, other = np.int64(np.int32(ones[lane])), np.int64(np.int32(others[lane]))
            known[at.A_LOW], known[at.A_HIGH] = min(known[at.A_LOW], one), max(known[at.A_HIGH], one)
            known[at.B_LOW], known[at.B_HIGH] = min(known[at.B_LOW], other), max(known[at.B_HIGH], other)
            if other - one >= least:
                known[at.HELD_BY] = min(known[at.HELD_BY], other - one)
            else:
                known[at.FAILED_BY] = max(known[at.FAILED_BY], other - one)

"""Ranges of addresses, and margins of comparisons.

They decide whether another workgroup, with its values shifted, stays in bounds and takes the same branches.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.units import part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .memory import shared_part


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, NUMBERS)
def reach(regs, row, config, workgroups_per_batch, reached):
    """Extend the range of addresses by those of the active lanes."""
    extra, addresses = shared_part(regs, row), regs[row[field.ADDRESS]]
    low, high = reached[at.LOW], reached[at.HIGH]
    for lane in range(workgroups_per_batch * config[at.LANES]):
        if row[field.MASK] < 0 or regs[row[field.MASK], lane] != 0:
            address = np.int64(np.uint32(addresses[lane] + extra))
            low, high = min(low, address), max(high, address)
    reached[at.LOW], reached[at.HIGH] = low, high


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, NUMBERS)
def margin(regs, row, config, workgroups_per_batch, known):
    """Extend the ranges of both operands, and narrow the margins, by the active lanes."""
    ones, others, least = regs[row[field.A]], regs[row[field.B]], np.int64(row[field.LEAST])
    for lane in range(workgroups_per_batch * config[at.LANES]):
        if row[field.MASK] < 0 or regs[row[field.MASK], lane] != 0:
            one, other = np.int64(ones[lane]), np.int64(others[lane])
            if row[field.SIGNED] == 1:
                one, other = np.int64(np.int32(ones[lane])), np.int64(np.int32(others[lane]))
            known[at.A_LOW], known[at.A_HIGH] = min(known[at.A_LOW], one), max(known[at.A_HIGH], one)
            known[at.B_LOW], known[at.B_HIGH] = min(known[at.B_LOW], other), max(known[at.B_HIGH], other)
            if other - one >= least:
                known[at.HELD_BY] = min(known[at.HELD_BY], other - one)
            else:
                known[at.FAILED_BY] = max(known[at.FAILED_BY], other - one)

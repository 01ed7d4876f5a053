"""How far the addresses of an access go: what tells whether a workgroup that is moved stays in bounds."""

from __future__ import annotations

import numpy as np

from . import layout as at
from .jit import part
from .kinds import INSTRUCTION, LONG, NUMBERS, REGISTERS
from .memory import shared_part


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, NUMBERS, rare=True)
def reach(regs, row, config, together, reached):
    """Widen the interval of addresses by those of the active lanes."""
    extra, addresses = shared_part(regs, row[3], row[4]), regs[row[2]]
    low, high = reached[at.LOW], reached[at.HIGH]
    for lane in range(together * config[at.LANES]):
        if row[6] < 0 or regs[row[6], lane] != 0:
            address = np.int64(np.uint32(addresses[lane] + extra))
            low, high = min(low, address), max(high, address)
    reached[at.LOW], reached[at.HIGH] = low, high

"""Loops that never end because their state repeats: the comparison of a paused batch's state with a later one.

The state is all that decides what a batch does next: where it is in the program, how many lanes it computes, its
registers, and the memory it can see. Python takes the snapshot and decides what it holds (see `launch.long_loops`).
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import compiled, part
from .kinds import LONG, NUMBERS, REGISTERS, WORDS

_BLOCK = 1 << 12  # words that are compared at a time


@compiled
def row_differs(regs, snapshot, row, width):
    """Whether a register row differs from its copy."""
    changed, first = np.uint32(0), row * width
    for lane in range(width):
        changed = np.uint32(changed | (regs[row, lane] ^ snapshot[first + lane]))
    return changed != 0


@compiled
def memory_differs(memory, snapshot, first):
    """Whether memory differs from its copy, which begins at word `first` of the snapshot."""
    changed = np.uint32(0)
    for start in range(0, memory.size, _BLOCK):
        for word in range(start, min(start + _BLOCK, memory.size)):
            changed = np.uint32(changed | (memory[word] ^ snapshot[first + word]))
        if changed != 0:
            return True
    return False


@part(REGISTERS, WORDS, WORDS, WORDS, LONG, NUMBERS, returns=LONG)
def still_differs(regs, shared, storage, snapshot, loop, progress):
    """Compare the state with the snapshot, if there is one to compare with, after a backward jump of `loop`.

    The snapshot holds the registers, then workgroup memory, then storage if it matters. Returns 0 if the batch has to
    pause: the state is the same, or this was the last comparison. The row that differed last is compared first.
    """
    if progress[at.TO_COMPARE] <= 0:
        return 0
    progress[at.TO_COMPARE] -= 1
    left, width = progress[at.TO_COMPARE], len(regs[progress[at.DIFFERED]])
    if progress[at.AT_LOOP] != loop or row_differs(regs, snapshot, progress[at.DIFFERED], width):
        return left
    for level in range(at.LEVELS):
        if progress[at.WIDTHS + level] != progress[at.AT_WIDTHS + level]:
            return left
    for row in range(len(regs)):
        if row_differs(regs, snapshot, row, width):
            progress[at.DIFFERED] = row
            return left
    after = len(regs) * width
    if memory_differs(shared, snapshot, after):
        return left
    if snapshot.size > after + shared.size and memory_differs(storage, snapshot, after + shared.size):
        return left
    progress[at.REPEATED] = 1
    return 0

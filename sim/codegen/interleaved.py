"""Whether workgroups gain by going abreast: the same lane of each next to the other, instead of one after the other.

Where few lanes of a workgroup have something to do, vectors are mostly empty, and a row of the program takes longer to
read than to carry out. Abreast, sixteen workgroups share both. But loads gather from sixteen places then, and each
store has to look whether another workgroup has stored there.
"""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from ..ir.access import UNITS_PER_ACCESS
from ..machine import opcodes as op
from ..machine.layout import VECTOR_LANES
from .program import Program

# What takes how long, in turns of a vector at an operation: measured on kernels that only load, compute or store, with
# 1 to 256 lanes at work. To read a row; to load or store a vector, of neighbours and abreast.
_ROW = 8
_LOADS = 3, 8
_STORES = 3, 64
_MOST_NEEDED = 1 / 2
MIN_SPEEDUP = 1.5  # times as fast; what is estimated may be as much off


def narrows_in_loops(program: Program) -> bool:
    """Whether lanes may be left out, and something is done again and again. Tiles want neighbours to be alike."""
    opcodes = program.code[:, op.OP]
    return bool(program.loops) and op.NARROW in opcodes and op.TILE not in opcodes


def interleaving_speedup(program: Program, interleaved: int, needed: float) -> float:
    """How many times as fast so many workgroups are abreast, by what is in loops. `needed`: the part of a workgroup's
    lanes that come up to the last one active there."""
    if needed > _MOST_NEEDED:
        return 1.0
    lanes, rows = prod(program.workgroup_size), _in_loops(program)
    # Of workgroups side by side none but the last can leave lanes out.
    vectors = ceil(needed * lanes / VECTOR_LANES) if program.workgroups_per_batch == 1 else lanes / VECTOR_LANES
    now = _ROW * len(rows) / program.workgroups_per_batch + vectors * _turns(program, rows, 0)
    return now / (_ROW * len(rows) / interleaved + needed * lanes / VECTOR_LANES * _turns(program, rows, 1))


def _turns(program: Program, rows: list[list[int]], order: int) -> int:
    """What rows take with one vector, of neighbours (0) or abreast (1)."""
    turns = 0
    for row in rows:
        stores = row[op.OP] in (op.STORE, op.STORE_KNOWN, op.STORE_FOUR)
        if stores and program.accesses[row[op.E] // UNITS_PER_ACCESS].space == "storage":
            turns += _STORES[order]
        else:
            turns += _LOADS[order] if row[op.OP] in (op.LOAD, op.LOAD_KNOWN) and row[op.M] != 1 else 1
    return turns


def _in_loops(program: Program) -> list[list[int]]:
    """The rows that lie in some loop."""
    inside = np.zeros(len(program.code), bool)
    for place, row in enumerate(program.code):
        if row[op.OP] == op.JUMP:
            inside[row[op.A] : place + 1] = True  # nothing, where it leads on
    return program.code[inside].tolist()

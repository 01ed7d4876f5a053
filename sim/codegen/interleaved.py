"""Whether to interleave workgroups: the same lane of each side by side, instead of one workgroup after the other.

Where few lanes of a workgroup have work, vectors are mostly empty, and the machine takes longer to dispatch an
instruction than to execute it. Sixteen interleaved workgroups share a vector and a dispatch. In exchange, loads gather
from sixteen addresses, and each store has to check whether another workgroup has stored to its address.
"""

from __future__ import annotations

from math import ceil, prod

import numpy as np

from ..ir.access import UNITS_PER_ACCESS
from ..machine import instruction as field
from ..machine import opcodes as op
from ..machine.layout import VECTOR_LANES
from .program import Program

# Costs in units of one operation on one vector, measured on kernels that only load, compute or store, with 1 to 256
# active lanes: to dispatch an instruction, and to load or store a vector, (one after the other, interleaved). Sixteen
# workgroups load from sixteen lines of storage, often at one distance, so that caches keep few of them.
_DISPATCH = 8
_LOADS = 3, 8
_STORAGE_LOADS = 3, 64
_STORES = 3, 64
_MAX_NEEDED = 1 / 2  # of the lanes; with more of them busy, interleaving never pays
MIN_SPEEDUP = 1.5  # the estimate may be off by as much


def narrows_in_loops(program: Program) -> bool:
    """Whether a program narrows to its active lanes, and loops. Programs with tiles do not count: a tile needs
    neighbouring lanes of one workgroup."""
    opcodes = program.code[:, field.OP]
    return bool(program.loops) and op.NARROW in opcodes and op.TILE not in opcodes


def interleaving_speedup(program: Program, interleaved: int, needed: float) -> float:
    """Estimate the speedup of a program if so many workgroups are interleaved, from the instructions in loops.

    `needed`: the share of a workgroup's lanes up to the last one that is active in loops, 0 to 1."""
    if needed > _MAX_NEEDED:
        return 1.0
    lanes, rows = prod(program.workgroup_size), _in_loops(program)
    # Of several workgroups in one row, only the last can narrow.
    vectors = ceil(needed * lanes / VECTOR_LANES) if program.workgroups_per_batch == 1 else lanes / VECTOR_LANES
    now = _DISPATCH * len(rows) / program.workgroups_per_batch + vectors * _cost(program, rows, 0)
    return now / (_DISPATCH * len(rows) / interleaved + needed * lanes / VECTOR_LANES * _cost(program, rows, 1))


def _cost(program: Program, rows: list[list[int]], order: int) -> int:
    """Return the cost of instructions on one vector, one after the other (`order` 0) or interleaved (1)."""
    cost = 0
    for row in rows:
        stores = row[field.OP] in (op.STORE, op.STORE_KNOWN, op.STORE_FOUR)
        loads = row[field.OP] in (op.LOAD, op.LOAD_KNOWN) and row[field.MASK] != field.ONE_LANE
        storage = (stores or loads) and program.accesses[row[field.ACCESS] // UNITS_PER_ACCESS].space == "storage"
        if stores and storage:
            cost += _STORES[order]
        elif loads:
            cost += (_STORAGE_LOADS if storage else _LOADS)[order]
        else:
            cost += 1
    return cost


def _in_loops(program: Program) -> list[list[int]]:
    """Return the instructions that lie in some loop."""
    inside = np.zeros(len(program.code), bool)
    for position, row in enumerate(program.code):
        if row[field.OP] == op.JUMP:
            inside[row[field.TARGET] : position + 1] = True  # an empty slice for a forward jump
    return program.code[inside].tolist()

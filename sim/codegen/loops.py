"""The loops of a finished program: where they are, what an iteration costs, and who may change the memory they read."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from ..ir.access import UNITS_PER_ACCESS
from ..machine import instruction as field
from ..machine import opcodes as op
from ..wgsl.typed import Variable
from .program import Program, jumps_backward

# Costs, in the time that a scalar operation takes for a lane
_MEMORY = 16  # a load or a store, whose addresses may be scattered over more memory than caches hold
_REGISTERS = 4  # a choice of registers by index
_LANE_BY_LANE = 8  # atomic and subgroup operations, and probes
_TRANSCENDENTAL = 24  # sin, exp and the like
_MEMORY_ONCE = 64  # a load for one lane: nothing hides how long memory takes

_ONE_LANE = (op.LOAD, op.LOAD_KNOWN, op.COPY)  # with scalar operations, those that may compute one lane
_NO_LANES = (op.JUMP, op.JUMP_ZERO)

_READS = frozenset((op.LOAD, op.LOAD_KNOWN, *range(op.FIRST_ATOMIC, op.FIRST_COLLECTIVE)))
_WRITES = frozenset((op.STORE, op.STORE_KNOWN, op.STORE_FOUR, *range(op.FIRST_ATOMIC, op.FIRST_COLLECTIVE))) - {
    op.ATOMIC_LOAD
}


def loop_ranges(code: NDArray[np.int32]) -> dict[int, range]:
    """Return the instructions of each loop, by its number. The last one jumps backward."""
    ends = np.flatnonzero(jumps_backward(code))
    return {int(code[end, field.LOOP]): range(int(code[end, field.TARGET]), int(end) + 1) for end in ends}


def note_costs(code: NDArray[np.int32]) -> None:
    """Set the costs of an iteration of each loop: of its instructions, each once."""
    loops = loop_ranges(code)
    if not loops:
        return
    opcodes = code[:, field.OP]
    costs = np.where(opcodes == op.PUT_ALL, code[:, field.COUNT], _costs()[opcodes])
    for_one = (opcodes >= op.SCALAR) | np.isin(opcodes, _ONE_LANE)
    once = (for_one & (code[:, field.MASK] == field.ONE_LANE)) | np.isin(opcodes, _NO_LANES)
    alone = np.where(costs == _MEMORY, _MEMORY_ONCE, costs)
    for column, each in ((field.COST, np.where(once, 0, costs)), (field.COST_ONCE, np.where(once, alone, 0))):
        up_to = np.concatenate([[0], np.cumsum(each)])
        for loop in loops.values():
            code[loop[-1], column] = up_to[loop.stop] - up_to[loop.start]


@cache
def _costs() -> NDArray[np.int64]:
    """The cost of each opcode."""
    return np.array([_cost(opcode) for opcode in range(max(op.opcode_names()) + 1)])


def _cost(opcode: int) -> int:
    if opcode >= op.first_opcode("curve"):
        return _TRANSCENDENTAL
    if op.FIRST_ATOMIC <= opcode < op.SCALAR:
        return _LANE_BY_LANE
    if opcode in (op.PICK, op.PUT):
        return _REGISTERS
    return _MEMORY if op.LOAD <= opcode <= op.STORE_FOUR else 1


def memory_of_state(program: Program, loop: int) -> frozenset[str]:
    """Return the spaces of memory that are part of a loop's state: what it and the loops around it read and write."""
    whole = _outermost(program, loop)
    both = _accessed(program, whole, _READS) & _accessed(program, whole, _WRITES)
    return frozenset(variable.space or "" for variable in both)


def may_wait(program: Program, loop: int, *, alone: bool) -> bool:
    """Whether others may change what a loop reads, which runs in lockstep.

    The loop and all loops around it count as one. Invocations that are past them may only run the code after them.
    Other batches, if the batch is not `alone`, may run all code.
    """
    ranges, whole = loop_ranges(program.code), _outermost(program, loop)
    if any(program.loops[n][1] for n, each in ranges.items() if each.start in whole):
        return True
    reads = _accessed(program, whole, _READS)
    shared = {variable for variable in reads if variable.space != "workgroup"}
    others = _accessed(program, range(whole.stop, len(program.code)), _WRITES)
    return bool(reads & others) or (not alone and bool(shared & _accessed(program, range(len(program.code)), _WRITES)))


def written_from(program: Program, place: int) -> set[Variable]:
    """Return the variables that an invocation may still store to which is at this instruction."""
    around = [each for each in loop_ranges(program.code).values() if place in each]
    first = min((each.start for each in around), default=place)
    return _accessed(program, range(first, len(program.code)), _WRITES)


def awaited_variables(program: Program, loop: int) -> set[Variable]:
    """Return the variables that a loop reads and that the program stores to."""
    everywhere = _accessed(program, range(len(program.code)), _WRITES)
    return _accessed(program, loop_ranges(program.code)[loop], _READS) & everywhere


def _outermost(program: Program, loop: int) -> range:
    """Return the instructions of the outermost loop around a loop, which may be the loop itself."""
    ranges = loop_ranges(program.code)
    around = [each for each in ranges.values() if each.start <= ranges[loop].start and ranges[loop].stop <= each.stop]
    return max(around, key=len)


def _accessed(program: Program, place: range, operations: frozenset[int]) -> set[Variable]:
    """Return the variables that these instructions access by any of the operations."""
    rows = program.code[place.start : place.stop]
    rows = rows[np.isin(rows[:, field.OP], list(operations))]
    numbers: list[int] = np.unique(rows[:, field.ACCESS]).tolist()
    return {program.accesses[number // UNITS_PER_ACCESS].variable for number in numbers}

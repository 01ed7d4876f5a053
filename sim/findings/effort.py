"""How long reruns may take: estimates of their work, from a run that has finished, and which of them fit a limit.

Estimates depend on the program and its loop iterations, never on measured time, so that the same reruns are made on
every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ..codegen.loops import loop_ranges
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import LOCKSTEP, Schedule
from ..machine import instruction as field
from ..machine import layout as at

_TIMES = 8  # as much work as the run itself
_LEAST = 1 << 26  # work that every dispatch may have done: about 10 ms
_OF_CHANGES = 1 << 30  # work of the runs of changed texts that search for cures
_PROBED = 4  # times the work of a run without probes
_FEWEST = 6  # runs of changed texts
_BEGINNING = 16  # lanes that take as long to compute as an instruction takes to begin
_SWITCHING = 4  # times the work where units take turns at each operation that others may see


def work(launch: Launch, outcome: Outcome, order: Schedule = LOCKSTEP, workgroups: int | None = None) -> int:
    """Estimate the work of a rerun: instructions by lanes, of all workgroups or of so many."""
    program, count = launch.program, launch.count if workgroups is None else workgroups
    lanes = launch.invocations // launch.count
    order = order.sized(lanes, count, launch.device.subgroup_size)
    fine = "subgroup" if program.exchanges_values else order.granularity
    sizes = {"invocation": fine == "invocation" or launch.device.subgroup_size, "subgroup": launch.device.subgroup_size}
    size = min(lanes, int(sizes.get(order.granularity, lanes)))
    width = -(-size // at.VECTOR_LANES) * at.VECTOR_LANES + _BEGINNING
    units = -(-lanes // size) * count
    return units * width * _instructions(launch, outcome) * (_SWITCHING if order.switches else 1)


def _instructions(launch: Launch, outcome: Outcome) -> int:
    """Estimate the cost of the instructions that a unit executes."""
    code = launch.program.code
    ends = [loop[-1] for loop in loop_ranges(code).values()]
    costs = [int(code[end, field.COST] + code[end, field.COST_ONCE]) for end in ends]
    return len(code) + outcome.jumps * int(np.mean(costs or [0]))


def limit(launch: Launch, outcome: Outcome) -> float:
    """Return how much work the reruns that answer one question may do."""
    return float("inf") if launch.options.thorough else max(_LEAST, _TIMES * work(launch, outcome))


def runs_of_changes(launch: Launch, outcome: Outcome, workgroups: int | None, most: int) -> int:
    """Return how many changed texts may run, of this many workgroups."""
    each = _PROBED * work(launch, outcome, workgroups=workgroups)
    return most if launch.options.thorough else min(most, max(_FEWEST, _OF_CHANGES // each))


def affordable(
    launch: Launch, outcome: Outcome, orders: Iterable[Schedule], workgroups: int | None = None
) -> Iterator[Schedule]:
    """Yield the orders, from the first on, whose work fits the limit in all."""
    left = limit(launch, outcome)
    for order in orders:
        left -= work(launch, outcome, order, workgroups)
        if left < 0:
            return
        yield order

"""How long reruns may take: estimates of their work, from a run that has finished, and which of them fit a limit.

Estimates depend on the program and its loop iterations, never on measured time, so that the same reruns are made on
every machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..fast_dataclass import entity
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import LOCKSTEP, Schedule
from ..machine import layout as at

_TIMES = 8  # as much work as the run itself
_LEAST = 1 << 26  # work that every dispatch may have done: about 10 ms
_FIXED = 1 << 20  # work that takes as long as to begin a run
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
    return len(launch.program.code) + outcome.jumps * launch.program.iteration_cost


def limit(launch: Launch, outcome: Outcome) -> float:
    """Return how much work the reruns that answer one question may do."""
    return float("inf") if launch.options.thorough else max(_LEAST, _TIMES * work(launch, outcome))


def runs_of_changes(launch: Launch, outcome: Outcome, workgroups: int | None, most: int) -> int:
    """Return how many changed texts may run, of this many workgroups."""
    each = _PROBED * work(launch, outcome, workgroups=workgroups)
    return most if launch.options.thorough else min(most, max(_FEWEST, _OF_CHANGES // each))


@entity
class Effort:
    """The work that reruns may still do. Those of all findings of a run share it."""

    left: float

    @staticmethod
    def of(launch: Launch, outcome: Outcome) -> Effort:
        """Return what the reruns of a finished run may do."""
        return Effort(limit(launch, outcome))

    def take(self, work: int) -> bool:
        """Whether reruns may do this much more work; if so, it is taken."""
        work = max(work, _FIXED)
        if work > self.left:
            return False
        self.left -= work
        return True


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

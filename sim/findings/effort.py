"""How long reruns may take: estimates of their work, from a run that has finished, and which of them fit a limit.

Estimates depend on the program and its loop iterations, never on measured time, so that the same reruns are made on
every machine.
"""

from __future__ import annotations

from ..fast_dataclass import entity
from ..launch.launch import Launch
from ..launch.partition import Outcome
from ..launch.schedules import LOCKSTEP, Schedule
from ..machine import layout as at

_TIMES = 8  # as much work as the run itself
_LEAST = 1 << 26  # work that every dispatch may have done: about 10 ms
_FIXED = 1 << 20  # work that takes as long as to begin a run
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


def probed_work(launch: Launch, outcome: Outcome, workgroups: int | None = None) -> int:
    """Estimate the work of a rerun that looks for findings."""
    return max(_FIXED, _PROBED * work(launch, outcome, workgroups=workgroups))


@entity
class Effort:
    """The work that reruns may still do. Those that answer one kind of question share it: the verdicts of all findings,
    the order of atomic operations, and changes of the text.
    """

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

    def spend(self, work: int) -> None:
        """Take this much work for reruns that are made in any case."""
        self.left = max(0, self.left - work)

    def changed_texts(self, each: int, most: int) -> int:
        """Return how many changed texts may run that each do this much work: some in any case."""
        return most if self.left == float("inf") else int(min(most, max(_FEWEST, self.left // each)))

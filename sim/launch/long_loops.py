"""What to do about loops that run long: prove that they never end, or give up on them.

A batch pauses when its loops have done some work, and again whenever that work has doubled. Then a snapshot of its
state is taken, and the machine compares the state with it at the next backward jumps, one for each 128 that there were
so far. So any period is found in time, and a kernel that ends loses little. If the state is the same again, the loop
never ends by itself. It may wait for others: then they have to take turns (see `Dispatch.run`).

In a batch of several lockstep groups the machine itself compares states (see `machine.turns`).

Otherwise the batch may go on up to a limit of work. Probes make work slower, by a factor that is unknown beforehand: a
batch with probes that has taken half a second is run without them, from its start. If it ends within the limit, it goes
on with probes, without a limit. So only the outputs and counters of a run that does not end depend on time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from time import thread_time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.loops import memory_of_state
from ..codegen.program import Program
from ..fast_dataclass import entity, frozen
from ..machine import layout as at

UNLIMITED = 1 << 62
WORK = 3 << 31  # of a batch, in loops: costs by lanes; takes 0.3 to 1.5 seconds
_WATCHED_SECONDS = 0.5  # of a batch with probes, before it is run without them
_EARLIER = 4  # bits: work after which loops that wait are stopped, as a part of the limit
_FIRST_PAUSE = 1 << 26  # work before a batch first pauses: some hundredths of a second
_PER_WORD = 64  # work for each word of a snapshot before it is taken
_MOST_STORAGE = 1 << 22  # words of storage that a snapshot may hold
_LEAST_COMPARED = 8  # backward jumps at which the state is compared with a snapshot
_TURNS_PER_COMPARISON = 128
_TURNS = slice(at.TURNS, at.TURNS + at.MOST_LOOPS)
_WIDTHS, _AT_WIDTHS = (slice(first, first + at.LEVELS) for first in (at.WIDTHS, at.AT_WIDTHS))


@frozen
class Unit:
    """A lockstep group that had not ended. `place`: position of its workgroup; `lanes`: its invocations; `pc`: its
    next instruction; `loop`: the one in which it spins, or None; `awaited`: its last atomic operation, by instruction,
    or None; `address`: what that accessed."""

    place: int
    lanes: range
    pc: int
    loop: int | None
    awaited: int | None
    address: int


@frozen
class Stopped:
    """Where a run was stopped in a loop. `progress`: of its lockstep group; `workgroup`: position of the first of its
    batch; `turned`: if its state repeats, the backward jumps of each loop until it does; `units`: if units took turns
    and the state of all repeats, those that had not ended."""

    progress: NDArray[np.int64]
    workgroup: int
    turned: NDArray[np.int64] | None
    units: tuple[Unit, ...] = ()

    @property
    def loop(self) -> int:
        """The loop that jumped backward last."""
        return int(self.progress[at.PAUSED]) - 1

    @property
    def iterations(self) -> int:
        """The iterations that its batch has made, of all loops."""
        return int(self.progress[_TURNS].sum())


@entity
class PausedBatch:
    """A batch that has paused. `first`: position of its first workgroup; `progress`: of its lockstep group; `given`:
    the work it was allowed so far; `limit`: the most it may be; `turns`: of each loop, at the snapshot; `is_compared`:
    it has paused because no comparison is left; `since`: when it first paused; `unwatched`: how it was stopped when run
    without probes."""

    first: int
    progress: NDArray[np.int64]
    given: int
    limit: int
    turns: NDArray[np.int64] | None = None
    is_compared: bool = False
    since: float = field(default_factory=thread_time)
    unwatched: Stopped | None = None

    def stopped(self) -> Stopped:
        """Return why it does not go on."""
        if self.unwatched is not None:
            return replace(self.unwatched, workgroup=self.first)
        turned = None if self.turns is None or not self.progress[at.REPEATED] else self.progress[_TURNS] - self.turns
        return Stopped(self.progress.copy(), self.first, turned)


@entity
class LongLoops:
    """What a launch does about batches that pause.

    `work`: the limit of a batch. `ends`: runs the batch from this workgroup on without probes, and returns how it was
    stopped, if it was; None: the program has no probes. `may_repeat`: a run that stops in a loop that waits is repeated
    with units that take turns.
    """

    program: Program
    work: int
    ends: Callable[[int], Stopped | None] | None
    may_repeat: bool
    _memory: dict[int, frozenset[str]] = field(default_factory=dict[int, frozenset[str]])

    @property
    def first_pause(self) -> int:
        """Work after which a batch first pauses."""
        return min(_FIRST_PAUSE, self.work)

    def goes_on(
        self, batch: PausedBatch, memory: dict[str, NDArray[Any]], keep: Callable[[NDArray[Any]], None]
    ) -> bool:
        """Prepare a batch to go on, unless it must stop. `memory`: its registers and what it can see, by space;
        `keep` passes a snapshot to the machine."""
        progress = batch.progress
        if progress[at.REPEATED] or progress[at.BUDGET_LEFT] < 0:
            return False
        spent = batch.given - int(progress[at.WORK_LEFT])
        is_slow = self.ends is not None and thread_time() - batch.since >= _WATCHED_SECONDS
        _, awaited = self.program.loops[int(progress[at.PAUSED]) - 1]
        if awaited and spent >= self.work >> _EARLIER and self.may_repeat:
            return False
        if (spent >= batch.limit or (is_slow and batch.limit < UNLIMITED)) and not self._may_exceed(batch):
            return False
        snapshot = None if batch.is_compared else self._snapshot(int(progress[at.PAUSED]) - 1, memory, spent)
        batch.is_compared = snapshot is not None
        if snapshot is None:
            batch.given = min(2 * spent, batch.limit)
            progress[at.WORK_LEFT] = batch.given - spent
        else:  # no work is left, so that each backward jump compares
            keep(snapshot)
            batch.turns = progress[_TURNS].copy()
            progress[_AT_WIDTHS], progress[at.AT_LOOP] = progress[_WIDTHS], progress[at.PAUSED] - 1
            progress[at.TO_COMPARE] = max(_LEAST_COMPARED, int(batch.turns.sum()) // _TURNS_PER_COMPARISON)
        return True

    def _may_exceed(self, batch: PausedBatch) -> bool:
        """Whether a batch ends without probes."""
        if self.ends is None:
            return False
        batch.unwatched, batch.limit = self.ends(batch.first), UNLIMITED
        return batch.unwatched is None

    def _snapshot(self, loop: int, memory: dict[str, NDArray[Any]], spent: int) -> NDArray[Any] | None:
        """Return the state of a batch; None if it is large for the work that was done."""
        if loop not in self._memory:
            self._memory[loop] = memory_of_state(self.program, loop)
        spaces = self._memory[loop]
        parts = [memory["registers"], memory["workgroup"], *([memory["storage"]] if spaces - {"workgroup"} else [])]
        size = sum(part.size for part in parts)
        if size * _PER_WORD > spent or (memory["storage"].size > _MOST_STORAGE and len(parts) > 2):
            return None
        return np.concatenate([part.ravel() for part in parts])

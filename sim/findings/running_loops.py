"""Which of several nested loops does not end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..launch.launch import Launch
from ..machine import instruction as field
from ..machine import layout as at
from ..machine import opcodes as op

_LONGER = 4  # times as long as before: a loop that lasts longer is the one that does not end


def longest_running(launch: Launch, loop: int, stopped: NDArray[np.int64]) -> int:
    """Return the loop that does not end, of `loop`, which ran last, and those around it.

    A loop that has ended in earlier turns of the one around it, after about as many iterations as it has made now, is
    not to blame. `stopped` is the progress of its lockstep group.
    """
    ranges, left = _ranges(launch.program.code), int(stopped[at.BUDGET_LEFT])
    for outer in _around(ranges, loop):
        number = min(outer, at.MOST_LOOPS - 1)
        turns, turned = int(stopped[at.TURNS + number]), int(stopped[at.TURNED + number])
        before = launch.options.budget - turned
        if not turns or (turned - left) * turns > _LONGER * before:
            break
        loop = outer
    return loop


def _ranges(code: NDArray[np.int32]) -> dict[int, range]:
    """Return the instructions of each loop, by its number."""
    places = np.flatnonzero((code[:, field.OP] == op.JUMP) & (code[:, field.TARGET] <= np.arange(len(code))))
    return {int(code[at_, field.LOOP]): range(int(code[at_, field.TARGET]), int(at_) + 1) for at_ in places}


def _around(ranges: dict[int, range], loop: int) -> list[int]:
    """Return the loops around a loop, from the inside out."""
    own = ranges[loop]
    around = [n for n, each in ranges.items() if each.start <= own.start and own.stop < each.stop]
    return sorted(around, key=lambda n: len(ranges[n]))

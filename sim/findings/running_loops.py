"""Which of several nested loops does not end."""

from __future__ import annotations

from ..codegen.loops import loop_ranges
from ..launch.launch import Launch
from ..launch.long_loops import Stopped
from ..machine import layout as at

_LONGER = 4  # times as long as before: a loop that lasts longer is the one that does not end


def endless_loop(launch: Launch, stopped: Stopped) -> tuple[int, int | None]:
    """Return the loop that does not end, and after how many of its iterations its state repeats, if that is known."""
    around = _around(loop_ranges(launch.program.code), stopped.loop)
    if stopped.turned is None:
        return _longest_running(launch, stopped, around), None
    turned = stopped.turned.tolist()
    loop = next((n for n in reversed(around) if n < at.MOST_LOOPS - 1 and turned[n]), stopped.loop)
    is_known = len(launch.program.loops) <= at.MOST_LOOPS or loop < at.MOST_LOOPS - 1
    return loop, turned[min(loop, at.MOST_LOOPS - 1)] if is_known else None


def _longest_running(launch: Launch, stopped: Stopped, around: list[int]) -> int:
    """Return the loop that does not end, of the one that ran last and those around it.

    A loop that has ended in earlier turns of the one around it, after about as many iterations as it has made now, is
    not to blame.
    """
    loop, left = stopped.loop, int(stopped.progress[at.BUDGET_LEFT])
    for outer in around:
        number = min(outer, at.MOST_LOOPS - 1)
        turns, turned = int(stopped.progress[at.TURNS + number]), int(stopped.progress[at.TURNED + number])
        before = launch.options.budget - turned
        if not turns or (turned - left) * turns > _LONGER * before:
            break
        loop = outer
    return loop


def _around(ranges: dict[int, range], loop: int) -> list[int]:
    """Return the loops around a loop, from the inside out."""
    own = ranges[loop]
    around = [n for n, each in ranges.items() if each.start <= own.start and own.stop < each.stop]
    return sorted(around, key=lambda n: len(ranges[n]))

"""What follows for a value from its operands.

Values share operands, and programs that compilers unrolled have chains of tens of thousands: a function that calls
itself for each operand takes exponential time on the former, and runs out of stack on the latter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

V = TypeVar("V")
R = TypeVar("R")


def bottom_up(
    value: V, known: dict[V, R], operands: Callable[[V], Sequence[V]], combine: Callable[[V, Sequence[R]], R]
) -> R:
    """Return what `combine` returns for a value and the results of its operands, each of which is computed once.

    `known`: results so far, which are added to. `operands`: the operands of a value that its result depends on.
    """
    waiting = [value]
    while waiting:
        each = waiting[-1]
        if each not in known:
            its = operands(each)
            if missing := [operand for operand in its if operand not in known]:
                waiting += missing
                continue
            known[each] = combine(each, [known[operand] for operand in its])
        waiting.pop()
    return known[value]

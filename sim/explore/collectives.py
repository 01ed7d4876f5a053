"""Subgroup operations on the values of the lanes that take part, as the machine computes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .invocations import compute


def combine(op: str, scalar: str, args: Mapping[int, Sequence[int]], size: int) -> dict[int, tuple[int, ...]]:
    """Return the results of a subgroup operation: by lane, as its arguments. `size`: lanes of the subgroup.

    A shuffle reads 0 from a lane that takes no part.
    """
    lanes = sorted(args)
    match op:
        case "reduce" | "inclusive" | "exclusive":
            return _folded(op, scalar, args, lanes)
        case "first":
            return {lane: (lanes[0],) for lane in lanes}
        case "ballot":
            words = tuple(sum(args[lane][0] << lane % 32 for lane in lanes if lane // 32 == w) for w in range(4))
            return dict.fromkeys(lanes, words)
        case _:
            last = size - 1
            asked = {lane: min(args[lane][1], last) if op == "shuffle_last" else args[lane][1] for lane in lanes}
            return {lane: (args[asked[lane]][0] if asked[lane] in args else 0,) for lane in lanes}


def _folded(op: str, scalar: str, args: Mapping[int, Sequence[int]], lanes: list[int]) -> dict[int, tuple[int, ...]]:
    total = args[lanes[0]][1]  # the neutral value
    before: dict[int, tuple[int, ...]] = {}
    after: dict[int, tuple[int, ...]] = {}
    for lane in lanes:
        before[lane] = (total,)
        total = compute(scalar, (total, args[lane][0]))
        after[lane] = (total,)
    if op == "reduce":
        return dict.fromkeys(lanes, (total,))
    return before if op == "exclusive" else after

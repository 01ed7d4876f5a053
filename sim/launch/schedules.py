"""Orders in which the invocations of a workgroup run. WGSL allows all of them; without races, results are the same.

- `lockstep`: all invocations execute each operation together, atomic operations from the first to the last.
- `mirrored`: as lockstep, from the last invocation and workgroup to the first, at least four workgroups side by side.
  If subgroups exchange values, the order of subgroups is reversed, that of the lanes in them is not.
- `side-by-side(a,b,…)`: as lockstep, but these workgroups, by number in the grid, begin, in lockstep with each other.
- `subgroup-serial`: one subgroup after another runs to the next barrier.
- `turns(seed)`: up to eight workgroups take turns from barrier to barrier, in an order that is drawn anew at each. Each
  is in lockstep. They begin in a drawn order, too.
- `serial`, `reversed`, `random(seed)`: one invocation after another (one subgroup after another, if they exchange
  values) runs to the next barrier, in ascending order, in descending order or in an order that is drawn anew at each
  barrier. Workgroups likewise.
- `pct(seed,depth)`: for now, as `random(seed)`.

Workgroups of a program that waits for other workgroups begin in grid order in all of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..machine import layout as at
from ..wgsl.diagnostics import fail


@frozen
class Schedule:
    """An order of execution.

    `granularity` says what runs to the next barrier in lockstep: all workgroups of a batch (workgroup), one of them
    (turns), a subgroup or an invocation. `seed` is FORWARD,
    BACKWARD or a number that draws the order. `beside`: at least so many workgroups run side by side, in lockstep;
    `first`: the workgroups that begin, by number in the grid.
    """

    name: str
    granularity: str = "workgroup"
    seed: int = at.FORWARD
    beside: int = 1
    first: tuple[int, ...] = ()

    @property
    def mirrors(self) -> bool:
        """Whether lanes run in lockstep, from the last to the first."""
        return self.granularity == "workgroup" and self.seed == at.BACKWARD

    def order(self, workgroups: int) -> NDArray[np.int64]:
        """Return the workgroups of a grid in launch order; empty for ascending order."""
        if self.first:
            begin = [number for number in self.first if number < workgroups]
            return np.concatenate([begin, np.setdiff1d(np.arange(workgroups), begin)]).astype(np.int64)
        if self.seed == at.FORWARD:
            return np.zeros(0, np.int64)
        if self.seed == at.BACKWARD:
            return np.arange(workgroups - 1, -1, -1, dtype=np.int64)
        return np.random.default_rng(self.seed).permutation(workgroups)


LOCKSTEP = Schedule("lockstep")
MIRRORED = Schedule("mirrored", seed=at.BACKWARD, beside=4)
REVERSED = Schedule("reversed", "invocation", at.BACKWARD)
SERIAL = Schedule("serial", "invocation")
_FIXED = (LOCKSTEP, MIRRORED, Schedule("subgroup-serial", "subgroup"), SERIAL, REVERSED)


def side_by_side(workgroups: Iterable[int]) -> Schedule:
    """Return the schedule in which these workgroups begin, in lockstep with each other."""
    first = tuple(workgroups)
    return Schedule(f"side-by-side({','.join(map(str, first))})", beside=len(first), first=first)


def schedule(name: str) -> Schedule:
    """Return the schedule of this name. Raises `WgslError` if there is none."""
    for each in _FIXED:
        if each.name == name:
            return each
    if beside := re.fullmatch(r"side-by-side\((\d+(?:,\d+)+)\)", name):
        return side_by_side(dict.fromkeys(map(int, beside.group(1).split(","))))
    if drawn := re.fullmatch(r"turns\((\d+)\)", name):
        return Schedule(name, "turns", 1 + int(drawn[1]) % (1 << 32), beside=8)
    drawn = re.fullmatch(r"random\((\d+)\)|pct\((\d+),(\d+)\)", name)
    if drawn is None:
        names = ", ".join(each.name for each in _FIXED)
        raise fail(
            "unknown-option",
            f"schedule cannot be {name!r}; it is one of {names}, side-by-side(a,b), turns(seed), random(seed) or "
            "pct(seed,depth)",
            None,
        )
    return Schedule(name, "invocation", 1 + int(drawn[1] or drawn[2]) % (1 << 32))

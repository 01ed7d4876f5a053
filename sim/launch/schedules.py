"""Orders in which the invocations of a workgroup run. WGSL allows all of them; without races, results are the same.

- `lockstep`: all invocations execute each operation together, atomic operations from the first to the last.
- `mirrored`: as lockstep, from the last invocation and workgroup to the first. If subgroups exchange values, the order
  of subgroups is reversed, that of the lanes in them is not.
- `subgroup-serial`: one subgroup after another runs to the next barrier.
- `reversed`, `random(seed)`: one invocation after another (one subgroup after another, if they exchange values) runs to
  the next barrier, in descending order or in an order that is drawn anew at each barrier. Workgroups likewise.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..machine import layout as at
from ..wgsl.diagnostics import fail


@frozen
class Schedule:
    """An order of execution.

    `granularity` says what runs to the next barrier in lockstep: workgroup, subgroup or invocation. `seed` is FORWARD,
    BACKWARD or a number that draws the order.
    """

    name: str
    granularity: str = "workgroup"
    seed: int = at.FORWARD

    def order(self, workgroups: int) -> NDArray[np.int64]:
        """Return the workgroups of a grid in launch order; empty for ascending order."""
        if self.seed == at.FORWARD:
            return np.zeros(0, np.int64)
        if self.seed == at.BACKWARD:
            return np.arange(workgroups - 1, -1, -1, dtype=np.int64)
        return np.random.default_rng(self.seed).permutation(workgroups)


LOCKSTEP = Schedule("lockstep")
MIRRORED = Schedule("mirrored", seed=at.BACKWARD)
REVERSED = Schedule("reversed", "invocation", at.BACKWARD)
_FIXED = (LOCKSTEP, MIRRORED, Schedule("subgroup-serial", "subgroup"), REVERSED)


def schedule(name: str) -> Schedule:
    """Return the schedule of this name. Raises `WgslError` if there is none."""
    for each in _FIXED:
        if each.name == name:
            return each
    drawn = re.fullmatch(r"random\((\d+)\)", name)
    if drawn is None:
        names = ", ".join(each.name for each in _FIXED)
        raise fail("unknown-option", f"schedule cannot be {name!r}; it is one of {names} or random(seed)", None)
    return Schedule(name, "invocation", 1 + int(drawn[1]) % (1 << 32))

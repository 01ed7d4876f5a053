"""Orders in which a workgroup's invocations may run: all are allowed, and a kernel without races does not notice.

`lockstep`: all invocations do each operation together, atomic ones from the first to the last. `mirrored`: the same
from the last to the first, and so the workgroups (where subgroups exchange values, subgroup by subgroup).
`subgroup-serial`: one subgroup after the other runs to the next barrier. `reversed` and `random(seed)`: invocation by
invocation (subgroup by subgroup where they exchange values), from the last to the first or in a drawn order, anew
between any two barriers; and so the workgroups.
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
    """`alone`: what runs to the next barrier on its own: workgroup, subgroup or invocation. `seed`: see `layout`."""

    name: str
    alone: str = "workgroup"
    seed: int = at.FORWARD

    def order(self, workgroups: int) -> NDArray[np.int64]:
        """The workgroups of a grid in the order in which they start; empty for that of the grid."""
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
    """The schedule of this name. Raises `WgslError`."""
    for each in _FIXED:
        if each.name == name:
            return each
    drawn = re.fullmatch(r"random\((\d+)\)", name)
    if drawn is None:
        names = ", ".join(each.name for each in _FIXED)
        raise fail("unknown-option", f"schedule cannot be {name!r}; it is one of {names} or random(seed)", None)
    return Schedule(name, "invocation", 1 + int(drawn[1]) % (1 << 32))

"""Orders in which the invocations of a dispatch run. WGSL allows all of them; without races, results are the same.

- `lockstep`: all invocations execute each operation together, atomic operations from the first to the last.
- `mirrored`: as lockstep, from the last invocation and workgroup to the first, at least four workgroups side by side.
  If subgroups exchange values, the order of subgroups is reversed, that of the lanes in them is not.
- `side-by-side`: as lockstep, with as many workgroups side by side as there is room for.
- `side-by-side(a,b,…)`: as lockstep, but these workgroups, by number in the grid, begin, in lockstep with each other.
- `subgroup-serial`: one subgroup after another runs to the next barrier.
- `turns(seed)`: up to eight workgroups take turns from barrier to barrier, in an order that is drawn anew at each. Each
  is in lockstep. They begin in a drawn order, too.
- `serial`, `reversed`: one invocation after another (one subgroup after another, if they exchange values) runs to the
  next barrier, in ascending or in descending order. Workgroups likewise.
- `random(seed)`: at each barrier, atomic operation and subgroup operation, and at each access to a variable with races,
  another unit may go on, of all those of many workgroups: one that is drawn.
- `pct(seed,depth)`: as random, but units have priorities, in a drawn order, and the one of the highest goes on. It
  loses its priority at `depth` - 1 drawn steps (PCT: Burckhardt et al., ASPLOS 2010).

The units of random and pct are invocations in a dispatch of up to 65,536 of them, subgroups in one of up to 4,194,304
(and where they exchange values), and workgroups in a larger one. A last argument chooses other ones, as in
`random(7,subgroups)` and `pct(7,3,workgroups)`.

Progress is fair in all of them: a unit that spins, in a loop that may wait for others, lets all others go on first; in
mirrored, reversed and pct once it has done so 2,048 times.
Where a loop waits for another part of what runs in lockstep, or for a workgroup that has not begun, workgroups,
subgroups, and then invocations become units of their own, of as many workgroups as have room. If a program waits for
other workgroups, they are units from the start, in all orders but lockstep; and they begin in grid order unless there
is room for all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..machine import layout as at
from ..wgsl.diagnostics import fail

_PATIENCE = 1 << 11
_MOST_GROUPS = 1 << 12  # lockstep groups of a batch
_MOST_LANES = 1 << 18  # lanes of all of them: each has a copy of the registers
_MOST_BESIDE = 1 << 16  # lanes in lockstep
MOST_ONE_BY_ONE = 1 << 16  # invocations of a dispatch that still run one by one
_MOST_SUBGROUPED = 1 << 22  # of a dispatch whose units are subgroups
_ASCENDING = np.zeros(0, np.int64)
_UNITS = {"invocations": "invocation", "subgroups": "subgroup", "workgroups": "turns"}  # granularities
_DRAWN = re.compile(
    rf"(?:random\((?P<random>\d+)|pct\((?P<pct>\d+),(?P<depth>\d+))(?:,(?P<units>{'|'.join(_UNITS)}))?\)"
)


@frozen
class Schedule:
    """An order of execution.

    `granularity` says what runs in lockstep: all workgroups of a batch (workgroup), or a unit: one workgroup (turns), a
    subgroup or an invocation; any: what suits the size of the dispatch. `seed` is FORWARD, BACKWARD or a number that
    draws the order. `beside`: at least so many workgroups run side by side, in lockstep; at most so many, in units; 0:
    as many as there is room for. `first`: the workgroups that begin, by number in the grid. `pick`: which unit goes on
    next; `depth`: how many priorities a unit may have.
    """

    name: str
    granularity: str = "workgroup"
    seed: int = at.FORWARD
    beside: int = 1
    first: tuple[int, ...] = ()
    pick: int = at.ROUNDS
    depth: int = 0

    @property
    def takes_turns(self) -> bool:
        """Whether workgroups, subgroups or invocations are units, which take turns."""
        return self.granularity != "workgroup"

    def __hash__(self) -> int:
        return hash((self.name, self.granularity, self.seed))  # tells most of them apart

    @cached_property
    def layout(self) -> Schedule:
        """The schedule without what only decides who goes on next: those of one layout need the same memory."""
        seed = self.seed if self.mirrors else at.FORWARD
        return Schedule("", self.granularity, seed, self.beside)

    @property
    def switches(self) -> bool:
        """Whether units take turns at each operation that others may see."""
        return self.pick != at.ROUNDS

    @property
    def patience(self) -> int:
        """How often a unit turns in loops that wait before it lets others go on: that shows what it does then."""
        return _PATIENCE if self.seed == at.BACKWARD or self.pick == at.PRIORITIES else 0

    def sized(self, lanes: int, workgroups: int, subgroup: int) -> Schedule:
        """Return the schedule with the units that suit a grid of so many workgroups of so many lanes."""
        count, granularity, beside = lanes * workgroups, self.granularity, self.beside
        if granularity == "any":
            small = "invocation" if count <= MOST_ONE_BY_ONE else "subgroup"
            granularity = small if count <= _MOST_SUBGROUPED else "turns"
        if not beside:
            size = {"invocation": 1, "subgroup": min(subgroup, lanes)}.get(granularity, lanes)
            each, width = -(-lanes // size), max(size, at.VECTOR_LANES)
            most = _MOST_BESIDE if granularity == "workgroup" else _MOST_LANES
            beside = max(1, min(workgroups, _MOST_GROUPS // each, most // (each * width)))
        return replace(self, granularity=granularity, beside=beside)

    def finer(self, lanes: int, workgroups: int, subgroup: int) -> list[Schedule]:
        """Return the schedules of the same order in which ever smaller units take turns, of as many workgroups as
        there is room for."""
        sizes = {"turns": lanes, "subgroup": min(subgroup, lanes), "invocation": 1}
        now = self.sized(lanes, workgroups, subgroup)
        found = [replace(self, granularity=each, beside=0).sized(lanes, workgroups, subgroup) for each in sizes]
        finer = [each for each in found if each.beside * lanes > sizes[each.granularity]]
        if now.takes_turns:
            finer = [each for each in finer if sizes[each.granularity] <= sizes[now.granularity] and each != now]
        return finer

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
            return _ASCENDING
        if self.seed == at.BACKWARD:
            return np.arange(workgroups - 1, -1, -1, dtype=np.int64)
        return np.random.default_rng(self.seed).permutation(workgroups)


LOCKSTEP = Schedule("lockstep")
MIRRORED = Schedule("mirrored", seed=at.BACKWARD, beside=4)
REVERSED = Schedule("reversed", "invocation", at.BACKWARD)
SERIAL = Schedule("serial", "invocation")
SIDE_BY_SIDE = Schedule("side-by-side", beside=0)
_FIXED = (LOCKSTEP, MIRRORED, SIDE_BY_SIDE, Schedule("subgroup-serial", "subgroup"), SERIAL, REVERSED)


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
    drawn = _DRAWN.fullmatch(name)
    if drawn is None:
        names = ", ".join(each.name for each in _FIXED)
        others = "side-by-side(a,b), turns(seed), random(seed) or pct(seed,depth)"
        raise fail("unknown-option", f"schedule cannot be {name!r}; it is one of {names}, {others}", None)
    seed, units = 1 + int(drawn["random"] or drawn["pct"]) % (1 << 32), _UNITS.get(drawn["units"], "any")
    if drawn["depth"] is None:
        return Schedule(name, units, seed, beside=0, pick=at.DRAWN)
    return Schedule(name, units, seed, beside=0, pick=at.PRIORITIES, depth=int(drawn["depth"]))

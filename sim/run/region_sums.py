"""What a dispatch executes, as sums over the regions of its program.

A region without basic blocks of its own is executed as often as the one around it. So the sums are a product of two
arrays: what one execution of a region adds, made once for a program, and how often a dispatch executes the region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..machine import layout as at
from ..performance.chains import RegionCosts
from ..performance.instruction_costs import STEPS

# How often a basic block is executed: by all subgroups, by the lanes of all workgroups, and by those of the longest.
_COUNTS = np.array([at.EXECUTIONS, at.LAUNCHED, at.LONGEST])

_Rows = dict[str, int]  # where the sum of this name is


@frozen
class Executed:
    """What a dispatch executes. `issued`: instructions by class, of all subgroups. `chain`: steps by kind, of a
    workgroup on average; `longest`: of the workgroup that takes the most. `software` and `software_chain`: instructions
    and steps of all subgroups of a software adapter, which executes both sides of each branch. None has zeros."""

    issued: dict[str, float]
    chain: dict[str, float]
    longest: dict[str, float]
    software: dict[str, float]
    software_chain: dict[str, float]


@frozen
class RegionSums:
    """The sums over all regions of a program, of which some are counted: see `Executed`.

    `weights`: a row for each sum, with what an execution of the program as a whole adds, and of each counted region.
    `blocks`: the basic blocks of the counted regions, and `starts`: where those of each begin in it.
    """

    issued: _Rows
    chain: _Rows
    software: _Rows
    software_chain: _Rows
    weights: NDArray[np.float64]
    blocks: NDArray[np.int64]
    starts: NDArray[np.int64]

    def of(self, blocks: NDArray[np.int64], workgroups: int, subgroups: int, lanes: int) -> Executed:
        """Return what workgroups of so many subgroups and lanes execute. `blocks`: what a run of so many counted."""
        counted = np.maximum.reduceat(blocks[self.blocks], self.starts).take(_COUNTS, axis=1)
        whole = workgroups * subgroups, workgroups * lanes, lanes
        visits = np.concatenate([[whole], counted]) / (1, max(1, workgroups * lanes), lanes)
        np.maximum(visits[:, 1], visits[:, 2], out=visits[:, 2])
        total, mean, longest = (self.weights @ visits).T.tolist()
        return Executed(
            issued=_named(self.issued, total),
            chain=_named(self.chain, mean),
            longest=_named(self.chain, longest),
            software=_named(self.software, total),
            software_chain=_named(self.software_chain, total),
        )


def _named(rows: _Rows, sums: list[float]) -> dict[str, float]:
    return {name: sums[row] for name, row in rows.items() if sums[row]}


def region_sums(regions: Sequence[RegionCosts]) -> RegionSums:
    """Return the sums over the regions of a program, each of which comes after its parent."""
    counted: list[list[int]] = []  # the basic blocks of each counted region
    visited: dict[int, int] = {}  # by identity: the number of the counted region that is executed as often; 0: of none
    reached: dict[int, int] = {}  # likewise by subgroups that leave no branch out
    for region in regions:
        blocks = region.blocks or (region.counted_by.blocks if region.counted_by else [])
        if blocks:
            counted.append(blocks)
        number = visited[id(region)] = len(counted) if blocks else visited.get(id(region.parent), 0)
        reached[id(region)] = number if region.repeats else reached.get(id(region.parent), 0)
    once, always, weights = [*visited.values()], [*reached.values()], list[NDArray[np.float64]]()

    def rows(costs: Sequence[Mapping[str, float]], numbers: list[int]) -> _Rows:
        """Add the rows of the sums of the costs of each region, which is executed as often as these counted ones."""
        found: _Rows = {}
        for each, number in zip(costs, numbers, strict=True):
            for name, cost in each.items():
                if found.setdefault(name, len(weights)) == len(weights):
                    weights.append(np.zeros(1 + len(counted)))
                weights[found[name]][number] += cost
        return found

    return RegionSums(
        issued=rows([dict(each.instructions) for each in regions], once),
        chain=rows([{step: n for step, n in each.chain.items() if step in STEPS} for each in regions], once),
        software=rows([each.software for each in regions], always),
        software_chain=rows([each.chain for each in regions], always),
        weights=np.array(weights).reshape(-1, 1 + len(counted)),
        blocks=np.array([block for blocks in counted for block in blocks], np.int64),
        starts=np.cumsum([0, *map(len, counted)])[:-1],
    )

"""What a dispatch executes, as sums over the regions of its program.

A region without basic blocks of its own is executed as often as the one around it. So each sum is a product of two
arrays: what one execution of a region adds, made once for a program, and how often a dispatch executes the region.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import entity, frozen
from ..machine import layout as at
from .chains import RegionCosts
from .instruction_costs import STEPS

Visits = NDArray[np.float64]  # how often each counted region is executed, after the program as a whole


@frozen
class Sums:
    """Sums by name. `weights`: a row for each name, with what an execution of each counted region adds."""

    names: list[str]
    weights: NDArray[np.float64]

    def of(self, visits: Visits) -> dict[str, float]:
        """Return the sums that are not 0."""
        found = (self.weights @ visits).tolist()
        return {name: each for name, each in zip(self.names, found, strict=True) if each}


@entity
class RegionSums:
    """The sums over all regions of a program, of which some are counted.

    `issued`: instructions by class, and `chain`: steps by kind, as a GPU executes them. `software` and
    `software_chain`: the same of a software adapter, which executes both sides of each branch.
    `blocks`: the basic blocks of the counted regions, and `starts`: where those of each begin in it.
    """

    issued: Sums
    chain: Sums
    software: Sums
    software_chain: Sums
    blocks: NDArray[np.int64]
    starts: NDArray[np.int64]

    def visits(self, blocks: NDArray[np.int64], workgroups: int, subgroups: int, lanes: int) -> tuple[Visits, ...]:
        """Return how often regions are executed: by all subgroups, by a workgroup on average, and by the one that does
        it most. `blocks`: what a run of so many workgroups of so many subgroups and lanes counted."""
        counted = np.maximum.reduceat(blocks[self.blocks], self.starts)
        executions, mean, longest = np.ones((3, 1 + len(counted)))
        executions[0], executions[1:] = workgroups * subgroups, counted[:, at.EXECUTIONS]
        mean[1:] = counted[:, at.LAUNCHED] / max(1, workgroups * lanes)
        longest[1:] = counted[:, at.LONGEST] / lanes
        return executions, mean, np.maximum(mean, longest)


def region_sums(regions: Sequence[RegionCosts]) -> RegionSums:
    """Return the sums over the regions of a program, each of which comes after its parent."""
    counted: list[list[int]] = []  # the basic blocks of each counted region
    visited: dict[int, int] = {}  # the number of the counted region that is executed as often, by identity
    reached: dict[int, int] = {}  # likewise by subgroups that leave no branch out
    for region in regions:
        blocks = region.blocks or (region.counted_by.blocks if region.counted_by else [])
        if blocks:
            counted.append(blocks)
        number = visited[id(region)] = len(counted) if blocks else visited.get(id(region.parent), 0)
        reached[id(region)] = number if region.repeats else reached.get(id(region.parent), 0)
    once, always, size = [*visited.values()], [*reached.values()], 1 + len(counted)
    chains = [{step: n for step, n in each.chain.items() if step in STEPS} for each in regions]
    return RegionSums(
        issued=_sums([dict(each.instructions) for each in regions], once, size),
        chain=_sums(chains, once, size),
        software=_sums([each.software for each in regions], always, size),
        software_chain=_sums([each.chain for each in regions], always, size),
        blocks=np.array([block for blocks in counted for block in blocks], np.int64),
        starts=np.cumsum([0, *map(len, counted)])[:-1],
    )


def _sums(costs: Sequence[Mapping[str, float]], numbers: list[int], size: int) -> Sums:
    """Return the sums of the costs of regions that are executed as often as the counted ones of these numbers."""
    names = list(dict.fromkeys(name for each in costs for name in each))
    weights = np.zeros((len(names), size))
    for each, number in zip(costs, numbers, strict=True):
        for name, cost in each.items():
            weights[names.index(name), number] += cost
    return Sums(names, weights)

"""What a dispatch executes, as sums over the regions of its program.

A region without basic blocks of its own is executed as often as the one around it. So the sums are a product of two
arrays: what one execution of a region adds, made once for a program, and how often a dispatch executes the region.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..machine import layout as at
from ..performance.chains import RegionCosts
from ..performance.instruction_costs import STEPS

# How often a basic block is executed: by all subgroups, by the lanes of all workgroups, and by those of the longest.
_COUNTS = np.array([at.EXECUTIONS, at.LAUNCHED, at.LONGEST])

_Name = TypeVar("_Name")
_Rows = dict[str, int]  # where the sum of this name is
_SiteRows = dict[int, int]  # where the sum of the executions of this site is


@frozen
class ExecutedPhase:
    """What a dispatch executes in a phase, or in all. `issued`: instructions by class, of all subgroups; `code`: those
    of the program that are executed at all. `chain`: steps by kind, of a workgroup on average; `longest`: of the
    workgroup that takes the most; `steps`: of all subgroups that execute them. None has zeros."""

    issued: dict[str, float]
    code: dict[str, float]
    chain: dict[str, float]
    longest: dict[str, float]
    steps: dict[str, float]

    @staticmethod
    def sum(phases: Sequence[ExecutedPhase]) -> ExecutedPhase:
        """Return what is executed in all of these phases."""
        if len(phases) == 1:
            return phases[0]
        return ExecutedPhase(
            issued=_sum(each.issued for each in phases),
            code=_sum(each.code for each in phases),
            chain=_sum(each.chain for each in phases),
            longest=_sum(each.longest for each in phases),
            steps=_sum(each.steps for each in phases),
        )


@frozen
class Executed:
    """What a dispatch executes, by phase. `software` and `software_chain`: instructions and steps of all subgroups of a
    software adapter, which executes both sides of each branch. None has zeros. `shares`: of each phase, by the numbers
    of the sites that other phases have, too, which part of their executions it has."""

    phases: list[ExecutedPhase]
    shares: list[dict[int, float]]
    software: dict[str, float]
    software_chain: dict[str, float]


@frozen
class RegionSums:
    """The sums over all regions of a program, of which some are counted: see `Executed`.

    `weights`: a row for each sum, with what an execution of the program as a whole adds, and of each counted region.
    `sites`: of each phase, where the executions are of each site that other phases have, too, by its number.
    `counts`: where the table of blocks has the counts of those of the counted regions, a row for each block; `starts`:
    where the rows of each region begin.
    """

    phases: Sequence[tuple[_Rows, _Rows]]  # of each, instructions and the chain
    sites: Sequence[_SiteRows]
    software: _Rows
    software_chain: _Rows
    weights: NDArray[np.float64]
    counts: NDArray[np.int64]
    starts: NDArray[np.int64]

    def of(
        self, blocks: NDArray[np.int64], workgroups: int, subgroups: int, lanes: int, scale: float = 1.0
    ) -> Executed:
        """Return what workgroups of so many subgroups and lanes execute. `blocks`: what a run of so many counted, each
        of which stands for `scale` workgroups."""
        whole = workgroups * subgroups, workgroups * lanes, lanes
        regions = np.maximum.reduceat(blocks.take(self.counts), self.starts).tolist()
        visits = [_visits(each, whole) for each in (whole, *regions)]
        sums = self.weights @ np.array(visits, np.float64)
        if scale != 1:
            sums[:, 0] *= scale
        total, mean, longest, once = sums.T.tolist()
        return Executed(
            phases=[
                ExecutedPhase(
                    issued=_named(issued, total),
                    code=_named(issued, once),
                    chain=_named(chain, mean),
                    longest=_named(chain, longest),
                    steps=_named(chain, total),
                )
                for issued, chain in self.phases
            ],
            shares=_shares([{site: total[row] for site, row in its.items()} for its in self.sites]),
            software=_named(self.software, total),
            software_chain=_named(self.software_chain, total),
        )


def _visits(region: Sequence[int], whole: Sequence[int]) -> tuple[float, float, float, float]:
    """Return how often a region is executed: by all subgroups, by a lane on average, by one of the longest workgroup,
    and at all (0 or 1). `region` and `whole`: its counts, and those of a region that all lanes execute once."""
    (executions, launched, longest), (_, all_lanes, of_workgroup) = region, whole
    mean = launched / max(1, all_lanes)
    return executions, mean, max(mean, longest / of_workgroup), executions > 0


def _sum(costs: Iterable[Mapping[str, float]]) -> dict[str, float]:
    found = defaultdict[str, float](float)
    for each in costs:
        for name, cost in each.items():
            found[name] += cost
    return dict(found)


def _named(rows: _Rows, sums: list[float]) -> dict[str, float]:
    return {name: each for name, row in rows.items() if (each := sums[row])}


def _shares(executions: Sequence[Mapping[int, float]]) -> list[dict[int, float]]:
    """Return the share of the executions of each site that each phase has."""
    if not any(executions):
        return [{} for _ in executions]
    totals = defaultdict[int, float](float)
    for each in executions:
        for site, count in each.items():
            totals[site] += count
    return [{site: count / (totals[site] or count or 1.0) for site, count in each.items()} for each in executions]


def _in_several_phases(regions: Sequence[RegionCosts]) -> frozenset[int]:
    """Return the numbers of the sites that several phases have: of a function that they all call, for example."""
    first = dict[int, int]()
    return frozenset(
        site
        for region in regions
        for site in region.sites
        if site >= 0 and first.setdefault(site, region.phase) != region.phase
    )


def region_sums(regions: Sequence[RegionCosts]) -> RegionSums:
    """Return the sums over the regions of a program, each of which comes after its parent."""
    counted: list[list[int]] = []  # the basic blocks of each counted region
    visited: dict[int, int] = {}  # by identity: the number of the counted region that is executed as often; 0: of none
    reached: dict[int, int] = {}  # likewise by subgroups that leave no branch out
    for region in regions:
        if blocks := region.counted_blocks:
            counted.append(blocks)
        number = visited[id(region)] = len(counted) if blocks else visited.get(id(region.parent), 0)
        reached[id(region)] = number if region.repeats else reached.get(id(region.parent), 0)
    once, always, weights = [*visited.values()], [*reached.values()], list[NDArray[np.float64]]()

    def rows(costs: Iterable[tuple[Mapping[_Name, float], int]]) -> dict[_Name, int]:
        """Add the rows of the sums of costs, each with the counted region that is executed as often."""
        found = dict[_Name, int]()
        for each, number in costs:
            for name, cost in each.items():
                if found.setdefault(name, len(weights)) == len(weights):
                    weights.append(np.zeros(1 + len(counted)))
                weights[found[name]][number] += cost
        return found

    def of_phase(phase: int) -> tuple[_Rows, _Rows]:
        its = [(region, number) for region, number in zip(regions, once, strict=True) if region.phase == phase]
        chains = [({step: n for step, n in each.chain.items() if step in STEPS}, number) for each, number in its]
        return rows((dict(each.instructions), number) for each, number in its), rows(chains)

    several, phases = _in_several_phases(regions), range(1 + max(region.phase for region in regions))

    def sites_of(phase: int) -> _SiteRows:
        its = [(region, number) for region, number in zip(regions, once, strict=True) if region.phase == phase]
        return rows((Counter(site for site in region.sites if site in several), number) for region, number in its)

    return RegionSums(
        phases=[of_phase(phase) for phase in phases],
        sites=[sites_of(phase) for phase in phases],
        software=rows(zip((each.software for each in regions), always, strict=True)),
        software_chain=rows(zip((each.chain for each in regions), always, strict=True)),
        weights=np.array(weights).reshape(-1, 1 + len(counted)),
        counts=np.array([block for blocks in counted for block in blocks], np.int64)[:, np.newaxis] * at.BLOCKS_RUN.size
        + _COUNTS,
        starts=np.cumsum([0, *map(len, counted)])[:-1],
    )

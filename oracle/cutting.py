"""Dispatches that would take a software adapter long are cut to a part of their grid, by a rule, and said to be.

An adapter that is no GPU is given at most `MOST_FLOPS` floating-point operations, as the simulator has counted them:
the longest axis of the grid is halved until that is so. The simulator runs the same part, and what both leave is
compared whole. Kernels with outputs whose bits are free are held against a reference of it all, so they are not cut.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from .gpu import AdapterInfo
from .kernels.manifest import Case

MOST_FLOPS = 1 << 30
Grid = tuple[int, ...]


def cut(case: Case, run: Any, adapter: AdapterInfo) -> Case:
    """What of a case, whose simulated run this is, an adapter is given."""
    flops = int(run.counters["flops"])
    if adapter.kind != "CPU" or flops <= MOST_FLOPS or case.kernel.free or prod(run.grid) == 1:
        return case
    return replace(case, grid=halved(run.grid, prod(run.grid) * MOST_FLOPS // flops))


def words(case: Case, part: Case, adapter: AdapterInfo) -> str:
    """How a case was cut, for reports."""
    ran, of = (f"{prod(each.grid):,}" for each in (part, case))
    return (
        f"{adapter.name} ran {ran} of {of} workgroups, held against the same ones here: "
        f"a software adapter is given at most {MOST_FLOPS:,} floating-point operations"
    )


def halved(grid: Grid, most: int) -> Grid:
    """A grid of at most so many workgroups, or one: the longest axis halved again and again, at least once."""
    while True:
        longest = max(range(len(grid)), key=lambda axis: grid[axis])
        grid = tuple(-(-n // 2) if axis == longest else n for axis, n in enumerate(grid))
        if prod(grid) <= max(1, most):
            return grid

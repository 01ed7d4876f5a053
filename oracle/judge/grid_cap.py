"""Dispatches that would take a software adapter long are cut to a part of their grid, by a rule, and said to be.

An adapter that is no GPU is given at most `MOST_INSTRUCTIONS`, of all invocations and as the shader is written: the
simulator has counted them, and they tell better than FLOPs how long such an adapter takes. The longest axis of the grid
is halved until that is so. The simulator runs the same part, and what both leave is compared whole: outputs whose bits
are free too, within the bounds that the simulator derives, for a reference is of the whole.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

from ...sim.run.executed_instructions import by_class
from ..manifests.manifest import Case
from ..wgpu_client import AdapterInfo

if TYPE_CHECKING:
    from ...sim import Run

MOST_INSTRUCTIONS = 1 << 30
Grid = tuple[int, ...]


def cut(case: Case, run: Run, adapter: AdapterInfo) -> Case:
    """What of a case, whose simulated run this is, an adapter is given."""
    instructions = sum(lanes for _, lanes in by_class(run.instructions).values())
    if adapter.kind != "CPU" or instructions <= MOST_INSTRUCTIONS or prod(run.grid) == 1:
        return case
    return replace(case, grid=halved(run.grid, prod(run.grid) * MOST_INSTRUCTIONS // instructions))


def words(case: Case, part: Case, adapter: AdapterInfo) -> str:
    """How a case was cut, for reports."""
    ran, of = (f"{prod(each.grid):,}" for each in (part, case))
    return (
        f"{adapter.name} ran {ran} of {of} workgroups, compared with the same ones here: "
        f"a software adapter is given at most {MOST_INSTRUCTIONS:,} instructions"
    )


def halved(grid: Grid, most: int) -> Grid:
    """A grid of at most so many workgroups, or one: the longest axis halved again and again, at least once."""
    while True:
        longest = max(range(len(grid)), key=lambda axis: grid[axis])
        grid = tuple(-(-n // 2) if axis == longest else n for axis, n in enumerate(grid))
        if prod(grid) <= max(1, most):
            return grid

"""Limit what a software adapter runs: a long dispatch is cut to a part of its grid, and a note says so.

An adapter that is not a GPU executes at most `MOST_INSTRUCTIONS`, as counted by the simulator over all invocations;
they predict its time better than FLOPs do. The longest axis of the grid is halved until they fit. The simulator runs
the same part, and all outputs of both are compared. Outputs whose bits are free are compared within the bounds that the
simulator derives, because a reference covers only the whole grid.
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
    """Return the case with the part of its grid that an adapter should run. `run`: the case's simulated run."""
    instructions = sum(lanes for _, lanes in by_class(run.instructions).values())
    if adapter.kind != "CPU" or instructions <= MOST_INSTRUCTIONS or prod(run.grid) == 1:
        return case
    return replace(case, grid=halved(run.grid, prod(run.grid) * MOST_INSTRUCTIONS // instructions))


def words(case: Case, part: Case, adapter: AdapterInfo) -> str:
    """Describe how a case was cut, for reports."""
    ran, of = (f"{prod(each.grid):,}" for each in (part, case))
    return (
        f"{adapter.name} ran {ran} of {of} workgroups, compared with the same ones here: "
        f"a software adapter is given at most {MOST_INSTRUCTIONS:,} instructions"
    )


def halved(grid: Grid, most: int) -> Grid:
    """Halve the longest axis of a grid, at least once, until it has at most `most` workgroups, or one."""
    while True:
        longest = max(range(len(grid)), key=lambda axis: grid[axis])
        grid = tuple(-(-n // 2) if axis == longest else n for axis, n in enumerate(grid))
        if prod(grid) <= max(1, most):
            return grid

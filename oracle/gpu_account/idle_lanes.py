"""Who executes a region: the subgroups that issue it, their active lanes, and why the others are idle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen

Integers = NDArray[np.int64]


@frozen
class Shape:
    """The invocations of a workgroup, and those of a subgroup that is full."""

    lanes: int
    subgroup_size: int

    @property
    def subgroups(self) -> int:
        return -(-self.lanes // self.subgroup_size)

    def present(self, subgroup: Integers) -> Integers:
        """Return the invocations of each subgroup: all but the last are full."""
        return np.minimum(self.subgroup_size, self.lanes - subgroup * self.subgroup_size)


@frozen
class Passage:
    """An invocation's arrival at a place, for each of some arrivals: `path` tells which time it is.

    Invocations of one workgroup with one path arrive together. `stage` is the stage that they are in.
    """

    workgroup: Integers
    lane: Integers
    path: Integers
    stage: Integers


Begun = Mapping[tuple[int, int, int], int]  # stage, workgroup, subgroup -> invocations that began the stage


def begun(passage: Passage, shape: Shape) -> dict[tuple[int, int, int], int]:
    """Count the invocations of each subgroup that began each stage."""
    subgroup = passage.lane // shape.subgroup_size
    keys, counts = np.unique(np.column_stack([passage.stage, passage.workgroup, subgroup]), axis=0, return_counts=True)
    return {(k, w, s): count for (k, w, s), count in zip(keys.tolist(), counts.tolist(), strict=True)}


def executions(passage: Passage, shape: Shape, stages: Begun) -> dict[str, int]:
    """Count the executions of a region by subgroups, its active lanes, and its idle lanes by cause."""
    subgroup = passage.lane // shape.subgroup_size
    order = np.lexsort((subgroup, passage.path, passage.workgroup))
    arrivals = np.column_stack([passage.workgroup, passage.path, subgroup])[order]
    changes = np.ones((len(arrivals), 3), np.bool_)
    changes[1:] = arrivals[1:] != arrivals[:-1]
    visits = int(changes[:, :2].any(axis=1).sum())  # of workgroups
    first = changes.any(axis=1)  # of the lanes of each execution
    where = np.column_stack([passage.stage[order], arrivals[:, 0], arrivals[:, 2]])[first].tolist()
    admitted = sum(stages[stage, workgroup, number] for stage, workgroup, number in where)
    present = int(shape.present(arrivals[first, 2]).sum())
    issued, active = len(where), len(arrivals)
    return {
        "executions": issued,
        "active_lanes": active,
        "idle_guard": present - admitted,
        "idle_overhang": issued * shape.subgroup_size - present,
        "idle_divergence": admitted - active,
        "idle_skipped": visits * shape.lanes - present,
        "visits": visits,
    }

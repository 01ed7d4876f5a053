"""Map the positions and errors of an output's rejected elements in a few patches, for reports."""

from __future__ import annotations

from bisect import bisect_right
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen

MOST_ROWS, MOST_COLUMNS = 32, 64  # of patches
HEATS = 4


@frozen
class Patch:
    """A part of the matrix with `count` rejected elements: half-open ranges of rows and columns.

    `worst`: the largest measure among them; infinite where one is NaN or infinite, and then `heat` is 0. Other heats
    are 1 to `HEATS`.
    """

    place: tuple[int, int]  # row and column in the map
    rows: tuple[int, int]
    columns: tuple[int, int]
    count: int
    worst: float
    heat: int


@frozen
class MismatchMap:
    """An array as a matrix whose columns are its last axis, cut into patches of `step` rows and columns, which are
    powers of two, as tiles are. `patches`: those with rejected elements. `measure`: the unit of `Patch.worst`;
    `limits`: the measures at which heats 1, 2 and so on begin."""

    shape: tuple[int, int]
    step: tuple[int, int]
    patches: tuple[Patch, ...]
    measure: str
    limits: tuple[float, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Patches down and across."""
        return -(-self.shape[0] // self.step[0]), -(-self.shape[1] // self.step[1])


def mismatch_map(rejected: NDArray[np.bool_], measure: NDArray[Any], unit: str) -> MismatchMap:
    """Map the rejected elements; `measure` gives how far off each element is, in `unit`."""
    columns = rejected.shape[-1] if rejected.ndim > 1 else rejected.size
    wrong = rejected.reshape(-1, columns)
    off = np.where(wrong, np.where(np.isnan(measure.reshape(wrong.shape)), np.inf, measure.reshape(wrong.shape)), 0.0)
    step = _step(wrong.shape[0], MOST_ROWS), _step(columns, MOST_COLUMNS)
    starts = [np.arange(0, size, by) for size, by in zip(wrong.shape, step, strict=True)]
    counts = np.add.reduceat(np.add.reduceat(wrong.astype(np.int64), starts[0], axis=0), starts[1], axis=1)
    worst = np.maximum.reduceat(np.maximum.reduceat(off, starts[0], axis=0), starts[1], axis=1)
    limits = _limits(worst[np.isfinite(worst) & (worst > 0)])
    patches: list[Patch] = []
    for i, j in np.argwhere(counts).tolist():
        rows = i * step[0], min((i + 1) * step[0], wrong.shape[0])
        across = j * step[1], min((j + 1) * step[1], columns)
        most = float(worst[i, j])
        heat = bisect_right(limits[1:], most) + 1 if isfinite(most) else 0
        patches.append(Patch((i, j), rows, across, int(counts[i, j]), most, heat))
    return MismatchMap((wrong.shape[0], columns), step, tuple(patches), unit, limits)


def _step(size: int, most: int) -> int:
    """Return the smallest power of two that divides `size` into at most `most` parts."""
    return 1 << max(0, -(-size // most) - 1).bit_length()


def _limits(worst: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the measures at which heats begin, in a geometric series."""
    if not worst.size:
        return ()
    least, most = float(worst.min()), float(worst.max())
    return tuple(np.geomspace(least, most, HEATS + 1)[:HEATS].tolist()) if most > least else (least,)

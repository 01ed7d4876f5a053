"""Where the rejected elements of an output lie, and how far off they are: a picture of a few patches, for reports."""

from __future__ import annotations

import numpy as np

from ...sim.fast_dataclass import frozen

MOST_ROWS, MOST_COLUMNS = 32, 64  # of patches
HEATS = 4


@frozen
class Patch:
    """A part of the matrix, `count` of whose elements are rejected: from a row and a column to another, exclusive.

    `worst`: the largest measure of those; infinite where one is not a number, or infinite, and then `heat` is 0. Other
    heats are 1 to `HEATS`.
    """

    place: tuple[int, int]  # in the picture
    rows: tuple[int, int]
    columns: tuple[int, int]
    count: int
    worst: float
    heat: int


@frozen
class MismatchMap:
    """An array seen as a matrix whose columns are its last axis, cut into patches of `step` rows and columns (powers
    of two, as tiles are). `patches`: those with rejected elements. `measure`: what `Patch.worst` counts; `limits`: from
    which measure on a patch is as hot as 1, 2, and so on."""

    shape: tuple[int, int]
    step: tuple[int, int]
    patches: tuple[Patch, ...]
    measure: str
    limits: tuple[float, ...]

    @property
    def size(self) -> tuple[int, int]:
        """Patches down and across."""
        return -(-self.shape[0] // self.step[0]), -(-self.shape[1] // self.step[1])


def spread(rejected: np.ndarray, measure: np.ndarray, words: str) -> MismatchMap:
    """Of the rejected elements; `measure` says of each how far off it is, in units that `words` names."""
    columns = rejected.shape[-1] if rejected.ndim > 1 else rejected.size
    wrong = rejected.reshape(-1, columns)
    off = np.where(wrong, np.where(np.isnan(measure.reshape(wrong.shape)), np.inf, measure.reshape(wrong.shape)), 0.0)
    step = _step(wrong.shape[0], MOST_ROWS), _step(columns, MOST_COLUMNS)
    starts = [np.arange(0, size, by) for size, by in zip(wrong.shape, step, strict=True)]
    counts = np.add.reduceat(np.add.reduceat(wrong.astype(np.int64), starts[0], axis=0), starts[1], axis=1)
    worst = np.maximum.reduceat(np.maximum.reduceat(off, starts[0], axis=0), starts[1], axis=1)
    limits = _limits(worst[(counts > 0) & np.isfinite(worst) & (worst > 0)])
    patches = []
    for i, j in np.argwhere(counts).tolist():
        rows = i * step[0], min((i + 1) * step[0], wrong.shape[0])
        across = j * step[1], min((j + 1) * step[1], columns)
        heat = int(np.searchsorted(limits[1:], worst[i, j], side="right")) + 1 if np.isfinite(worst[i, j]) else 0
        patches.append(Patch((i, j), rows, across, int(counts[i, j]), float(worst[i, j]), heat))
    return MismatchMap((wrong.shape[0], columns), step, tuple(patches), words, limits)


def _step(size: int, most: int) -> int:
    """The smallest power of two that cuts `size` into at most so many."""
    return 1 << max(0, -(-size // most) - 1).bit_length()


def _limits(worst: np.ndarray) -> tuple[float, ...]:
    """Where the heats of some measures begin, each as much larger than the one before."""
    if not worst.size:
        return ()
    least, most = float(worst.min()), float(worst.max())
    return tuple(np.geomspace(least, most, HEATS + 1)[:HEATS].tolist()) if most > least else (least,)

"""Causes that other shapes reveal, or the position of the wrong elements: errors at a tail only, or where two dims
differ."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from ..manifests.dimension_arithmetic import names_in
from .mismatch import Mismatch

STEPS = (64, 256)  # multiples at which no tile, and no block of packed weights, has a tail
NARROW = 4  # a band at the edge is at most this part of an axis


def tail(m: Mismatch) -> str | None:
    """Only what lies at the end of an axis is wrong; or nothing, where a dim is a whole number of tiles."""
    return _band(m) or _whole_tiles(m)


def _band(m: Mismatch) -> str | None:
    wrong = m.wrong.reshape(m.matrix)
    for axis, what in ((1, "column"), (0, "row")):
        size = m.matrix[axis]
        places = np.flatnonzero(wrong.any(axis=1 - axis))
        band = size - int(places[0])
        if places[-1] == size - 1 and band * NARROW <= size:
            return f"all of {m.those} lie in the last {what if band == 1 else f'{band} {what}s'}"
    return None


def _whole_tiles(m: Mismatch) -> str | None:
    dims = m.case.shape.dims
    for name, size in _sizes(m).items():
        for step in STEPS:
            whole = -(-size // step) * step
            while whole in dims.values() and whole != size:
                whole += step  # equal dims hide other faults
            if whole != size and m.right_at({**dims, name: whole}):
                return f"with {name} = {whole} instead of {size}, all elements agree"
    return None


def equal_dims(m: Mismatch) -> str | None:
    """Nothing is wrong where two dims are equal."""
    dims = m.case.shape.dims
    for small, large in permutations(_sizes(m), 2):  # a smaller shape would hide other faults
        if dims[small] < dims[large] and m.right_at({**dims, small: dims[large]}):
            return f"with {small} = {dims[large]}, like {large}, instead of {dims[small]}, all elements agree"
    return None


def _sizes(m: Mismatch) -> dict[str, int]:
    """The dims that some array's shape or the grid is made of; others may be switches, or places to begin at."""
    kernel = m.case.kernel
    made = {*kernel.dispatch, *(size for binding in kernel.bindings for size in binding.shape or ())}
    names = {name for expression in made for name in names_in(expression)}
    return {name: size for name, size in m.case.shape.dims.items() if name in names}


def unwritten(m: Mismatch) -> str | None:
    """What is wrong holds what it held before."""
    return f"{m.those} hold what they held before the run" if m.kept else None

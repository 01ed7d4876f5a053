"""Causes found by running other shapes, or from the positions of the wrong elements: errors in tails only, or only
where two dims differ."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from ..manifests.dimension_arithmetic import names_in
from .mismatch import Mismatch

STEPS = (64, 256)  # at multiples of these, neither tiles nor blocks of packed weights have tails
NARROW = 4  # a band at the edge is at most this part of an axis


def tail(m: Mismatch) -> str | None:
    """Detect that only the end of an axis is wrong, or that all agrees where a dim is a whole number of tiles."""
    return _band(m) or _whole_tiles(m)


def _band(m: Mismatch) -> str | None:
    wrong = m.wrong.reshape(m.matrix)
    for axis, what in ((1, "column"), (0, "row")):
        size = m.matrix[axis]
        places = np.flatnonzero(wrong.any(axis=1 - axis))
        band = size - int(places[0])
        if places[-1] == size - 1 and band * NARROW <= size:
            return f"all of {m.wrong_elements} lie in the last {what if band == 1 else f'{band} {what}s'}"
    return None


def _whole_tiles(m: Mismatch) -> str | None:
    dims = m.case.shape.dims
    for name, size in _sizes(m).items():
        for step in STEPS:
            whole = -(-size // step) * step
            while whole in dims.values() and whole != size:
                whole += step  # equal dims hide other faults
            if whole != size and m.agrees_at({**dims, name: whole}):
                return f"with {name} = {whole} instead of {size}, all elements agree"
    return None


def equal_dims(m: Mismatch) -> str | None:
    """Detect that all elements agree where two dims are equal."""
    dims = m.case.shape.dims
    for small, large in permutations(_sizes(m), 2):  # a smaller shape would hide other faults
        if dims[small] < dims[large] and m.agrees_at({**dims, small: dims[large]}):
            return f"with {small} = {dims[large]}, like {large}, instead of {dims[small]}, all elements agree"
    return None


def _sizes(m: Mismatch) -> dict[str, int]:
    """Return the dims that shapes of arrays or the grid depend on; others may be switches or offsets."""
    kernel = m.case.kernel
    made = {*kernel.dispatch, *(size for binding in kernel.bindings for size in binding.shape or ())}
    names = {name for expression in made for name in names_in(expression)}
    return {name: size for name, size in m.case.shape.dims.items() if name in names}


def unwritten(m: Mismatch) -> str | None:
    """Detect that the wrong elements were not written."""
    return f"{m.wrong_elements} are unchanged by the run" if m.left_unchanged else None

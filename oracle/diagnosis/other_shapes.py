"""Causes found by running other shapes, or from the positions of the wrong elements: errors in tails only, or only
where two dims differ."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np

from ..manifests.dimension_arithmetic import names_in
from .mismatch import Mismatch

STEPS = (64, 256)  # at multiples of these, neither tiles nor blocks of packed weights have tails
MOST_WRITERS = 4096  # wrong elements whose writers are looked up
NARROW = 4  # a band at the edge is at most this part of an axis


def small_grid(m: Mismatch) -> str | None:
    """Detect that no invocation wrote the wrong elements, and that all elements agree with a larger grid."""
    if not m.left_unchanged or _written(m):
        return None
    x, y, z = (*m.case.grid, 1, 1)[:3]
    for grid in ((x + 1, y, z), (x, y + 1, z), (x, y, z + 1), (x + 1, y + 1, z)):
        if m.agrees(m.rerun_output(case=replace(m.case, grid=grid))):
            was, wanted = (" x ".join(map(str, each)) for each in ((x, y, z), grid))
            return f"no invocation wrote {m.wrong_elements}; with a grid of {wanted}, not {was}, {m.all_elements_agree}"
    return None


def _written(m: Mismatch) -> bool:
    """Whether an invocation wrote one of the wrong elements, of which `MOST_WRITERS` are looked at."""
    places = np.flatnonzero(m.wrong)
    some = places[:: -(-len(places) // MOST_WRITERS)].tolist()
    return any(m.run.writer(m.var, place) is not None for place in some)


def tail(m: Mismatch) -> str | None:
    """Detect that all elements agree where a dim is a whole number of tiles."""
    whole = _whole_tiles(m)
    band = _band(m) if whole else None
    return f"{whole}; {band}" if band else whole


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
    if not m.left_unchanged:
        return None
    nowhere = "" if _written(m) else "; no invocation wrote them"
    band = None if m.same is not None else _band(m)
    return f"{m.wrong_elements} are unchanged by the run{nowhere}{f'; {band}' if band else ''}"

"""Other values for a buffer, so that data that are all equal hide nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..wgsl import types as t
from .binding import DTYPES, Bound
from .texture_arrays import BoundTexture

_PERIOD = 251  # elements after which what is added repeats: a prime, so that no row of a matrix equals the next


def vary(bound: Bound) -> Bound:
    """Return the binding with something else added to each of its numbers; the same if they are not of one type."""
    kinds = frozenset[str]() if isinstance(bound, BoundTexture) else _scalars(bound.type)
    dtype = DTYPES.get(next(iter(kinds))) if len(kinds) == 1 else None
    if dtype is None:
        return bound
    data = bound.data.copy()
    whole = len(data) - len(data) % np.dtype(dtype).itemsize
    numbers = data[:whole].view(dtype)
    added = 1 + np.arange(_PERIOD)
    added = (added / 256).astype(dtype) if numbers.dtype.kind == "f" else added.astype(dtype)
    rows = numbers[: numbers.size - numbers.size % _PERIOD].reshape(-1, _PERIOD)
    with np.errstate(all="ignore"):
        rows += added
        numbers[rows.size :] += added[: numbers.size - rows.size]
    return replace(bound, data=data)


def _scalars(type_: t.Type) -> frozenset[str]:
    """Return the names of the scalar types that a type consists of; atomics have none that may vary."""
    match type_:
        case t.Scalar(name=name):
            return frozenset((name,))
        case t.Vec(elem=elem) | t.Mat(elem=elem) | t.Array(elem=elem):
            return _scalars(elem)
        case t.Struct(members=members):
            return frozenset[str]().union(*(_scalars(member.type) for member in members))
        case _:
            return frozenset(("other",))

"""Counterexamples of an expectation: each element off by its own size.

A rule checks an element only if it rejects a result that is plainly wrong there. The wrong result is the expectation
off by its own size, so that it is doubled: a rule that accepts this accepts a zero, too. An element's size is its
magnitude, or that of a typical element, whichever is larger: rounding errors of an element that cancels to almost 0 are
those of its terms, so honest tolerances and bounds of such elements are far above their magnitudes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .bits import Array

_SAMPLE = 1 << 16  # elements that decide what is typical
_NO_SCALE = 1.0  # the size of zeros, where nothing else is expected


def scale_of(expected: Array) -> float:
    """Return the median magnitude of the elements that are finite and not 0; of a sample of them, if there are many.
    The median, because one huge element must not excuse errors of all others."""
    flat = expected.ravel()
    sizes = _sizes(flat if flat.size <= _SAMPLE else flat[_places(flat.size)])
    if not sizes.size and flat.size > _SAMPLE:
        sizes = _sizes(flat[np.flatnonzero(flat)[:_SAMPLE]])
    return float(np.median(sizes)) if sizes.size else _NO_SCALE


def _places(size: int) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, size, _SAMPLE)


def _sizes(values: Array) -> NDArray[np.float64]:
    sizes = np.abs(values.astype(np.float64))
    return sizes[np.isfinite(sizes) & (sizes > 0)]


def own_sizes(expected: Array, scale: float) -> NDArray[np.float64]:
    """Return how far off each counterexample is: infinite for a NaN, so that a rule without a bound accepts it."""
    sizes = np.maximum(np.abs(expected.astype(np.float64)), scale)
    sizes[np.isnan(sizes)] = np.inf
    return sizes


def doubled(expected: Array, dtype: np.dtype[Any], scale: float) -> Array:
    """Return the counterexamples in `dtype`; where doubling overflows, the half or, of infinities and integers, 0."""
    exact = expected.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        wrong = exact + np.copysign(own_sizes(exact, scale), exact)
        if dtype.kind != "f":
            limits = np.iinfo(dtype)
            return np.where((wrong >= limits.min) & (wrong <= limits.max), wrong, 0.0).astype(dtype)
        made, half = wrong.astype(dtype), np.where(np.isinf(exact), 0.0, exact / 2).astype(dtype)
    return np.where(np.isfinite(made), made, np.where(np.isnan(exact), dtype.type(0), half))

"""Causes found in the output alone: the expected elements are in other positions, or multiplied by a factor."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..comparison.bits import Array
from .mismatch import MOST, Mismatch

NEARLY = 2.0**-10  # largest deviation from a common factor, relative to the largest element of a row
FEW = 4  # with at most this many elements, a common factor proves nothing

# A description, and for each element the flat indices that it may come from; -1: none.
Mapped = tuple[str, list[Array]]


def transposed(m: Mismatch) -> str | None:
    """Detect that the output is stored as its transpose."""
    rows, columns = m.matrix
    at = np.arange(m.ours.size)
    if min(rows, columns) == 1:
        return None
    return _first(m, iter([(f"the transpose of the {rows} x {columns} matrix", [at % rows * columns + at // rows])]))


def wrong_stride(m: Mismatch) -> str | None:
    """Detect that the distance of rows is another dim than the number of columns."""
    return _first(m, _strides(m))


def _strides(m: Mismatch) -> Iterator[Mapped]:
    rows, columns = m.matrix
    at = np.arange(m.ours.size)
    for name, stride in m.case.shape.dims.items():
        if stride in (0, columns) or rows == 1:
            continue
        sources: list[Array] = []
        for back in range(-(-columns // stride)):  # rows overlap where they are stored too close
            row, column = at // stride - back, at % stride + back * stride
            inside = (row >= 0) & (row < rows) & (column < columns)
            sources.append(np.where(inside, row * columns + column, -1))
        yield f"those expected if rows are {name} = {stride} apart instead of {columns}", sources


def shifted(m: Mismatch) -> str | None:
    """Detect that all elements are stored a few elements, or a row, too far or too early."""
    return _first(m, _shifts(m))


def _shifts(m: Mismatch) -> Iterator[Mapped]:
    rows, columns = m.matrix
    at = np.arange(m.ours.size)
    row = {columns: "a row", -columns: "a row"} if rows > 1 else {}
    for by, words in {**{by: "" for n in (1, 2, 3, 4) for by in (n, -n)}, **row}.items():
        source = at - by
        inside = (source >= 0) & (source < m.ours.size)
        how = words or ("an element" if abs(by) == 1 else f"{abs(by)} elements")
        yield f"those expected {how} {'before' if by > 0 else 'after'}", [np.where(inside, source, -1)]


def _first(m: Mismatch, mapped: Iterator[Mapped]) -> str | None:
    """Describe the first mapping by which most of the wrong elements are the expected ones of other positions."""
    wrong = m.wrong.ravel()
    count = np.count_nonzero(wrong)
    for words, sources in mapped:
        right, known = np.zeros(wrong.shape, bool), np.zeros(wrong.shape, bool)
        for source in sources:
            known |= source >= 0
            right |= (source >= 0) & m.equals_element(source)
        covered = np.count_nonzero(known & wrong)
        if 2 * covered >= count and np.count_nonzero(right & wrong) >= MOST * covered > 0:
            return f"{np.count_nonzero(right & wrong):,} of {m.wrong_elements} are {words}"
    return None


def wrong_factor(m: Mismatch) -> str | None:
    """Detect that all elements, or those of each row or column, are the expected ones times one number."""
    ours, expected = (array.reshape(m.matrix).astype(np.float64) for array in (m.ours, m.expected))
    if not (np.isfinite(ours).all() and np.isfinite(expected).all()):
        return None
    for what, shape in (("all", (1, -1)), ("each row", m.matrix), ("each column", m.matrix[::-1])):
        turned = what == "each column"
        groups = [(array.T if turned else array).reshape(shape) for array in (ours, expected)]
        factors = _factors(*groups)
        if factors is not None:
            if not m.ours.any():
                return "all elements are 0"
            whole = "all elements are the expected ones times one number"
            words = whole if what == "all" else f"{what} is the expected one times its own number"
            return f"{words}, {factors[0]:.6g} for the first element"
    return None


def _factors(ours: Array, expected: Array) -> Array | None:
    """Return the factor of each row; None where some row has none, or all are 1."""
    if ours.shape[1] <= FEW:
        return None
    largest = np.abs(expected).argmax(axis=1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        factors = np.take_along_axis(ours, largest, axis=1) / np.take_along_axis(expected, largest, axis=1)
        off = np.abs(ours - factors * expected) > NEARLY * np.abs(ours).max(axis=1, keepdims=True)
    if not np.isfinite(factors).all() or off.any() or (np.abs(factors - 1) <= NEARLY).all():
        return None
    return factors[:, 0]

"""Find the elements that a comparison checks: those where the rule rejects at least something."""

from __future__ import annotations

import numpy as np

from .bits import Array, Mask, bits_of
from .counterexamples import scale_of
from .rules import PART, Pair, Rule, parts_of


def unchecked_elements(pair: Pair, rule: Rule, initial: Array | None) -> Mask | None:
    """True for each element that could not fail; None where each could.

    The rule accepts the element off by its own size (see `counterexamples`); or a NaN is expected where the buffer
    holds one from the start; or the rule accepts the untouched buffer, so that it shows none of the changes that are
    expected.
    """
    row = rule.row
    if row.bitwise:
        return None
    scale = scale_of(pair.expected)
    unchecked = np.zeros(pair.actual.shape, bool)
    flat, untouched = unchecked.ravel(), None if initial is None else Pair(initial, pair.expected, pair.bound)
    for elements in parts(pair, row.whole):
        flat[elements] = ~row.could_fail(pair.part(elements), rule.limits, scale)
        if untouched is not None:
            part = untouched.part(elements)
            flat[elements] |= _nan(part) & part.bits_differ
    if untouched is not None and _accepts(untouched, rule):
        for elements in parts(pair, whole=False):
            flat[elements] |= untouched.part(elements).bits_differ
    return unchecked if unchecked.any() else None


def parts(pair: Pair, whole: bool) -> list[slice]:
    """Slices of all elements, one if `whole`."""
    return parts_of(pair.actual.size, max(1, pair.actual.size) if whole else PART)


def kept_nan(part: Pair, initial: Array) -> Mask | None:
    """True for each NaN that must stay as it was, bit for bit, and has not; None where there is none."""
    untouched = Pair(initial, part.expected, None)
    nan = _nan(untouched)
    if not np.any(nan):
        return None
    return nan & ~untouched.bits_differ & (bits_of(part.actual) != bits_of(initial))


def _nan(untouched: Pair) -> Mask | np.bool_:
    """True for each element that is expected to be NaN, and is from the start."""
    before, after = untouched.actual, untouched.expected
    if before.dtype.kind == after.dtype.kind == "f":
        return np.isnan(before) & np.isnan(after)
    return np.False_


def _accepts(untouched: Pair, rule: Rule) -> bool:
    return not any(
        rule.row.judge(untouched.part(elements), rule.limits).rejected.any()
        for elements in parts(untouched, rule.row.whole)
    )

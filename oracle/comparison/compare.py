"""Compare two arrays by an output rule, and describe the elements that it rejects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from .bits import NO_ULP, Array, Mask, bits_of
from .checked_elements import kept_nan, parts, unchecked_elements
from .mismatch_map import MismatchMap, mismatch_map
from .rules import EXACT, Judgement, Limits, OutputRule, Pair, Rule, share_used

Index = tuple[int, ...]
Owner = Callable[[Index], str | None]  # who wrote an element, where known


@frozen
class Difference:
    """One rejected element. Bits are hexadecimal; `ulp` is None between a NaN and a number. `owner`: who wrote it,
    where known; `expected_bits` is `none` where the dtype lacks the value. `bound`: the largest |error| that it may
    have, and `used`: the share of it that the error takes, where a bound was derived."""

    index: Index
    actual: float | int
    expected: float | int
    actual_bits: str
    expected_bits: str
    ulp: int | None
    owner: str | None = None
    bound: float | None = None
    used: float | None = None

    @property
    def is_float(self) -> bool:
        return isinstance(self.actual, float)

    @property
    def numbers(self) -> tuple[str, str]:
        """`actual` and `expected`: integers in full, floats in the nine digits that distinguish any two."""
        if self.is_float:
            return f"{self.actual:.9g}", f"{self.expected:.9g}"
        if not float(self.expected).is_integer():
            return str(self.actual), f"{self.expected:.9g}"
        return str(self.actual), str(int(self.expected))


@frozen
class Comparison:
    """The verdict on an array. `score` is the rule's own `measure`, and passes up to `limit`. `worst`: some rejected
    elements, the worst first. `unbounded`: how many elements pass whatever they hold, as the rule has no finite bound
    for them. `mismatch_map`: where the rejected elements lie. `unchecked`: True for each element on which the rule
    accepts every counterexample, see `counterexamples`; None where there is none. `bitwise`: bits were compared.
    `expects_change`: some element is expected to differ from what the output held before the run."""

    rule: Rule
    ok: bool
    elements: int
    mismatches: int
    score: float
    limit: float
    measure: str
    max_abs: float
    max_ulp: int | None
    worst: tuple[Difference, ...]
    unbounded: int
    mismatch_map: MismatchMap | None
    unchecked: Mask | None
    bitwise: bool
    expects_change: bool

    @property
    def unchecked_count(self) -> int:
        return 0 if self.unchecked is None else int(np.count_nonzero(self.unchecked))

    @property
    def vacuous(self) -> bool:
        """Whether there are elements, and the comparison could not fail for any of them."""
        return 0 < self.elements == self.unchecked_count

    def without(self, elements: Mask) -> Comparison:
        """Return a copy in which these elements are unchecked, too."""
        more = elements if self.unchecked is None else self.unchecked | elements
        return replace(self, unchecked=more) if more.any() else self

    @property
    def share(self) -> float:
        """Rejected elements / all elements."""
        return self.mismatches / self.elements if self.elements else 0.0


def compare(
    actual: Array,
    expected: Array,
    rule: Rule = EXACT,
    *,
    bound: Array | None = None,
    initial: Array | None = None,
    owner: Owner | None = None,
    worst: int = 5,
) -> Comparison:
    """Judge `actual` by `rule`. `initial`: what the output held before the run, where known. Raises `UsageError` where
    shapes differ or the rule lacks what it needs."""
    if actual.shape != expected.shape:
        raise UsageError(f"shapes differ: {list(actual.shape)} against {list(expected.shape)}")
    rule.row.check(rule.limits)
    pair = Pair(actual, expected, bound)
    before = None if initial is None else initial.reshape(actual.shape)
    judged, max_abs, max_ulp = _judge_by_parts(pair, rule.row, rule.limits, before)
    count = int(np.count_nonzero(judged.rejected))
    differences, where = _describe(pair, rule.row, judged.rejected, worst, owner) if count else ((), None)
    return Comparison(
        rule=rule,
        ok=count == 0,
        elements=actual.size,
        mismatches=count,
        score=judged.score,
        limit=judged.limit,
        measure=rule.row.measure,
        max_abs=max_abs,
        max_ulp=_finite(max_ulp),
        worst=differences,
        unbounded=int(np.count_nonzero(np.isinf(bound))) if bound is not None and rule.row.bounded else 0,
        mismatch_map=where,
        unchecked=unchecked_elements(pair, rule, before),
        bitwise=rule.row.bitwise and not pair.by_value,
        expects_change=before is None or _differs(Pair(before, expected, None)),
    )


def _differs(pair: Pair) -> bool:
    """Whether the bits of any element differ. Ends with the first part that has one."""
    return any(pair.part(elements).bits_differ.any() for elements in parts(pair, whole=False))


def changed(actual: Array, initial: Array) -> Mask:
    """True for each element whose bits differ from those before the run."""
    return bits_of(actual) != bits_of(initial.reshape(actual.shape))


def rejected(actual: Array, expected: Array, rule: Rule, bound: Array | None = None) -> Mask:
    """True for each element that `rule` rejects; shapes are equal."""
    return rule.row.judge(Pair(actual, expected, bound), rule.limits).rejected


def _judge_by_parts(pair: Pair, row: OutputRule, limits: Limits, initial: Array | None) -> tuple[Judgement, float, int]:
    """The judgement, the largest |error| and the largest distance in ULP. Parts that stay in caches make this ten times
    faster for arrays of millions."""
    all_rejected, scores, limit, max_abs, max_ulp = np.zeros(pair.actual.size, bool), [0.0], 0.0, 0.0, 0
    for elements in parts(pair, row.whole):
        part = pair.part(elements)
        judged = row.judge(part, limits)
        all_rejected[elements], limit = judged.rejected, judged.limit
        scores.append(judged.score)
        if initial is not None and (wrong := kept_nan(part, initial.ravel()[elements])) is not None:
            all_rejected[elements] |= wrong
        if part.identical:
            continue
        max_abs = float(part.error.max(initial=max_abs))
        max_ulp = int(part.distance.max(initial=max_ulp))
    score = scores[-1] if row.whole else row.combine(scores)
    return Judgement(all_rejected.reshape(pair.actual.shape), score, limit), max_abs, max_ulp


def _describe(
    pair: Pair, row: OutputRule, rejected: Mask, worst: int, owner: Owner | None
) -> tuple[tuple[Difference, ...], MismatchMap]:
    """The worst rejected elements, and a map of all of them."""
    ulp, measure, unit = pair.distance, pair.error, "off by"
    if pair.bound is not None:
        measure, unit = share_used(pair.error, pair.bound), "times the bound"
    elif row.in_ulp:
        measure, unit = np.where(ulp == NO_ULP, np.inf, ulp), "ULP"
    order = _worst(rejected, measure, worst)
    return tuple(_difference(pair, ulp, index, owner) for index in order), mismatch_map(rejected, measure, unit)


def _worst(rejected: Mask, measure: Array, count: int) -> list[Index]:
    """Indices of the `count` rejected elements with the largest measure; ties in memory order."""
    places = np.flatnonzero(rejected)
    order = np.argsort(-measure.ravel()[places], kind="stable")[:count]
    indices = np.stack(np.unravel_index(places[order], rejected.shape), axis=-1)
    return [tuple(index) for index in indices.tolist()]


def _difference(pair: Pair, ulp: Array, index: Index, owner: Owner | None) -> Difference:
    width = 2 * pair.actual.dtype.itemsize
    unheld = pair.by_value and bool(pair.rounded[index].astype(np.float64) != pair.expected[index])
    return Difference(
        index=index,
        actual=pair.actual[index].item(),
        expected=pair.expected[index].item(),
        actual_bits=f"0x{int(bits_of(pair.actual)[index]):0{width}x}",
        expected_bits="none" if unheld else f"0x{int(bits_of(pair.rounded)[index]):0{width}x}",
        ulp=_finite(int(ulp[index])),
        owner=owner(index) if owner else None,
        bound=None if pair.bound is None else float(pair.bound[index]),
        used=None if pair.bound is None else float(share_used(pair.error[index], pair.bound[index])),
    )


def _finite(ulp: int) -> int | None:
    return None if ulp == NO_ULP else ulp

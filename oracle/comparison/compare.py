"""Whether two arrays agree, by a named rule, and where they do not.

A rule is one row of `RULES`: which limits it takes, and which elements of `actual` it rejects. `expected` is of the
same dtype, or float64 truth. Bits decide `exact`: equal NaNs are equal, 0.0 and -0.0 are not. `bound` holds elements
against an error that a reference derives, `derived` against the one that the simulator derives from the accuracy table
of the specification (`bankshot.Run.bounds`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from ...sim.fast_dataclass import frozen
from ..errors import UsageError
from .mismatch_map import MismatchMap, spread

# Relative and absolute tolerance by dtype, as torch.testing.assert_close has them.
CLOSE_DEFAULTS = {"float16": (1e-3, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7)}

_PIECE = 1 << 16  # elements that are looked at together
NO_ULP = np.iinfo(np.int64).max  # between a NaN and a number


@frozen
class Rule:
    """A row of `RULES` by name, with its limits: `Rule("ulp", {"max": 2})`."""

    name: str
    limits: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key} {value:g}" for key, value in self.limits.items())])


EXACT = Rule("exact")
DERIVED = Rule("derived")


@frozen
class Difference:
    """One element that two arrays do not agree on. Bits are hexadecimal. `owner` says who wrote it, where known.
    `bound` is the error that it may have and `used` the error it has, as a share of that, where a bound was derived."""

    index: tuple[int, ...]
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
        """`actual` and `expected`, in as many digits as tell floats apart; of whole numbers, all."""
        if self.is_float or not float(self.expected).is_integer():
            return f"{self.actual:.9g}", f"{self.expected:.9g}"
        return str(self.actual), str(int(self.expected))


@frozen
class Comparison:
    """The verdict. `score` is the rule's own measure, to be held against `limit`; `worst` the worst elements first.

    `unbounded` elements pass whatever they hold, as the rule has no finite bound for them. `spread` is of those that do
    not pass."""

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
    unbounded: int = 0
    spread: MismatchMap | None = None

    @property
    def vacuous(self) -> bool:
        """Whether no element could have been rejected: there are some, and none has a bound."""
        return 0 < self.elements == self.unbounded

    @property
    def share(self) -> float:
        """Mismatching elements / all elements."""
        return self.mismatches / self.elements if self.elements else 0.0


@frozen
class Pair:
    """What a rule looks at. `bound` is the largest error that each element may have, where one was derived: by a
    reference, or by the simulator."""

    actual: np.ndarray
    expected: np.ndarray
    bound: np.ndarray | None
    limits: Mapping[str, float]

    def piece(self, part: slice) -> Pair:
        """A part of the elements, in memory order."""
        bound = None if self.bound is None else self.bound.reshape(-1)[part]
        return Pair(self.actual.reshape(-1)[part], self.expected.reshape(-1)[part], bound, self.limits)

    @cached_property
    def rounded(self) -> np.ndarray:
        """`expected` in the dtype of `actual`."""
        with np.errstate(over="ignore"):
            return self.expected.astype(self.actual.dtype, copy=False)

    @cached_property
    def other_bits(self) -> np.ndarray:
        """Which elements differ from `rounded` in their bits."""
        return bits_of(self.actual) != bits_of(self.rounded)

    @property
    def same(self) -> bool:
        """Whether both are the same bits, of which neither error nor distance is to be looked for: they are 0."""
        return self.actual.dtype == self.expected.dtype and not self.other_bits.any()

    @cached_property
    def error(self) -> np.ndarray:
        """|actual - expected| in float64: 0 where both are the same infinity or both NaN, infinite where one is."""
        a, b = self.actual.astype(np.float64), self.expected.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            error = np.abs(np.subtract(a, b, out=a), out=a)
        if np.isnan(error.max(initial=0.0)):
            poisoned = np.isnan(error)
            a, b = self.actual[poisoned].astype(np.float64), b[poisoned]
            error[poisoned] = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.inf)
        return error


Judgement = tuple[np.ndarray, float, float]  # rejected elements, score, limit


@frozen
class RuleRow:
    """`limits` are the names it takes; `measure` says what its score is. `gather` makes the score of an array from
    those of its pieces; None: the rule is of whole arrays. `bounded`: elements are held against bounds."""

    limits: tuple[str, ...]
    measure: str
    judge: Callable[[Pair], Judgement]
    gather: Callable[[Iterable[float]], float] | None
    bounded: bool = False


def _exact(pair: Pair) -> Judgement:
    return pair.other_bits, float(np.count_nonzero(pair.other_bits)), 0.0


def _ulp(pair: Pair) -> Judgement:
    distance, limit = ulp_distance(pair.actual, pair.rounded), pair.limits.get("max", 0)
    return distance > limit, float(distance.max(initial=0)), limit


def _close(pair: Pair) -> Judgement:
    if len(pair.limits) == 1:
        raise UsageError("rule close takes both rtol and atol, or neither")
    rtol, atol = CLOSE_DEFAULTS.get(pair.actual.dtype.name, (0.0, 0.0))
    rtol, atol = pair.limits.get("rtol", rtol), pair.limits.get("atol", atol)
    size = np.abs(pair.expected.astype(np.float64))
    size[np.isinf(size)] = 0.0  # nothing but the same infinity is close to one
    return _within(pair.error, atol + rtol * size)


def _bound(pair: Pair) -> Judgement:
    if pair.bound is None:
        raise UsageError("rule bound needs a reference that derives an error bound")
    return _within(pair.error, pair.bound)


def _derived(pair: Pair) -> Judgement:
    if pair.bound is None:
        raise UsageError("rule derived needs the error bounds of a simulated run")
    return _within(pair.error, pair.bound)


def _within(error: np.ndarray, allowed: np.ndarray) -> Judgement:
    """Score: the largest share of its allowance that an element uses up."""
    if np.isnan(allowed.max(initial=0.0)):
        allowed = np.where(np.isnan(allowed), 0.0, allowed)
    return ~(error <= allowed), float(_used(error, allowed).max(initial=0.0)), 1.0


def _used(error: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    if np.all((allowed > 0) & (allowed < np.inf)):
        return error / allowed
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((error == 0) | np.isinf(allowed), 0.0, error / allowed)


def _nmse(pair: Pair) -> Judgement:
    """Sum of squared errors / sum of squares, over the whole array: all elements are rejected, or none."""
    error, power = float(np.sum(pair.error**2)), float(np.sum(pair.expected.astype(np.float64) ** 2))
    score = error / power if power else (0.0 if error == 0 else float("inf"))
    limit = pair.limits.get("max", 5e-4)
    return np.full(pair.actual.shape, not score <= limit), score, limit


RULES = {
    "exact": RuleRow((), "elements with other bits", _exact, sum),
    "ulp": RuleRow(("max",), "ULP apart at most", _ulp, max),
    "close": RuleRow(("rtol", "atol"), "share of the tolerance used", _close, max),
    "nmse": RuleRow(("max",), "NMSE", _nmse, None),
    "bound": RuleRow((), "share of the bound used", _bound, max, bounded=True),
    "derived": RuleRow((), "share of the derived bound used", _derived, max, bounded=True),
}


def compare(
    actual: np.ndarray,
    expected: np.ndarray,
    rule: Rule = EXACT,
    *,
    bound: np.ndarray | None = None,
    owner: Callable[[tuple[int, ...]], str | None] | None = None,
    worst: int = 5,
) -> Comparison:
    """Judge `actual` by `rule`. Raises `UsageError` where shapes differ or the rule lacks what it needs."""
    if actual.shape != expected.shape:
        raise UsageError(f"shapes differ: {list(actual.shape)} against {list(expected.shape)}")
    pair = Pair(actual, expected, bound, rule.limits)
    row = RULES[rule.name]
    judged = _judged(pair, row)
    count = int(np.count_nonzero(judged.rejected))
    worst_ones, where = _looked_at(pair, rule, judged.rejected, worst, owner) if count else ((), None)
    return Comparison(
        rule=rule,
        ok=count == 0,
        elements=actual.size,
        mismatches=count,
        score=judged.score,
        limit=judged.limit,
        measure=row.measure,
        max_abs=judged.max_abs,
        max_ulp=_known(judged.max_ulp),
        worst=worst_ones,
        unbounded=int(np.count_nonzero(np.isinf(bound))) if bound is not None and row.bounded else 0,
        spread=where,
    )


@frozen
class _Judged:
    rejected: np.ndarray
    score: float
    limit: float
    max_abs: float
    max_ulp: int


def _judged(pair: Pair, row: RuleRow) -> _Judged:
    """What a rule says of a pair, looked at in pieces that caches hold: arrays of millions are ten times faster so."""
    rejected, scores, limit, max_abs, max_ulp = np.zeros(pair.actual.size, bool), [0.0], 0.0, 0.0, 0
    step = _PIECE if row.gather else max(1, pair.actual.size)
    for start in range(0, max(1, pair.actual.size), step):
        piece = pair.piece(slice(start, start + step))
        rejected[start : start + step], score, limit = row.judge(piece)
        scores.append(score)
        if piece.same:
            continue
        max_abs = max(max_abs, float(piece.error.max(initial=0)))
        max_ulp = max(max_ulp, int(ulp_distance(piece.actual, piece.rounded).max(initial=0)))
    score = row.gather(scores) if row.gather else scores[-1]
    return _Judged(rejected.reshape(pair.actual.shape), score, limit, max_abs, max_ulp)


def _looked_at(
    pair: Pair, rule: Rule, rejected: np.ndarray, worst: int, owner: Callable[[tuple[int, ...]], str | None] | None
) -> tuple[tuple[Difference, ...], MismatchMap]:
    """The worst of the rejected elements, and where all of them lie."""
    ulp, measure, unit = ulp_distance(pair.actual, pair.rounded), pair.error, "off by"
    if pair.bound is not None:
        measure, unit = _used(pair.error, pair.bound), "times the bound"
    elif rule.name in ("exact", "ulp"):
        measure, unit = np.where(ulp == NO_ULP, np.inf, ulp), "ULP"
    order = _worst(rejected, measure, worst)
    return tuple(_difference(pair, ulp, index, owner) for index in order), spread(rejected, measure, unit)


def rejected(actual: np.ndarray, expected: np.ndarray, rule: Rule, bound: np.ndarray | None = None) -> np.ndarray:
    """True for each element that `rule` rejects; shapes are equal."""
    return RULES[rule.name].judge(Pair(actual, expected, bound, rule.limits))[0]


def bits_of(array: np.ndarray) -> np.ndarray:
    """The same bytes as unsigned integers."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many representable values apart, as int64; 0 between two NaNs, `NO_ULP` between a NaN and a number."""
    if a.dtype.kind != "f":
        return np.abs(a.astype(np.int64) - b.astype(np.int64))
    if (near := _near(bits_of(a), bits_of(b), np.finfo(a.dtype))) is not None:
        return near
    distance = np.abs(_rank(a) - _rank(b))
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if not nan_a.any() and not nan_b.any():
        return distance
    return np.where(nan_a & nan_b, 0, np.where(nan_a | nan_b, NO_ULP, distance))


def _near(a: np.ndarray, b: np.ndarray, of: np.finfo[Any]) -> np.ndarray | None:
    """The distance of floats with these bits, which is that of their bits where signs agree; None where some do not, or
    one is no number."""
    sign = a.dtype.type(1 << (of.bits - 1))
    infinite = bits_of(np.array(np.inf, of.dtype))[()]
    if ((a ^ b) & sign).any() or max(((each & ~sign).max(initial=0)) for each in (a, b)) > infinite:
        return None
    return np.where(a > b, a - b, b - a).astype(np.int64)


def _rank(array: np.ndarray) -> np.ndarray:
    """Floats counted from zero in steps of one ULP, negative ones downwards (both zeros are 0)."""
    width = 8 * array.dtype.itemsize
    rank = bits_of(array).view(f"i{array.dtype.itemsize}").astype(np.int64)
    # Of a negative float the bits are its magnitude above the least integer.
    return np.subtract(-(1 << (width - 1)), rank, out=rank, where=rank < 0)


def _worst(rejected: np.ndarray, measure: np.ndarray, count: int) -> list[tuple[int, ...]]:
    """Indices of the `count` rejected elements that `measure` ranks highest; ties in memory order."""
    places = np.flatnonzero(rejected)
    order = np.argsort(-measure.reshape(-1)[places], kind="stable")[:count]
    return [tuple(int(i) for i in np.unravel_index(place, rejected.shape)) for place in places[order]]


def _difference(pair: Pair, ulp: np.ndarray, index: tuple[int, ...], owner: Any) -> Difference:
    rounded, width = pair.rounded, 2 * pair.actual.dtype.itemsize
    return Difference(
        index=index,
        actual=pair.actual[index].item(),
        expected=pair.expected[index].item(),
        actual_bits=f"0x{int(bits_of(pair.actual)[index]):0{width}x}",
        expected_bits=f"0x{int(bits_of(rounded)[index]):0{width}x}",
        ulp=_known(ulp[index]),
        owner=owner(index) if owner else None,
        bound=None if pair.bound is None else float(pair.bound[index]),
        used=None if pair.bound is None else float(_used(pair.error[index], pair.bound[index])),
    )


def _known(ulp: Any) -> int | None:
    return None if ulp == NO_ULP else int(ulp)

"""The output rules: one class is one rule, with its parameters, its check and its words.

`RULES` lists them by name. The manifest parser, `compare`, reports and the table in docs/manifests.md read it, so a new
rule is one class here, decorated with `output_rule`, and a row in the docs, which a test compares with its `accepts`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import entity, frozen
from ..errors import UsageError
from .bits import NO_ULP, Array, Mask, bits_of, ulp_distance
from .counterexamples import doubled, own_sizes

PART = 1 << 16  # elements that are compared together, so that they stay in caches

Limits = Mapping[str, float]


@frozen
class Rule:
    """A rule as a manifest names it, with the limits that it sets: `Rule("ulp", {"max": 2})`."""

    name: str
    limits: Limits = field(default_factory=dict[str, float])

    def __str__(self) -> str:
        return " ".join([self.name, *(f"{key} {value:g}" for key, value in self.limits.items())])

    @property
    def row(self) -> OutputRule:
        """The rule itself."""
        return RULES[self.name]


@entity
class Pair:
    """Two arrays of one shape that a rule compares. `expected` has the dtype of `actual`, or is float64 truth. `bound`:
    the largest |error| that each element may have, where a reference or the simulator derived one."""

    actual: Array
    expected: Array
    bound: Array | None

    def part(self, elements: slice) -> Pair:
        """Some of the elements, flat, in memory order."""
        bound = None if self.bound is None else self.bound.ravel()[elements]
        return Pair(self.actual.ravel()[elements], self.expected.ravel()[elements], bound)

    @cached_property
    def rounded(self) -> Array:
        """`expected` in the dtype of `actual`."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self.expected.astype(self.actual.dtype, copy=False)

    @property
    def by_value(self) -> bool:
        """Whether integers meet the floats of a reference: their values are compared, as no bits correspond."""
        return self.actual.dtype.kind in "iu" and self.expected.dtype.kind == "f"

    @cached_property
    def bits_differ(self) -> Mask:
        """True for each element whose bits, or value, differ from those of `rounded`."""
        if self.by_value:
            return self.actual.astype(np.float64) != self.expected
        return bits_of(self.actual) != bits_of(self.rounded)

    @cached_property
    def distance(self) -> NDArray[np.int64]:
        """How many representable values, or whole numbers, lie between; `NO_ULP` between a number and none."""
        if not self.by_value:
            return ulp_distance(self.actual, self.rounded)
        near = np.ceil(np.minimum(self.error, 2.0**62)).astype(np.int64)
        return np.where(np.isfinite(self.error), near, NO_ULP)

    @property
    def identical(self) -> bool:
        """Whether both hold the same bits, so that all errors and distances are 0."""
        return self.actual.dtype == self.expected.dtype and not self.bits_differ.any()

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """|actual - expected| in float64: 0 between equal infinities and between NaNs, infinite between a NaN and a
        number."""
        a, b = self.actual.astype(np.float64), self.expected.astype(np.float64, copy=False)
        with np.errstate(invalid="ignore"):
            error = np.abs(np.subtract(a, b, out=a), out=a)
        if np.isnan(error.max(initial=0.0)):
            undefined = np.isnan(error)
            a, b = self.actual[undefined].astype(np.float64), b[undefined]
            error[undefined] = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.inf)
        return error


@frozen
class Judgement:
    """The answer of a rule: the elements that it rejects, its score, and the largest score that it accepts."""

    rejected: Mask
    score: float
    limit: float


@frozen
class Parameter:
    """A limit that a manifest may set: a number from 0. `default` None: it depends on the dtype."""

    name: str
    default: float | None


class OutputRule(ABC):
    """One way to judge an output. Subclasses set the class variables and define `judge`, and `could_fail` where
    that is faster."""

    name: ClassVar[str]
    accepts: ClassVar[str]  # which elements pass, in Markdown, for docs
    measure: ClassVar[str]  # what the score counts, for reports
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    bitwise: ClassVar[bool] = False  # compares bits: reports say "bit for bit" and give no score
    bounded: ClassVar[bool] = False  # compares errors with bounds, so that an element without one passes
    in_ulp: ClassVar[bool] = False  # how far off an element is, is shown in ULP rather than as an error
    whole: ClassVar[bool] = False  # needs all elements at once

    @abstractmethod
    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        """Judge all elements of a pair, or some where the rule is not `whole`. Raises `UsageError` where the pair lacks
        what the rule needs."""

    def could_fail(self, pair: Pair, limits: Limits, scale: float) -> Mask:
        """True for each element that the rule rejects where it is off by its own size, see `counterexamples`. Reads
        only the dtype of `pair.actual`. `scale`: that of the whole output."""
        wrong = doubled(pair.expected, pair.actual.dtype, scale)
        return self.judge(Pair(wrong, pair.expected, pair.bound), limits).rejected

    def combine(self, scores: Iterable[float]) -> float:
        """Make the score of an array from those of its parts."""
        return max(scores)

    def check(self, limits: Limits) -> None:
        """Raise `UsageError` for limits that the rule cannot take."""
        for name, limit in limits.items():
            if not limit >= 0:  # nor a NaN
                raise UsageError(f"{name} must be 0 or more, not {limit}")

    def limit(self, name: str, limits: Limits) -> float:
        """The value of a parameter that has a default."""
        default = next(parameter.default for parameter in self.parameters if parameter.name == name)
        assert default is not None
        return limits.get(name, default)


RULES: dict[str, OutputRule] = {}


def output_rule(rule: type[OutputRule]) -> type[OutputRule]:
    """Enter a rule into `RULES`, under its name."""
    RULES[rule.name] = rule()
    return rule


@output_rule
class Exact(OutputRule):
    """Equal NaNs are equal, 0.0 and -0.0 are not."""

    name = "exact"
    accepts = "the same bits"
    measure = "elements with other bits"
    bitwise = in_ulp = True

    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        return Judgement(pair.bits_differ, float(np.count_nonzero(pair.bits_differ)), 0.0)

    def could_fail(self, pair: Pair, limits: Limits, scale: float) -> Mask:
        return np.ones(pair.expected.shape, bool)

    def combine(self, scores: Iterable[float]) -> float:
        return sum(scores)


@output_rule
class Ulp(OutputRule):
    name = "ulp"
    accepts = "up to `max` representable values apart, by default 0"
    measure = "ULP apart at most"
    parameters = (Parameter("max", 0),)
    in_ulp = True

    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        distance, limit = pair.distance, self.limit("max", limits)
        return Judgement(distance > limit, float(distance.max(initial=0)), limit)


@output_rule
class Close(OutputRule):
    name = "close"
    accepts = "`abs(error) <= atol + rtol * abs(expected)`, by default as torch.testing.assert_close has them"
    measure = "share of the tolerance used"
    parameters = (Parameter("rtol", None), Parameter("atol", None))

    # (rtol, atol) by dtype, as torch.testing.assert_close has them; integers must be equal.
    DEFAULTS: ClassVar[Mapping[str, tuple[float, float]]] = {
        "float16": (1e-3, 1e-5),
        "float32": (1.3e-6, 1e-5),
        "float64": (1e-7, 1e-7),
    }

    def check(self, limits: Limits) -> None:
        super().check(limits)
        if len(limits) == 1:
            raise UsageError("rule close takes both rtol and atol, or neither")

    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        return within(pair.error, self._allowed(pair, limits))

    def could_fail(self, pair: Pair, limits: Limits, scale: float) -> Mask:
        return ~(own_sizes(pair.expected, scale) <= self._allowed(pair, limits))

    def _allowed(self, pair: Pair, limits: Limits) -> NDArray[np.float64]:
        rtol, atol = self.DEFAULTS.get(pair.actual.dtype.name, (0.0, 0.0))
        rtol, atol = limits.get("rtol", rtol), limits.get("atol", atol)
        size = np.abs(pair.expected.astype(np.float64))
        size[~np.isfinite(size)] = 0.0  # only the same infinity is close to an infinity
        with np.errstate(over="ignore", invalid="ignore"):
            return atol + rtol * size


@output_rule
class Nmse(OutputRule):
    """All elements pass, or none does."""

    name = "nmse"
    accepts = "up to `max`, by default 0.0005, of summed squared error over summed squares"
    measure = "NMSE"
    parameters = (Parameter("max", 5e-4),)
    whole = True

    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        error, power = float(np.sum(pair.error**2)), float(np.sum(pair.expected.astype(np.float64) ** 2))
        score = error / power if power else (0.0 if error == 0 else float("inf"))
        limit = self.limit("max", limits)
        return Judgement(np.full(pair.actual.shape, not score <= limit), score, limit)

    def could_fail(self, pair: Pair, limits: Limits, scale: float) -> Mask:
        """One element in a million never exceeds the limit alone: an element counts if it and all that are no larger
        (to a power of two) are rejected together, each off by its own size."""
        expected, (errors, power) = pair.expected.ravel(), (np.zeros(_EXPONENTS), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            for part in parts_of(expected.size):
                sizes = own_sizes(expected[part], scale)
                errors += np.bincount(_exponents(sizes), weights=sizes**2, minlength=_EXPONENTS)
                power += float(np.sum(expected[part].astype(np.float64) ** 2))
            enough = np.cumsum(errors) > self.limit("max", limits) * power
        could = np.empty(expected.size, bool)
        for part in parts_of(expected.size):
            could[part] = enough[_exponents(own_sizes(expected[part], scale))]
        return could.reshape(pair.expected.shape)


_EXPONENTS = 1 << 12  # more than floats have


def _exponents(sizes: NDArray[np.float64]) -> NDArray[np.int32]:
    return np.frexp(sizes)[1] + _EXPONENTS // 2


class _WithinBounds(OutputRule):
    lacks: ClassVar[str]  # the error where there is no bound
    bounded = True

    def judge(self, pair: Pair, limits: Limits) -> Judgement:
        if pair.bound is None:
            raise UsageError(self.lacks)
        return within(pair.error, pair.bound)

    def could_fail(self, pair: Pair, limits: Limits, scale: float) -> Mask:
        assert pair.bound is not None
        return ~(own_sizes(pair.expected, scale) <= pair.bound)


@output_rule
class Bound(_WithinBounds):
    name = "bound"
    accepts = "an error up to the bound that the reference derives, element by element"
    measure = "share of the bound used"
    lacks = "rule bound needs a reference that derives an error bound"


@output_rule
class Derived(_WithinBounds):
    """Bounds are `bankshot.Run.bounds`."""

    name = "derived"
    accepts = "an error up to the bound that the simulator derives from WGSL's accuracy table, element by element"
    measure = "share of the derived bound used"
    lacks = "rule derived needs the error bounds of a simulated run"


def parts_of(size: int, step: int = PART) -> list[slice]:
    """Slices of `size` elements; an empty one of none."""
    return [slice(start, start + step) for start in range(0, max(1, size), step)]


EXACT = Rule("exact")
BOUND = Rule("bound")
DERIVED = Rule("derived")


def within(error: Array, allowed: Array) -> Judgement:
    """Accept errors up to what is allowed; the score is the largest share of its allowance that an element uses."""
    if np.isnan(allowed.max(initial=0.0)):
        allowed = np.where(np.isnan(allowed), 0.0, allowed)
    return Judgement(~(error <= allowed), float(share_used(error, allowed).max(initial=0.0)), 1.0)


def share_used(error: Array, allowed: Array) -> NDArray[np.float64]:
    """error / allowed: 0 where there is no error or no bound."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where((error == 0) | np.isinf(allowed), 0.0, error / allowed)

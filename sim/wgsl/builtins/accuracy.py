"""How exact the spec wants floating point operations: data for error bounds. Spec: WGSL, "Floating Point Accuracy".

An `Accuracy` has for f32 and for f16 a tuple of bounds: the error may be as bad as the worst of those that hold at the
arguments; where none holds, nothing is promised.
"""

from __future__ import annotations

from math import pi

from ...fast_dataclass import frozen


@frozen
class Range:
    """|argument `arg`| (or the argument itself, if `signed`) lies in [low, high], or `outside` of it."""

    arg: int
    low: float
    high: float
    signed: bool = False
    outside: bool = False

    def holds(self, *args: float) -> bool:
        x = args[self.arg] if self.signed else abs(args[self.arg])
        return (self.low <= x <= self.high) != self.outside


@frozen
class Bound:
    """`kind` is one of
    correct    correctly rounded;
    ulp        within `amount` + `slope` * |first argument| units in the last place;
    abs        within `amount` + `slope` * |first argument|;
    inherits   as exact as evaluating `formula`;
    unbounded  nothing is promised.
    """

    kind: str
    amount: float = 0.0
    slope: float = 0.0
    formula: str = ""
    where: Range | None = None


@frozen
class Accuracy:
    f32: tuple[Bound, ...]
    f16: tuple[Bound, ...]


def _same(*bounds: Bound) -> Accuracy:
    return Accuracy(bounds, bounds)


def inherits(formula: str) -> Accuracy:
    return _same(Bound("inherits", formula=formula))


def ulp(f32: float, f16: float | None = None, slope: float = 0.0) -> Accuracy:
    half = f32 if f16 is None else f16
    return Accuracy((Bound("ulp", f32, slope),), (Bound("ulp", half, slope),))


def worse_of(f32: float, f16: float, formula: str) -> Accuracy:
    """The worse of an absolute error and an inherited one."""
    formula_bound = Bound("inherits", formula=formula)
    return Accuracy((Bound("abs", f32), formula_bound), (Bound("abs", f16), formula_bound))


CORRECT = _same(Bound("correct"))
UNBOUNDED = _same(Bound("unbounded"))
DIVISION = Accuracy(
    (Bound("ulp", 2.5, where=Range(1, 2.0**-126, 2.0**126)),),
    (Bound("ulp", 2.5, where=Range(1, 2.0**-14, 2.0**14)),),
)
ATAN2 = Accuracy(
    (Bound("ulp", 4096, where=Range(1, 2.0**-126, 2.0**126)),),
    (Bound("ulp", 5, where=Range(1, 2.0**-14, 2.0**14)),),
)
# Beyond pi the spec promises nothing, and what holds for anything checks nothing. Implementations take the argument
# modulo 2 * pi there, in a few roundings of their own: taken is four times half a unit in its last place.
SINE = Accuracy(
    (
        Bound("abs", 2.0**-11, where=Range(0, 0.0, pi)),
        Bound("abs", 2.0**-11, 2.0**-22, where=Range(0, 0.0, pi, outside=True)),
    ),
    (
        Bound("abs", 2.0**-7, where=Range(0, 0.0, pi)),
        Bound("abs", 2.0**-7, 2.0**-9, where=Range(0, 0.0, pi, outside=True)),
    ),
)
LOGARITHM = Accuracy(
    (
        Bound("abs", 2.0**-21, where=Range(0, 0.5, 2.0, signed=True)),
        Bound("ulp", 3, where=Range(0, 0.5, 2.0, signed=True, outside=True)),
    ),
    (
        Bound("abs", 2.0**-7, where=Range(0, 0.5, 2.0, signed=True)),
        Bound("ulp", 3, where=Range(0, 0.5, 2.0, signed=True, outside=True)),
    ),
)

"""The accuracy that the spec requires of floating-point operations, for error bounds.

An `Accuracy` has a tuple of bounds for f32 and one for f16. The error may reach the largest of the bounds that apply to
the arguments; where none applies, it is unbounded. Spec: WGSL, "Floating Point Accuracy".
"""

from __future__ import annotations

from math import pi

from ...fast_dataclass import frozen


@frozen
class Range:
    """The range [low, high] of |argument `arg`|, or the numbers `outside` it."""

    arg: int
    low: float
    high: float
    outside: bool = False

    def holds(self, *args: float) -> bool:
        """Whether the argument is in the range."""
        return (self.low <= abs(args[self.arg]) <= self.high) != self.outside


@frozen
class Bound:
    """A bound, for arguments in the range `where`. `kind` is one of

    - correct: correctly rounded;
    - ulp: within `amount` + `slope` * |first argument| units in the last place;
    - abs: within `amount` + `slope` * |first argument|;
    - inherits: as exact as evaluating `formula`;
    - unbounded.
    """

    kind: str
    amount: float = 0.0
    slope: float = 0.0
    formula: str = ""
    where: Range | None = None


@frozen
class Accuracy:
    """The bounds of an operation on f32 and on f16."""

    f32: tuple[Bound, ...]
    f16: tuple[Bound, ...]


def _same(*bounds: Bound) -> Accuracy:
    return Accuracy(bounds, bounds)


def inherits(formula: str) -> Accuracy:
    """Inherit the accuracy of a formula."""
    return _same(Bound("inherits", formula=formula))


def ulp(f32: float, f16: float | None = None, slope: float = 0.0) -> Accuracy:
    """Bound the error in units in the last place; `f16` defaults to `f32`."""
    half = f32 if f16 is None else f16
    return Accuracy((Bound("ulp", f32, slope),), (Bound("ulp", half, slope),))


def worse_of(f32: float, f16: float, formula: str) -> Accuracy:
    """Bound the error by the larger of an absolute error and an inherited one."""
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
# Beyond pi the spec has no bound, which would leave nothing to check. Implementations reduce the argument modulo 2 * pi
# there, with a few roundings: assumed is four times half a unit in the last place of the argument.
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
        Bound("abs", 2.0**-21, where=Range(0, 0.5, 2.0)),
        Bound("ulp", 3, where=Range(0, 0.5, 2.0, outside=True)),
    ),
    (
        Bound("abs", 2.0**-7, where=Range(0, 0.5, 2.0)),
        Bound("ulp", 3, where=Range(0, 0.5, 2.0, outside=True)),
    ),
)

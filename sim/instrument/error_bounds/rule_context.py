"""What the rule of an operation works with: its operands with their bounds, and the formulas that rules share.

`error_rules.Rules` is the implementation that knows the accuracy table. Rules see this class alone, so that their
tables (`slopes`, `discontinuities`) can be imported by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping

from ...fast_dataclass import frozen
from ...ir.builder import Builder
from ...ir.ir import Value
from ...ir.register_bits import from_bits
from .arithmetic import INF, Real, Truth
from .formats import FORMATS, INFLATED
from .shapes import Shapes

_EXPONENT = 0x7F800000  # the exponent bits of an f32


@frozen
class Number:
    """A value of the program as an operand: its number as an f32 (for floats only), and its bound."""

    value: Value
    real: Real
    bound: Real

    @property
    def kind(self) -> str:
        return self.value.kind

    @property
    def most(self) -> Real:
        """An upper bound of its magnitude."""
        return abs(self.real) + self.bound

    @property
    def least(self) -> Real:
        """A lower bound of its magnitude, or a negative number."""
        return abs(self.real) - self.bound


class RuleContext(ABC):
    """Bounds of one program. `bounds` are those known so far, `signs` the results of `never_negative` so far."""

    def __init__(self, builder: Builder, bounds: Mapping[Value, Real], shapes: Shapes) -> None:
        self.builder = builder
        self.bounds = bounds
        self.shapes = shapes
        self.signs: dict[Value, bool] = {}

    @abstractmethod
    def computed(self, stem: str, result: Value, args: list[Number]) -> Real:
        """Return the bound of an operation that rounds, by the accuracy table."""

    @abstractmethod
    def formula(self, text: str, args: list[Number], kind: str) -> Number:
        """Return the value of a formula of the accuracy table, with its bound."""

    @abstractmethod
    def on_the_way(self, stem: str, result: Value, args: list[Number]) -> Real:
        """Return what a product of three factors or more may lose by overflow or a flush in another order."""

    def real(self, value: Value | float) -> Real:
        if isinstance(value, Value) and value.kind != "f32":
            value = self.builder.reinterpret("f32", value)
        return Real(self.builder, value)

    def number(self, value: Value) -> Number:
        bound = self.bounds.get(value)
        return Number(value, self.real(value), self.flushed(value) if bound is None else bound)

    def infinite_if_inexact(self, value: Value) -> Real:
        """Return infinity where a value may be another on some implementation, else 0."""
        bound = self.number(value).bound
        return self.real(0.0) if bound.is_zero else bound.is_sure.choose(0.0, INF)

    def flushed(self, value: Value) -> Real:
        """Return the bound of an exact value: a subnormal constant may be taken for zero."""
        if value.op == "const" and value.kind in FORMATS:
            number = abs(float(from_bits("f32", value.imm)))
            return self.real(number if number < FORMATS[value.kind].least else 0.0)
        return self.real(0.0)

    def subnormal(self, value: Value) -> Real:
        """Return the bound of an exact float that may be subnormal."""
        number = abs(self.real(value))
        return (number < FORMATS[value.kind].least).choose(number, 0.0)

    def rounded(self, result: Value, carried: Real, ulps: Real | float, kind: str = "") -> Real:
        """Return the bound of a result that carries an error, and is off by at most `ulps`.

        Ours may be just below a power of two and another result above it: the ULP is that of a slightly larger number.
        """
        form = FORMATS[kind or result.kind]
        size = abs(self.real(result))
        # A flush, and what underflows in here. For f16 a flush is large, and only added below where one can happen.
        carried = carried.times_plus(INFLATED, 2 * form.least if form is FORMATS["f32"] else 0.0)
        most = size.times_plus(1 + 2 * form.ulp, carried)
        # In another order a product's factors may be just above a power of two, where the ULP weighs most.
        unit = most if self.is_factor(result) else self.power(most)
        total = unit.times_plus(self.real(form.ulp * INFLATED) * ulps, carried)
        if form is FORMATS["f32"]:
            return total
        total = total + (size - carried < form.least).choose(form.least, 0.0)
        return (most <= form.largest).choose(total, INF)

    def is_factor(self, result: Value) -> bool:
        """Whether a value belongs to a product whose factors may be multiplied in another order."""
        return result in self.shapes.factors

    def power(self, x: Real) -> Real:
        """Return the largest power of two up to x, for x > 0."""
        bits = self.builder.op(
            "and_u32", self.builder.reinterpret("u32", x.value), self.builder.const("u32", _EXPONENT)
        )
        return self.real(self.builder.reinterpret("f32", bits))

    def in_any_order(self, result: Value, carried: Real, size: Real, times: Real) -> Real:
        """Return the bound of a result of `times` roundings in any order, where no intermediate result is larger than
        `size`, for us as for others."""
        form = FORMATS[result.kind]
        size = size * (1 + 2.0**-10)  # `size` is itself a rounded sum, of up to 128 lanes
        each = self.power(size).times_plus(2 * form.ulp * INFLATED, 2 * form.least)
        total = each.times_plus(times, carried * (1 + 2.0**-10))
        return (size <= form.largest).choose(total, INF)

    def unless(self, alike: Truth, bound: Real | float = INF) -> Real:
        """Return 0 where all implementations agree, else `bound`."""
        return alike.choose(0.0, bound)


Rule = Callable[[RuleContext, Value, list[Number]], Real]
"""A rule returns the bound of a result from its operands."""

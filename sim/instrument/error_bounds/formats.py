"""Float formats, and values with their bounds as operands of rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...fast_dataclass import frozen
from ...ir.ir import Value
from .arithmetic import Real

if TYPE_CHECKING:
    from .error_rules import Rules

INFLATED = 1 + 2.0**-20  # pays for the up to 15 roundings of one bound


@frozen
class Format:
    """A float format: the ULP of 1, the least normal number, the largest number, and the largest whole number up to
    which every whole number is representable."""

    ulp: float
    least: float
    largest: float
    whole: float


FORMATS = {
    "f32": Format(2.0**-23, 2.0**-126, (2 - 2.0**-23) * 2.0**127, 2.0**24),
    "f16": Format(2.0**-10, 2.0**-14, 65504.0, 2.0**11),
}


@frozen
class Number:
    """A value of the program as an operand: its kind, its number (of floats, else nothing) and its bound."""

    value: Value
    real: Real
    bound: Real

    @property
    def kind(self) -> str:
        return self.value.kind

    @property
    def most(self) -> Real:
        """Its magnitude is at most this."""
        return abs(self.real) + self.bound

    @property
    def least(self) -> Real:
        """Its magnitude is at least this (or this is negative)."""
        return abs(self.real) - self.bound


Rule = Callable[["Rules", Value, list[Number]], Real]
"""A rule gives the bound of a result from its operands."""

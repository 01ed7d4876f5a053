"""Operations that round: how errors of operands carry to the result, and what rounding takes off it.

`CARRY[stem]` bounds |f(x') - f(x)| for functions with a slope; `RESIDUES[stem]` returns an exact result in two parts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import log

from ...ir.ir import Value
from .arithmetic import INF, Real
from .formats import FORMATS, INFLATED
from .rule_context import Number, Rule, RuleContext

# ---- what rounding takes off -------------------------------------------------------------------------------------


def _rounded_off_sum(x: Real, y: Real) -> tuple[Real, Real]:
    """Return x + y as an f32, and the exact rest (Knuth's two-sum)."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def _rounded_off_difference(x: Real, y: Real) -> tuple[Real, Real]:
    return _rounded_off_sum(x, x.like(0.0) - y)


def _rounded_off_product(x: Real, y: Real) -> tuple[Real, Real]:
    product = x * y
    return product, x.times_plus(y, x.like(0.0) - product)


def _rounded_off_fma(x: Real, y: Real, z: Real) -> tuple[Real, Real]:
    product, one = _rounded_off_product(x, y)
    total, other = _rounded_off_sum(product, z)
    return total, abs(one) + abs(other)


RESIDUES: dict[str, Callable[..., tuple[Real, Real]]] = {
    "add": _rounded_off_sum,
    "sub": _rounded_off_difference,
    "mul": _rounded_off_product,
    "fma": _rounded_off_fma,
}


# ---- what functions with a slope carry -----------------------------------------------------------------------


def words(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Operands that are not floats must not differ."""
    bounds = [a.bound for a in args if a.kind not in FORMATS]
    return rules.unless(reduce(Real.__add__, bounds).is_sure) if bounds else rules.real(0.0)


def _product(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    x, y = args
    return _scaled_by(y.bound, abs(x.real), _scaled_by(x.bound, y.most, rules.real(0.0)))


def _scaled_by(bound: Real, size: Real, more: Real) -> Real:
    """Return bound * size + more. If the size is 0, an unknown bound makes the result unknown."""
    return bound.unknown + more if size.is_zero and not bound.is_zero else bound.times_plus(size, more)


def _quotient(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    x, y = args
    error = abs(rules.real(result)).times_plus(y.bound / y.least, x.bound / y.least)
    return (y.least > 0.0).choose(error, INF)


def _sum(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return args[0].bound + args[1].bound


def _multiply_add(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return product_carried(rules, result, *args[:2]) + args[2].bound


def product_carried(rules: RuleContext, result: Value, x: Number, y: Number) -> Real:
    """Return the error that the product of an fma carries into its sum, where other implementations may round it."""
    form, size = FORMATS[result.kind], x.most * y.most * INFLATED
    error = _product(rules, result, [x, y]) + form.least
    unit = rules.power(size)
    if rules.is_factor(result):
        error, unit = error + rules.on_the_way("fma", result, [x, y]), size
    return (size <= form.largest).choose(unit.times_plus(form.ulp, error), INF)


def _same(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Carry the error of functions that are nowhere steeper than 1."""
    return args[0].bound


def _exponential(base: float) -> Rule:
    def carry(rules: RuleContext, result: Value, args: list[Number]) -> Real:
        """f(x) (b^e - 1) <= f(x) e ln(b) b^e"""
        error = args[0].bound * log(base)
        return (abs(rules.real(result)) + FORMATS[result.kind].least) * error * error.called("exp")

    return carry


def _logarithm(base: float) -> Rule:
    def carry(rules: RuleContext, result: Value, args: list[Number]) -> Real:
        low = args[0].real - args[0].bound
        return (low > 0.0).choose(args[0].bound / low * (1 / log(base)), INF)

    return carry


def _inverse_root(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    low = args[0].real - args[0].bound
    return (low > 0.0).choose(args[0].bound / low * low.called("inverseSqrt") * 0.5, INF)


def _angle(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """A point at distance r that moves by e turns by at most e / r. The spec gives no accuracy where y may not be
    normal, and so none at the branch cut."""
    y, x = args
    distance = x.least.at_least(y.least)
    normal = y.least >= FORMATS[result.kind].least
    return normal.choose((x.bound + y.bound) / distance, INF)


CARRY: dict[str, Rule] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "fma": _multiply_add,
    "div": _quotient,
    "exp": _exponential(2.718281828459046),
    "exp2": _exponential(2.0),
    "log": _logarithm(2.718281828459045),
    "log2": _logarithm(2.0),
    "inverseSqrt": _inverse_root,
    "sin": _same,
    "cos": _same,
    "atan": _same,
    "atan2": _angle,
}

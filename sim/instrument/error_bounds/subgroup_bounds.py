"""The bounds of values exchanged in a subgroup. Reductions may combine the lanes in any order."""

from __future__ import annotations

from collections.abc import Callable

from ...ir import ir
from ...ir.builder import Builder
from ...ir.ir import Value
from .arithmetic import INF, Real
from .error_rules import Rules
from .formats import FORMATS


class SubgroupBounds:
    """Writes, behind a `Collective`, others that compute the bounds of its results."""

    def __init__(self, builder: Builder, rules: Rules) -> None:
        self.builder = builder
        self.rules = rules

    def bounds(self, item: ir.Collective, *, astray: bool) -> list[Real]:
        """Return the bound of each result. `astray`: some lanes may be elsewhere on another implementation, so that the
        exchange is among other lanes: no bound holds."""
        if astray:
            return [self.rules.real(INF)] * len(item.results)
        if item.scalar in _REDUCTIONS:
            return [_REDUCTIONS[item.scalar](self, item)]
        if item.op == "shuffle":
            value, lane = item.args
            return [self.combine(item, self._bound(value), lane) + self.rules.infinite_if_inexact(lane)]
        total = sum((self._bound(arg) for arg in item.args), self.rules.real(0.0))
        return [self.combine(item, total, 0.0, "add_f32", "reduce")] * len(item.results)

    def _bound(self, value: Value) -> Real:
        return self.rules.number(value).bound

    def combine(self, like: ir.Collective, part: Real, second: Value | float, scalar: str = "", op: str = "") -> Real:
        """Combine `part` over a subgroup as `like` does. `second` is the second operand, or what to start from."""
        result = self.builder.result("f32")
        operand = second if isinstance(second, Value) else self.rules.real(second).value
        self.builder.append(ir.Collective(op or like.op, [result], [part.value, operand], like.site, scalar))
        return Real(self.builder, result)


def _sum(subgroup: SubgroupBounds, item: ir.Collective) -> Real:
    """Each of up to n - 1 additions is off by the ULP of at most the sum of magnitudes."""
    rules = subgroup.rules
    term = rules.number(item.args[0])
    lanes = subgroup.combine(item, rules.real(1.0), 0.0, "add_f32")
    size = subgroup.combine(item, term.most, 0.0, "add_f32")
    error = subgroup.combine(item, term.bound, 0.0, "add_f32")
    return rules.in_any_order(item.results[0], error, size, lanes)


def _product(subgroup: SubgroupBounds, item: ir.Collective) -> Real:
    """The difference between the largest product and ours, and a ULP of it for each multiplication."""
    rules, result = subgroup.rules, item.results[0]
    lanes = subgroup.combine(item, rules.real(1.0), 0.0, "add_f32")
    size = subgroup.combine(item, rules.number(item.args[0]).most, 1.0, "mul_f32")
    excess = (size - abs(rules.real(result))).at_least(0.0) + size.unknown
    return rules.in_any_order(result, excess, size, lanes)


def _extreme(subgroup: SubgroupBounds, item: ir.Collective) -> Real:
    bound = subgroup.rules.number(item.args[0]).bound
    largest = subgroup.combine(item, bound, 0.0, "max_f32")
    return largest + subgroup.combine(item, bound, 0.0, "add_f32").unknown


_REDUCTIONS: dict[str, Callable[[SubgroupBounds, ir.Collective], Real]] = {
    **{f"{op}_{kind}": rule for kind in FORMATS for op, rule in (("add", _sum), ("mul", _product))},
    **{f"{op}_{kind}": _extreme for kind in FORMATS for op in ("min", "max")},
}

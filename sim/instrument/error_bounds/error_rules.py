"""How each scalar operation carries errors from its operands to its result, and what it adds of its own.

Another implementation may have x' for our x, with |x' - x| <= the bound of x. For an operation f it returns some r'
within the spec's accuracy of f(x'); our r is f(x) rounded to nearest. So |r' - r| <= |f(x') - f(x)| + accuracy + half a
unit in the last place (ULP). The accuracy is a column of the builtin table; an accuracy inherited from a formula is
computed by that formula. `slopes` has the first term for functions with a slope, `discontinuities` the operations that
add no error or are discontinuous.

Spec: WGSL, "Floating Point Accuracy", "Differences from IEEE-754" (either direction of rounding, subnormal numbers).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache, reduce
from math import exp, frexp

from ...fast_dataclass import frozen
from ...ir.builder import Builder
from ...ir.ir import Value
from ...ir.register_bits import from_bits
from ...wgsl.builtins import BUILTINS, OPERATORS
from ...wgsl.builtins.accuracy import UNBOUNDED, Accuracy, Bound
from ...wgsl.builtins.accuracy import Range as Domain
from .arithmetic import INF, Real, Truth
from .discontinuities import COMPARISONS, CONVERSIONS, EXACT, GAPS, OF_ANY, compare, of_any, reinterpreted
from .formats import FORMATS, INFLATED
from .rule_context import Number, RuleContext
from .shapes import Shapes, terms_of_fma, without_sign
from .slopes import CARRY, RESIDUES, product_carried, words


@frozen
class Sum:
    """A sum of terms by `times` additions in some order: the error they carry, and the sum of their magnitudes."""

    carried: Real
    size: Real
    times: int


@frozen
class Range:
    """The largest and smallest magnitude of partial products, in any order, but for the roundings of `times` steps."""

    high: Real
    low: Real
    times: int


class Rules(RuleContext):
    """The rules applied to one program: `bound(result)` bounds a value whose operands have bounds."""

    def __init__(self, builder: Builder, bounds: Mapping[Value, Real], shapes: Shapes) -> None:
        super().__init__(builder, bounds, shapes)
        self._sums: dict[Value, Sum] = {}
        self._ranges: dict[Value, Range] = {}
        self._on_the_way: dict[Value, Real] = {}

    def bound(self, result: Value) -> Real:
        return self.of(result.op, result, [self.number(a) for a in result.args])

    def of(self, op: str, result: Value, args: list[Number]) -> Real:
        """Return the bound of `result`, which is `op` of `args`."""
        stem, _, kind = op.rpartition("_")
        if op == "bits":
            return reinterpreted(self, result, args)
        if op.startswith("convert_"):
            return CONVERSIONS.get((args[0].kind, result.kind), of_any)(self, result, args)
        if stem in COMPARISONS and kind in FORMATS:
            return compare(self, result, args)
        rule = OF_ANY.get(op) or OF_ANY.get(stem) or (EXACT.get(stem) if kind in FORMATS else None)
        if rule is not None:
            return rule(self, result, args)
        if result.kind in FORMATS:
            return self.computed(stem, result, args)
        return of_any(self, result, args)

    # ---- operations that round ----

    def computed(self, stem: str, result: Value, args: list[Number]) -> Real:
        """Return the error that operands carry, plus what the accuracy table allows."""
        accuracy = accuracy_of(stem)
        rows = accuracy.f16 if result.kind == "f16" else accuracy.f32
        carried = CARRY.get(stem, words)(self, result, args)
        ulps, more, covered = self.real(0.5), carried, Truth(self.builder, False)
        for row in rows:
            here, within = self._holds(row.where, args)
            covered = covered | within
            amount = self.real(row.amount) + args[0].most * row.slope if row.slope else self.real(row.amount)
            match row.kind:
                case "correct":
                    ulps = ulps + here.choose(1.0, 0.0)
                case "ulp":
                    ulps = ulps + here.choose(amount, 0.0)
                case "abs":
                    more = more + here.choose(amount, 0.0)
                case "inherits":
                    more = more + self.inherited(row, result, args)
                case _:
                    more = more + INF
        if any(row.where and row.where.outside for row in rows):  # the other row is for inside
            covered = Truth(self.builder, True)
        if stem == "mul" and any(_is_power_of_two(a.value) for a in args):
            ulps = self.real(0.0)
        total = covered.choose(self.rounded(result, more, ulps), INF)
        if self.is_factor(result) and stem != "fma":  # an fma carries it into its sum
            total = total + self.on_the_way(stem, result, args)
        total = self.settled(stem, result, args, total) if stem in RESIDUES else total
        return self.extreme(stem, result, args, total) if stem in _EXTREME and self.shapes.exponents else total

    def extreme(self, stem: str, result: Value, args: list[Number], total: Real) -> Real:
        """Return the bound of a result that an infinite, or almost infinite, operand decides alone.

        A softmax starts its maximum with such a number, and masks with it: -inf + x, exp(-inf). The spec lets an
        implementation assume that there are no infinities, or overflow where it rounds away from zero; to allow for
        that would leave nothing to check."""
        form = FORMATS[args[0].kind]
        infinite = [(abs(a.real) > form.largest) & a.bound.is_sure for a in args]
        finite = [a.most <= form.largest for a in args]
        if stem == "fma":
            alone = finite[0] & finite[1] & (args[0].most * args[1].most <= form.largest) & infinite[2]
            if self.is_factor(result):
                alone = alone & (self.on_the_way(stem, result, args) <= form.largest)
            return alone.choose(0.0, total)
        if len(args) == 1:  # an exponential that is 0 for every legal argument
            most = args[0].most.at_most(form.largest)
            least = most.times_plus(2 * form.least * form.ulp, 4 * form.least)
            return infinite[0].choose(0.0, (args[0].real + args[0].bound <= _UNDERFLOWS).choose(least, total))
        for one, other in (args, args[::-1]):
            absorbs = one.bound.is_sure & (abs(one.real) >= form.largest / 2) & (one.most <= form.largest)
            absorbs = absorbs & (other.most <= abs(one.real) * (form.ulp / 8))
            total = absorbs.choose(abs(one.real) * (2 * form.ulp), total)
        return (infinite[0] & finite[1] | finite[0] & infinite[1]).choose(0.0, total)

    def settled(self, stem: str, result: Value, args: list[Number], total: Real) -> Real:
        """Return the bound of a sum or product that may be exact, or may be computed in another order."""
        reordered = self.reordered(stem, result, args) if stem != "mul" else None
        if reordered is not None:
            return reordered
        if result not in self.shapes.delicate:
            return total
        sure = reduce(Truth.__and__, (a.bound.is_sure for a in args))
        if self.is_factor(result):
            sure = sure & self.on_the_way(stem, result, args).is_sure
        return (sure & self.is_whole(stem, result, args)).choose(0.0, total)

    def reordered(self, stem: str, result: Value, args: list[Number]) -> Real | None:
        """Return the bound of a sum of three terms or more, which may be added in any order."""
        terms = args if stem != "fma" else [args[i] for i in terms_of_fma([a.value for a in args])]
        parts = [self._sums.get(without_sign(a.value)) or Sum(a.bound, a.most, 0) for a in terms]
        if len(parts) == 1:
            parts.append(Sum(product_carried(self, result, *args[:2]), args[0].most * args[1].most, 0))
        whole = Sum(parts[0].carried + parts[1].carried, parts[0].size + parts[1].size, 1 + sum(p.times for p in parts))
        if result in self.shapes.terms:
            self._sums[result] = whole
        if whole.times == 1:
            return None
        return self.in_any_order(result, whole.carried, whole.size, self.real(whole.times))

    def on_the_way(self, stem: str, result: Value, args: list[Number]) -> Real:
        """Return what a product of three factors or more may lose by overflow or a flush in another order.

        The product is `result`, or of an fma that of its first two operands, which another implementation may round.
        """
        if result not in self._on_the_way:
            form, one = FORMATS[result.kind], self.real(1.0)
            x, y = (self._ranges.get(without_sign(a.value)) or _alone(a.most, a.least) for a in args[:2])
            if stem == "div":
                y = _alone(one / args[1].least, one / args[1].most)
            whole = Range(x.high * y.high, x.low * y.low, x.times + y.times + 1)
            if stem != "fma":
                self._ranges[result] = whole
            size = abs(self.real(result)) if stem != "fma" else args[0].most * args[1].most * INFLATED
            slack = exp(min(_ULPS_ON_THE_WAY * form.ulp * whole.times, 80))
            # A partial product below the least normal number may become 0, or round up to the next subnormal number.
            step = max(form.least * form.ulp, FORMATS["f32"].least) * whole.times * slack
            safe = (whole.low >= form.least * slack) | (args[0].most <= 0.0) | (args[1].most <= 0.0)
            lost = safe.choose(0.0, whole.high.times_plus(step, size))
            self._on_the_way[result] = (whole.high <= form.largest / slack).choose(lost, INF)
        return self._on_the_way[result]

    def is_whole(self, stem: str, result: Value, args: list[Number]) -> Truth:
        """Whether a result is exact: then no implementation may have another."""
        exact, residue = RESIDUES[stem](*(a.real for a in args))
        size = abs(self.real(result))
        form = FORMATS[result.kind]  # of small f32 the residue itself may be flushed
        normal = (size >= (form.least if result.kind == "f16" else form.least / form.ulp)) | size.is_sure
        whole = normal & abs(residue).is_sure & abs(exact - self.real(result)).is_sure
        if stem != "fma" or result.kind == "f32":
            return whole
        product = args[0].real * args[1].real  # which f32 holds, and an f16 need not
        return whole & abs(product - product.called("quantizeToF16")).is_sure

    def _holds(self, where: Domain | None, args: list[Number]) -> tuple[Truth, Truth]:
        """Return whether an accuracy may hold for some legal arguments, and whether it holds for all."""
        if where is None:
            return Truth(self.builder, True), Truth(self.builder, True)
        x = args[where.arg]
        inside = (x.least >= where.low) & (x.most <= where.high)
        if where.outside:
            return ~inside, ~inside
        return (x.most >= where.low) & (x.least <= where.high), inside

    def inherited(self, row: Bound, result: Value, args: list[Number]) -> Real:
        """Return the bound of evaluating a formula, whose value here may differ from ours."""
        other = self.formula(row.formula, args, result.kind)
        return other.bound + abs(other.real - self.real(result))

    def formula(self, text: str, args: list[Number], kind: str) -> Number:
        """Return the value of a formula of the accuracy table, with its bound."""
        return self._formula(_parsed(text), args, kind)

    def _formula(self, node: ast.expr, args: list[Number], kind: str) -> Number:
        match node:
            case ast.Name(id=name):
                return args["xyz".index(name)]
            case ast.Constant(value=float() as number):
                constant = self.builder.const("f32", number)
                return self.number(constant if kind == "f32" else self.builder.op("convert_f32_f16", constant))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("neg", [self._formula(operand, args, kind)])
            case ast.BinOp(left=left, op=operator, right=right):
                sides = [self._formula(side, args, kind) for side in (left, right)]
                return self.apply(_OPERATORS[type(operator)], sides)
            case ast.Call(func=ast.Name(id=name), args=operands):
                return self.apply(name, [self._formula(operand, args, kind) for operand in operands])
            case _:
                raise AssertionError(f"no formula: {ast.unparse(node)}")

    def apply(self, stem: str, args: list[Number]) -> Number:
        """Apply one operation of a formula."""
        op = f"{stem}_{args[0].kind}"
        result = self.builder.op(op, *(a.value for a in args))
        return Number(result, self.real(result), self.of(op, result, args))


def _alone(most: Real, least: Real) -> Range:
    """Return the range of one factor, which a partial product may have or not."""
    return Range(most.at_least(1.0), least.at_most(1.0).at_least(0.0), 0)


_ULPS_ON_THE_WAY = 4  # more than a product or a quotient may be off by


def _is_power_of_two(value: Value) -> bool:
    return value.op == "const" and abs(frexp(float(from_bits("f32", value.imm)))[0]) == 0.5


_OPERATORS: dict[type[ast.operator], str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


@cache
def _parsed(text: str) -> ast.expr:
    """Parse a formula, which is scalar WGSL, and also valid Python."""
    return ast.parse(text, mode="eval").body


# The operator `*` is more than one operation; an fma is a sum, of a product whose rounding it carries.
_SUMS_AND_PRODUCTS = {"mul": "*", "fma": "+"}


@cache
def accuracy_of(stem: str) -> Accuracy:
    """Return the accuracy of the builtin or operator that a scalar operation computes."""
    name = _SUMS_AND_PRODUCTS.get(stem, stem)
    rows = (row for row in (*BUILTINS.values(), *OPERATORS.values()) if name in (row.op, row.name))
    return next((row.accuracy for row in rows if row.accuracy is not None), UNBOUNDED)


# Operations whose result an extreme operand may decide alone, in shaders that exponentiate.
_EXTREME = frozenset(("add", "sub", "fma", "exp", "exp2"))
_UNDERFLOWS = -256.0  # powers of 2 and of e are below all numbers here

# ---- what can be inexact ----------------------------------------------------------------------------------

_KEEPS_EXACT = frozenset(("neg", "abs", "saturate", "min", "max", "select", "sign", "step", "modf_fract", *GAPS))


def is_exact(value: Value) -> bool:
    """Whether exact operands give an exact result, the same on every implementation."""
    stem, *_ = value.op.rpartition("_")
    if value.op == "bits":
        return (value.kind in FORMATS) == (value.args[0].kind in FORMATS)
    if value.op.startswith("convert_"):
        source, target = value.args[0].kind, value.kind
        return target not in FORMATS or "bool" in (source, target) or (source, target) == ("f16", "f32")
    if value.op in ("f16_from_bits_u32", "f16_to_bits_f16") or stem in _KEEPS_EXACT or stem in COMPARISONS:
        return True
    return not ({value.kind, *(a.kind for a in value.args)} & FORMATS.keys())

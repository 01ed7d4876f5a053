"""How each scalar operation carries errors from its operands to its result, and what it adds of its own.

An implementation may have x' for our x, with |x' - x| <= the bound of x. Of an operation f it gets some r' within the
spec's accuracy of f(x'); ours, r, is f(x) rounded to nearest. So |r' - r| <= |f(x') - f(x)| + accuracy + half a unit in
the last place (ULP). The accuracy is a column of the builtin table; what it says to be inherited from a formula is
computed by that formula. The rest stands here:

    CARRY   |f(x') - f(x)| of functions that have a slope
    EXACT   operations that add nothing: sign changes, choices, steps between whole numbers

Spec: WGSL, "Floating Point Accuracy", "Differences from IEEE-754" (either direction of rounding, subnormal numbers).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, reduce
from math import log

from ...machine.scalar import OPS
from ...wgsl.builtins import BUILTINS, OPERATORS
from ...wgsl.builtins.accuracy import UNBOUNDED, Accuracy, Bound, Range
from ..bits import from_bits
from ..ir import Value
from .arithmetic import INF, Real, Truth, Writer
from .shapes import Shapes

INFLATED = 1 + 2.0**-20  # pays for the up to 15 roundings of one bound
_EXPONENT = 0x7F800000


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
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


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms that are added so many times in some order: what they carry, and the sum of their magnitudes."""

    carried: Real
    size: Real
    times: int


class Rules:
    """`bound(result)` of a value of the program whose operands have bounds."""

    def __init__(self, writer: Writer, bounds: Mapping[Value, Real], shapes: Shapes) -> None:
        self.writer = writer
        self.bounds = bounds
        self._shapes = shapes
        self._sums: dict[Value, Sum] = {}

    def real(self, value: Value | float) -> Real:
        if isinstance(value, Value) and value.kind != "f32":
            value = self.writer.bits(value, "f32")
        return Real(self.writer, value)

    def number(self, value: Value) -> Number:
        bound = self.bounds.get(value)
        return Number(value, self.real(value), self.flushed(value) if bound is None else bound)

    def flushed(self, value: Value) -> Real:
        """The bound of an exact value: a subnormal constant may be taken for zero."""
        if value.op == "const" and value.kind in FORMATS:
            number = abs(float(from_bits("f32", value.imm)))
            return self.real(number if number < FORMATS[value.kind].least else 0.0)
        return self.real(0.0)

    def subnormal(self, value: Value) -> Real:
        """The bound of an exact float that is not known to be normal."""
        number = abs(self.real(value))
        return (number < FORMATS[value.kind].least).choose(number, 0.0)

    def bound(self, result: Value) -> Real:
        return self.of(result.op, result, [self.number(a) for a in result.args])

    def of(self, op: str, result: Value, args: list[Number]) -> Real:
        """The bound of `result`, which is `op` of `args`."""
        stem, _, kind = op.rpartition("_")
        if op == "bits":
            return _reinterpreted(self, result, args)
        if op.startswith("convert_"):
            return CONVERSIONS.get((args[0].kind, result.kind), _any)(self, result, args)
        if stem in COMPARISONS and kind in FORMATS:
            return _compare(self, result, args)
        rule = OF_ANY.get(op) or OF_ANY.get(stem) or (EXACT.get(stem) if kind in FORMATS else None)
        if rule is not None:
            return rule(self, result, args)
        if result.kind in FORMATS:
            return self.computed(stem, result, args)
        return _any(self, result, args)

    # ---- operations that round ----

    def computed(self, stem: str, result: Value, args: list[Number]) -> Real:
        """What is carried, and what the accuracy table allows."""
        accuracy = accuracy_of(stem)
        rows = accuracy.f16 if result.kind == "f16" else accuracy.f32
        carried = CARRY.get(stem, _words)(self, result, args)
        ulps, more, covered = self.real(0.5), carried, Truth(self.writer, False)
        for row in rows:
            here, within = self._holds(row.where, args)
            covered = covered | within
            match row.kind:
                case "correct":
                    ulps = ulps + here.choose(1.0, 0.0)
                case "ulp":
                    amount = self.real(row.amount) + (args[0].most * row.slope if row.slope else 0.0)
                    ulps = ulps + here.choose(amount, 0.0)
                case "abs":
                    more = more + here.choose(row.amount, 0.0)
                case "inherits":
                    more = more + self.inherited(row, result, args)
                case _:
                    more = more + INF
        if any(row.where and row.where.outside for row in rows):  # the other row is for inside
            covered = Truth(self.writer, True)
        total = covered.choose(self.rounded(result, more, ulps), INF)
        return self.settled(stem, result, args, total) if stem in RESIDUES else total

    def settled(self, stem: str, result: Value, args: list[Number], total: Real) -> Real:
        """The bound of a sum or product whose own rounding may be none, or may come in another order."""
        reordered = self.reordered(stem, result, args) if stem != "mul" else None
        if reordered is not None:
            return reordered
        if result not in self._shapes.delicate:
            return total
        sure = reduce(Truth.__and__, (a.bound.is_sure for a in args))
        return (sure & self.is_whole(stem, result, args)).choose(0.0, total)

    def reordered(self, stem: str, result: Value, args: list[Number]) -> Real | None:
        """The bound of a sum of three terms or more, which may be added in any order."""
        parts = [self._sums.get(a.value) or Sum(a.bound, a.most, 0) for a in args[-2:]]
        if stem == "fma":
            product = self.number(result)  # a stand-in for x * y
            size = args[0].most * args[1].most * INFLATED
            carried = CARRY["mul"](self, product.value, args[:2])
            parts[0] = Sum(self.power(size).times_plus(FORMATS[result.kind].ulp, carried), size, 0)
        whole = Sum(parts[0].carried + parts[1].carried, parts[0].size + parts[1].size, 1 + sum(p.times for p in parts))
        if result in self._shapes.terms:
            self._sums[result] = whole
        if whole.times == 1:
            return None
        return self.in_any_order(result, whole.carried, whole.size, self.real(whole.times))

    def is_whole(self, stem: str, result: Value, args: list[Number]) -> Truth:
        """Whether nothing was rounded off a result: then no implementation may have another."""
        exact, residue = RESIDUES[stem](*(a.real for a in args))
        size = abs(self.real(result))
        form = FORMATS[result.kind]  # of small f32 the residue itself may be flushed
        normal = (size >= (form.least if result.kind == "f16" else form.least / form.ulp)) | size.is_sure
        return normal & abs(residue).is_sure & abs(exact - self.real(result)).is_sure

    def rounded(self, result: Value, carried: Real, ulps: Real | float, kind: str = "") -> Real:
        """The bound of a result that carries an error, and is `ulps` off at most.

        A result just below a power of two may stand for one above, hence the ULP more in what the ULP is taken of.
        """
        form = FORMATS[kind or result.kind]
        size = abs(self.real(result))
        # A flush, and what underflows in here; of f16 a flush is too large to be granted where there can be none.
        carried = carried.times_plus(INFLATED, 2 * form.least if form is FORMATS["f32"] else 0.0)
        most = size.times_plus(1 + 2 * form.ulp, carried)
        # In another order a product's factors may be just above a power of two, where the ULP weighs most.
        unit = most if result in self._shapes.factors else self.power(most)
        total = unit.times_plus(self.real(form.ulp * INFLATED) * ulps, carried)
        if form is FORMATS["f32"]:
            return total
        total = total + (size - carried < form.least).choose(form.least, 0.0)
        return (most <= form.largest).choose(total, INF)

    def power(self, x: Real) -> Real:
        """The power of two that is x or next below it, of x > 0."""
        bits = self.writer.op("and_u32", self.writer.bits(x.value, "u32"), self.writer.const("u32", _EXPONENT))
        return self.real(self.writer.bits(bits, "f32"))

    def in_any_order(self, result: Value, carried: Real, size: Real, times: Real) -> Real:
        """The bound of a result of so many roundings in an order that is left open; nothing on the way is larger than
        `size`, and ours was made in the same way."""
        form = FORMATS[result.kind]
        size = size * (1 + 2.0**-10)  # it was added up here with roundings too, of up to 128 lanes
        each = self.power(size).times_plus(2 * form.ulp * INFLATED, 2 * form.least)
        total = each.times_plus(times, carried * (1 + 2.0**-10))
        return (size <= form.largest).choose(total, INF)

    def _holds(self, where: Range | None, args: list[Number]) -> tuple[Truth, Truth]:
        """Whether an accuracy may hold for some legal arguments, and whether it holds for all."""
        if where is None:
            return Truth(self.writer, True), Truth(self.writer, True)
        x = args[where.arg]
        low, high = (x.real - x.bound, x.real + x.bound) if where.signed else (x.least, x.most)
        if where.outside:
            inside = (low >= where.low) & (high <= where.high)
            return ~inside, ~inside
        return (high >= where.low) & (low <= where.high), (low >= where.low) & (high <= where.high)

    def inherited(self, row: Bound, result: Value, args: list[Number]) -> Real:
        """As far off as evaluating a formula, whose value here may be another than ours."""
        other = self.evaluate(formula_of(row.formula), args, result.kind)
        return other.bound + abs(other.real - self.real(result))

    def evaluate(self, node: ast.expr, args: list[Number], kind: str) -> Number:
        """The formula's value, and its bound."""
        match node:
            case ast.Name(id=name):
                return args["xyz".index(name)]
            case ast.Constant(value=float() as number):
                constant = self.writer.const("f32", number)
                return self.number(constant if kind == "f32" else self.writer.op("convert_f32_f16", constant))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.apply("neg", [self.evaluate(operand, args, kind)])
            case ast.BinOp(left=left, op=operator, right=right):
                sides = [self.evaluate(side, args, kind) for side in (left, right)]
                return self.apply(_OPERATORS[type(operator)], sides)
            case ast.Call(func=ast.Name(id=name), args=operands):
                return self.apply(name, [self.evaluate(operand, args, kind) for operand in operands])
            case _:
                raise AssertionError(f"no formula: {ast.unparse(node)}")

    def apply(self, stem: str, args: list[Number]) -> Number:
        """One operation of a formula."""
        op = f"{stem}_{args[0].kind}"
        result = self.writer.op(op, *(a.value for a in args))
        return Number(result, self.real(result), self.of(op, result, args))

    def unless(self, alike: Truth, bound: Real | float = INF) -> Real:
        """Nothing where all implementations agree."""
        return alike.choose(0.0, bound)


_OPERATORS = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}


@cache
def formula_of(text: str) -> ast.expr:
    """A formula of the accuracy table: scalar WGSL, which happens to be Python as well."""
    return ast.parse(text, mode="eval").body


@cache
def accuracy_of(stem: str) -> Accuracy:
    """The row of the builtin or operator that a scalar operation computes."""
    name = {"mul": "*"}.get(stem, stem)  # an operator that is more than one operation
    rows = (row for row in (*BUILTINS.values(), *OPERATORS.values()) if name in (row.op, row.name))
    return next((row.accuracy for row in rows if row.accuracy is not None), UNBOUNDED)


Rule = Callable[[Rules, Value, list[Number]], Real]


# ---- what is rounded off -------------------------------------------------------------------------------------


def _rounded_off_sum(x: Real, y: Real) -> tuple[Real, Real]:
    """Knuth's: x + y as f32 has it, and exactly what that lacks."""
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


def _words(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Of operands that are no floats nothing may be another."""
    words = [a for a in args if a.kind not in FORMATS]
    return rules.unless(_any(rules, result, words).is_sure) if words else rules.real(0.0)


def _product(rules: Rules, result: Value, args: list[Number]) -> Real:
    x, y = args
    return _scaled_by(y.bound, abs(x.real), _scaled_by(x.bound, y.most, rules.real(0.0)))


def _scaled_by(bound: Real, size: Real, more: Real) -> Real:
    """bound * size + more, also where the size is 0: zero times what nobody knows is nothing that anybody knows."""
    return bound.unknown + more if size.is_zero and not bound.is_zero else bound.times_plus(size, more)


def _quotient(rules: Rules, result: Value, args: list[Number]) -> Real:
    x, y = args
    error = abs(rules.real(result)).times_plus(y.bound / y.least, x.bound / y.least)
    return (y.least > 0.0).choose(error, INF)


def _sum(rules: Rules, result: Value, args: list[Number]) -> Real:
    return args[0].bound + args[1].bound


def _multiply_add(rules: Rules, result: Value, args: list[Number]) -> Real:
    """A product that others may round, added."""
    x, y, z = args
    form, size = FORMATS[result.kind], x.most * y.most * INFLATED
    error = _product(rules, result, [x, y]) + z.bound + form.least
    error = rules.power(size).times_plus(form.ulp, error)
    return rules.rounded(result, (size <= form.largest).choose(error, INF), 1.5)


def _reinterpreted(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Bits on their way through a bitcast may be flushed. What is picked from a variable only gets its kind back."""
    (x,) = args
    crosses = (result.kind in FORMATS) != (x.kind in FORMATS)
    if not crosses or x.value.op == "pick":
        return x.bound
    return x.bound + rules.subnormal(result if result.kind in FORMATS else x.value)


def _same(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Functions that are nowhere steeper than 1."""
    return args[0].bound


def _exponential(base: float) -> Rule:
    def carry(rules: Rules, result: Value, args: list[Number]) -> Real:
        """f(x) (b^e - 1) <= f(x) e ln(b) b^e"""
        error = args[0].bound * log(base)
        return (abs(rules.real(result)) + FORMATS[result.kind].least) * error * error.called("exp")

    return carry


def _logarithm(base: float) -> Rule:
    def carry(rules: Rules, result: Value, args: list[Number]) -> Real:
        low = args[0].real - args[0].bound
        return (low > 0.0).choose(args[0].bound / low * (1 / log(base)), INF)

    return carry


def _inverse_root(rules: Rules, result: Value, args: list[Number]) -> Real:
    low = args[0].real - args[0].bound
    return (low > 0.0).choose(args[0].bound / low * low.called("inverseSqrt") * 0.5, INF)


def _angle(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Moved by e at a distance r, a point turns by e / r at most. Nothing is promised where y may be no normal number,
    and so at the cut."""
    y, x = args
    distance = x.least.at_least(y.least)
    normal = y.least >= FORMATS[result.kind].least
    return normal.choose((x.bound + y.bound) / distance, INF)


CARRY: dict[str, Rule] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
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


# ---- operations that add nothing -----------------------------------------------------------------------------


def _any(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Of integers: whatever may be another in one operand may be another in the result."""
    return reduce(Real.__add__, (a.bound for a in args))


def _root(rules: Rules, result: Value, args: list[Number]) -> Real:
    """1 / inverseSqrt(x); near zero, of what is never negative, something from 0 to the root of the most it can be."""
    (x,) = args
    if not never_negative(x.value):
        return rules.computed("sqrt", result, args)
    near = (x.most + FORMATS[x.kind].least).called("sqrt") * INFLATED
    near = rules.rounded(result, near, 4.0)
    return (x.least > 0.0).choose(rules.computed("sqrt", result, args), near)


def never_negative(x: Value) -> bool:
    """Whether every implementation gets 0 or more: seen from how it is computed."""
    stem, args = x.op.partition("_")[0], x.args
    match stem:
        case "const":
            return x.kind in FORMATS and float(from_bits("f32", x.imm)) >= 0.0
        case "abs" | "exp" | "exp2" | "sqrt" | "inverseSqrt" | "saturate" | "cosh":
            return True
        case "mul":
            return args[0] is args[1] or all(map(never_negative, args))
        case "add" | "div" | "min":
            return all(map(never_negative, args))
        case "max":
            return any(map(never_negative, args))
        case "fma":
            return (args[0] is args[1] or all(map(never_negative, args[:2]))) and never_negative(args[2])
        case "select":
            return all(map(never_negative, args[:2]))
        case _:
            return False


def _largest(rules: Rules, result: Value, args: list[Number]) -> Real:
    """The largest bound of the operands; a NaN among them is kept."""
    largest, *rest = (a.bound for a in args)
    for other in rest:
        if not other.is_zero:
            largest = other if largest.is_zero else largest.at_least(other) + (largest + other).unknown
    return largest


def _clamp(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Where low > high, min(max(x, low), high) and the median of the three differ."""
    _, low, high = args
    return _largest(rules, result, args) + (low.real - high.real).at_least(0.0)


def _select(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Where the condition may be another, the result may be the other operand."""
    no, yes, condition = args
    chosen = Truth(rules.writer, condition.value).choose(yes.bound, no.bound)
    if condition.bound.is_zero:
        return chosen
    if result.kind in FORMATS:
        other = abs(yes.real - no.real) + _largest(rules, result, [no, yes])
    else:
        same = Truth(rules.writer, rules.writer.op(f"eq_{result.kind}", no.value, yes.value))
        other = rules.unless(same) + no.bound + yes.bound
    return condition.bound.is_sure.choose(chosen, other)


def _logic(absorbing: int) -> Rule:
    """An operand that surely is `absorbing` decides alone."""

    def rule(rules: Rules, result: Value, args: list[Number]) -> Real:
        sure = Truth(rules.writer, False)
        for a in args:
            truth = Truth(rules.writer, a.value)
            sure = sure | (a.bound.is_sure & (truth if absorbing else ~truth))
        return sure.choose(0.0, _any(rules, result, args))

    return rule


def _compare(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Sure where the operands are further apart than their bounds."""
    x, y = args
    slack = (x.bound + y.bound).times_plus(INFLATED, 0.0)
    return rules.unless((abs(x.real - y.real) - slack > 0.0) | slack.is_sure)


def _stays(x: Number, gap: Real) -> Truth:
    """No jump lies within the bound of x, from which the next one is `gap` away."""
    return (gap > x.bound.times_plus(INFLATED, 0.0)) | x.bound.is_sure


def _gap_floor(x: Real) -> Real:
    below = x - x.called("floor")
    above = x.like(1.0) - below
    return (below < above).choose(below, above)


def _gap_trunc(x: Real) -> Real:
    """Around zero there is no jump."""
    size = abs(x)
    return (size < 1.0).choose(x.like(1.0) - size, _gap_floor(size))


def _gap_round(x: Real) -> Real:
    return x.like(0.5) - abs(x - x.called("round"))


_GAPS = {"floor": _gap_floor, "ceil": _gap_floor, "trunc": _gap_trunc, "round": _gap_round, "modf_whole": _gap_trunc}


def _whole(stem: str) -> Rule:
    """To a whole number: the same one, or as far off as x and one more."""

    def rule(rules: Rules, result: Value, args: list[Number]) -> Real:
        (x,) = args
        return rules.unless(_stays(x, _GAPS[stem](x.real)), x.bound + 1.0)

    return rule


def _modf_fract(rules: Rules, result: Value, args: list[Number]) -> Real:
    return _whole("trunc")(rules, result, args) + args[0].bound


def _sign(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(_stays(args[0], abs(args[0].real)), args[0].bound.unknown + 2.0)


def _step(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(_compare(rules, result, args).is_sure, _any(rules, result, args).unknown + 1.0)


def _fraction(rules: Rules, result: Value, args: list[Number]) -> Real:
    """frexp: the same exponent, or nothing is known."""
    (x,) = args
    scale = abs(rules.real(result)) / abs(x.real)
    return x.bound.is_sure.choose(0.0, rules.unless(_same_exponent(rules, x)) + x.bound * scale)


def _exponent(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(_same_exponent(rules, args[0]) | args[0].bound.is_sure)


def _same_exponent(rules: Rules, x: Number) -> Truth:
    low, high = rules.power(x.least), rules.power(x.most)
    return (low >= high) & (x.least >= FORMATS[x.kind].least)


def _scaled(rules: Rules, result: Value, args: list[Number]) -> Real:
    """ldexp: exact, unless the result is subnormal or too large."""
    x, exponent = args
    least, size = FORMATS[result.kind].least, abs(rules.real(result))
    error = rules.real(rules.writer.op("ldexp_f32", x.bound.value, exponent.value))
    total = error + (size - error < least).choose(2 * least, 0.0)
    return (size + error <= FORMATS[result.kind].largest).choose(total, INF) + rules.unless(exponent.bound.is_sure)


def _half(rules: Rules, result: Value, args: list[Number]) -> Real:
    """f32 rounded to f16, either way; exact where it is one."""
    (x,) = args
    same = x.bound.is_sure & abs(rules.real(result) - x.real).is_sure
    return same.choose(x.bound, rules.rounded(result, x.bound, 1.5, "f16"))


def _packed(formula: str) -> Rule:
    """Components that become integers by a formula of floats: the same ones, or the word is another."""

    def rule(rules: Rules, result: Value, args: list[Number]) -> Real:
        total = rules.real(0.0)
        for x in args:
            scaled = rules.evaluate(formula_of(formula), [x], "f32")
            total = total + rules.unless(_stays(scaled, _gap_floor(scaled.real)))
        return total

    return rule


def _packed_halves(rules: Rules, result: Value, args: list[Number]) -> Real:
    return reduce(
        Real.__add__,
        (_half(rules, half, [x]) for x in args for half in [rules.writer.op("quantizeToF16_f32", x.value)]),
    )


def _unpacked_half(rules: Rules, result: Value, args: list[Number]) -> Real:
    size = abs(rules.real(result))
    return _any(rules, result, args) + (size < FORMATS["f16"].least).choose(size, 0.0)


EXACT: dict[str, Rule] = {
    "fma": _multiply_add,
    "sqrt": _root,
    "neg": _any,
    "abs": _any,
    "saturate": _any,
    "min": _largest,
    "max": _largest,
    "clamp": _clamp,
    **{stem: _whole(stem) for stem in _GAPS},
    "modf_fract": _modf_fract,
    "sign": _sign,
    "step": _step,
    "frexp_fract": _fraction,
    "frexp_exp": _exponent,
    "ldexp": _scaled,
    "quantizeToF16": _half,
    "pack4x8snorm": _packed("0.5 + 127.0 * clamp(x, -1.0, 1.0)"),
    "pack4x8unorm": _packed("0.5 + 255.0 * clamp(x, 0.0, 1.0)"),
    "pack2x16snorm": _packed("0.5 + 32767.0 * clamp(x, -1.0, 1.0)"),
    "pack2x16unorm": _packed("0.5 + 65535.0 * clamp(x, 0.0, 1.0)"),
    "pack2x16float": _packed_halves,
}
# Of operands that need not be floats.
OF_ANY: dict[str, Rule] = {
    "select": _select,
    "and_bool": _logic(0),
    "or_bool": _logic(1),
    "f16_from_bits": _any,
    "f16_to_bits": _any,
    "unpack2x16float": _unpacked_half,
}
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


# ---- conversions ---------------------------------------------------------------------------------------------


def _to_integer(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(_stays(args[0], _gap_trunc(args[0].real)))


def _to_bool(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(_stays(args[0], abs(args[0].real)))


def _from_integer(rules: Rules, result: Value, args: list[Number]) -> Real:
    """Exact up to the largest number to which all are representable."""
    (x,) = args
    form, size = FORMATS[result.kind], abs(rules.real(result))
    rounding = (size < form.whole).choose(0.0, rules.rounded(result, rules.real(0.0), 1.5))
    return rounding + rules.unless(x.bound.is_sure)


def _from_bool(rules: Rules, result: Value, args: list[Number]) -> Real:
    return rules.unless(args[0].bound.is_sure, 1.0)


CONVERSIONS: dict[tuple[str, str], Rule] = {
    ("f32", "f16"): _half,
    ("f16", "f32"): _any,
    **{(a, b): _to_integer for a in FORMATS for b in ("i32", "u32")},
    **{(a, b): _from_integer for a in ("i32", "u32") for b in FORMATS},
    **{(a, "bool"): _to_bool for a in FORMATS},
    **{("bool", b): _from_bool for b in FORMATS},
}


# ---- what can be off at all ----------------------------------------------------------------------------------

_STILL = frozenset(("neg", "abs", "saturate", "min", "max", "select", "sign", "step", "modf_fract", *_GAPS))


def is_exact(value: Value) -> bool:
    """Whether exact operands give an exact result, the same on every implementation."""
    stem, *_ = value.op.rpartition("_")
    if value.op == "bits":
        return (value.kind in FORMATS) == (value.args[0].kind in FORMATS)
    if value.op.startswith("convert_"):
        source, target = value.args[0].kind, value.kind
        return target not in FORMATS or "bool" in (source, target) or (source, target) == ("f16", "f32")
    if value.op in ("f16_from_bits_u32", "f16_to_bits_f16") or stem in _STILL or stem in COMPARISONS:
        return True
    return not ({value.kind, *(a.kind for a in value.args)} & FORMATS.keys())


def is_loose(op: str) -> bool:
    """Whether the specification asks less than correct rounding of an operation. Whether fma rounds once or twice is
    known of a device."""
    row = OPS.get(op)
    if row is None or row.result not in FORMATS or op.startswith(("fma_", "convert_")):
        return False
    accuracy = accuracy_of(op.rpartition("_")[0])
    bounds = accuracy.f16 if row.result == "f16" else accuracy.f32
    return accuracy is not UNBOUNDED and any(bound.kind != "correct" for bound in bounds)

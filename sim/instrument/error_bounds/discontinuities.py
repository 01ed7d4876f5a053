"""Rules of operations that add no error, that are discontinuous, or that convert between kinds.

`EXACT` has operations on floats, `OF_ANY` operations on any kind, `CONVERSIONS` those by source and target kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...ir.bottom_up import bottom_up
from ...ir.ir import Value
from ...ir.register_bits import from_bits
from .arithmetic import INF, Real, Truth
from .formats import FORMATS, INFLATED
from .rule_context import Number, Rule, RuleContext

# ---- operations that add nothing -----------------------------------------------------------------------------


def of_any(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Add the bounds of the operands. For integers: if an operand may differ, so may the result."""
    return reduce(Real.__add__, (a.bound for a in args))


def reinterpreted(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """A bitcast may flush a subnormal. A value that is picked from a variable only gets its kind back."""
    (x,) = args
    crosses = (result.kind in FORMATS) != (x.kind in FORMATS)
    if not crosses or x.value.op == "pick":
        return x.bound
    if result.kind in FORMATS:
        return x.bound + rules.subnormal(result)
    return x.bound + rules.subnormal(x.value) + _zero_of_either_sign(rules, x)


def _zero_of_either_sign(rules: RuleContext, x: Number) -> Real:
    """The bits of a computed zero are unknown: its sign may be ignored. Spec: "Differences from IEEE-754"."""
    return rules.real(0.0) if x.bound.is_zero else rules.unless(~abs(x.real).is_sure)


def _root(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """1 / inverseSqrt(x); near zero, if x is never negative, anything from 0 to the root of the largest x."""
    (x,) = args
    if not never_negative(x.value, rules.signs):
        return rules.computed("sqrt", result, args)
    near = (x.most + FORMATS[x.kind].least).called("sqrt") * INFLATED
    near = rules.rounded(result, near, 4.0)
    return (x.least > 0.0).choose(rules.computed("sqrt", result, args), near)


_KEEP_SIGNS = ("mul", "add", "div", "min", "max", "fma", "select")  # operations whose sign depends on their operands


def never_negative(x: Value, known: dict[Value, bool]) -> bool:
    """Whether every implementation gets 0 or more, judging by how the value is computed. `known`: results so far."""
    return bottom_up(
        x, known, lambda each: each.args if each.op.partition("_")[0] in _KEEP_SIGNS else (), _never_negative
    )


def _never_negative(x: Value, args: Sequence[bool]) -> bool:
    """Whether a value is 0 or more, from whether its operands are."""
    match x.op.partition("_")[0]:
        case "const":
            return x.kind in FORMATS and float(from_bits("f32", x.imm)) >= 0.0
        case "abs" | "exp" | "exp2" | "sqrt" | "inverseSqrt" | "saturate" | "cosh":
            return True
        case "mul":
            return x.args[0] is x.args[1] or all(args)
        case "add" | "div" | "min":
            return all(args)
        case "max":
            return any(args)
        case "fma":
            return (x.args[0] is x.args[1] or all(args[:2])) and args[2]
        case "select":
            return all(args[:2])
        case _:
            return False


def _largest(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """The largest bound of the operands; a NaN among them stays."""
    largest, *rest = (a.bound for a in args)
    for other in rest:
        if not other.is_zero:
            largest = other if largest.is_zero else largest.at_least(other) + (largest + other).unknown
    return largest


def _clamp(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Where low > high, min(max(x, low), high) and the median of the three differ."""
    _, low, high = args
    return _largest(rules, result, args) + (low.real - high.real).at_least(0.0)


def _select(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """If the condition may differ, the result may be the other operand."""
    no, yes, condition = args
    chosen = Truth(rules.builder, condition.value).choose(yes.bound, no.bound)
    if condition.bound.is_zero:
        return chosen
    if result.kind in FORMATS:
        other = abs(yes.real - no.real) + _largest(rules, result, [no, yes])
    else:
        same = Truth(rules.builder, rules.builder.op(f"eq_{result.kind}", no.value, yes.value))
        other = rules.unless(same) + no.bound + yes.bound
    return condition.bound.is_sure.choose(chosen, other)


def _logic(absorbing: int) -> Rule:
    """Return the rule of and/or: an operand that certainly is `absorbing` decides alone."""

    def rule(rules: RuleContext, result: Value, args: list[Number]) -> Real:
        sure = Truth(rules.builder, False)
        for a in args:
            truth = Truth(rules.builder, a.value)
            sure = sure | (a.bound.is_sure & (truth if absorbing else ~truth))
        return sure.choose(0.0, of_any(rules, result, args))

    return rule


def compare(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Certain where the operands are further apart than their bounds."""
    x, y = args
    slack = (x.bound + y.bound).times_plus(INFLATED, 0.0)
    return rules.unless((abs(x.real - y.real) - slack > 0.0) | slack.is_sure)


def _stays(x: Number, gap: Real) -> Truth:
    """Whether no discontinuity lies within the bound of x, if the next one is `gap` away."""
    return (gap > x.bound.times_plus(INFLATED, 0.0)) | x.bound.is_sure


def _gap_floor(x: Real) -> Real:
    below = x - x.called("floor")
    above = x.like(1.0) - below
    return (below < above).choose(below, above)


def _gap_trunc(x: Real) -> Real:
    """The distance to the next discontinuity of trunc; there is none around zero."""
    size = abs(x)
    return (size < 1.0).choose(x.like(1.0) - size, _gap_floor(size))


def _gap_round(x: Real) -> Real:
    return x.like(0.5) - abs(x - x.called("round"))


GAPS = {"floor": _gap_floor, "ceil": _gap_floor, "trunc": _gap_trunc, "round": _gap_round, "modf_whole": _gap_trunc}


def _whole(stem: str) -> Rule:
    """Return the rule of rounding to a whole number: the same one, or as far off as x, plus one."""

    def rule(rules: RuleContext, result: Value, args: list[Number]) -> Real:
        (x,) = args
        return rules.unless(_stays(x, GAPS[stem](x.real)), x.bound + 1.0)

    return rule


def _modf_fract(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return _whole("trunc")(rules, result, args) + args[0].bound


def _sign(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    (x,) = args
    return rules.unless(_stays(x, abs(x.real)), x.bound.unknown + 2.0)


def _step(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return rules.unless(compare(rules, result, args).is_sure, of_any(rules, result, args).unknown + 1.0)


def _fraction(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """frexp: the same exponent, or no bound."""
    (x,) = args
    scale = abs(rules.real(result)) / abs(x.real)
    return x.bound.is_sure.choose(0.0, rules.unless(_same_exponent(rules, x)) + x.bound * scale)


def _exponent(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return rules.unless(_same_exponent(rules, args[0]) | args[0].bound.is_sure)


def _same_exponent(rules: RuleContext, x: Number) -> Truth:
    low, high = rules.power(x.least), rules.power(x.most)
    return (low >= high) & (x.least >= FORMATS[x.kind].least)


def _scaled(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """ldexp: exact, unless the result is subnormal or too large."""
    x, exponent = args
    least, size = FORMATS[result.kind].least, abs(rules.real(result))
    error = rules.real(rules.builder.op("ldexp_f32", x.bound.value, exponent.value))
    total = error + (size - error < least).choose(2 * least, 0.0)
    return (size + error <= FORMATS[result.kind].largest).choose(total, INF) + rules.unless(exponent.bound.is_sure)


def _half(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """f32 rounded to f16, up or down; exact if it is an f16."""
    (x,) = args
    same = x.bound.is_sure & abs(rules.real(result) - x.real).is_sure
    return same.choose(x.bound, rules.rounded(result, x.bound, 1.5, "f16"))


def _packed(formula: str) -> Rule:
    """Return the rule of components that a float formula turns into integers: the same ones, or the word differs."""

    def rule(rules: RuleContext, result: Value, args: list[Number]) -> Real:
        total = rules.real(0.0)
        for x in args:
            scaled = rules.formula(formula, [x], "f32")
            total = total + rules.unless(_stays(scaled, _gap_floor(scaled.real)))
        return total

    return rule


def _packed_halves(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    halves = [(rules.builder.op("quantizeToF16_f32", x.value), x) for x in args]
    return reduce(Real.__add__, (_half(rules, half, [x]) + _zero_of_either_sign(rules, x) for half, x in halves))


def _unpacked_half(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    size = abs(rules.real(result))
    return of_any(rules, result, args) + (size < FORMATS["f16"].least).choose(size, 0.0)


EXACT: dict[str, Rule] = {
    "sqrt": _root,
    "neg": of_any,
    "abs": of_any,
    "saturate": of_any,
    "min": _largest,
    "max": _largest,
    "clamp": _clamp,
    **{stem: _whole(stem) for stem in GAPS},
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
# Operations whose operands need not be floats.
OF_ANY: dict[str, Rule] = {
    "select": _select,
    "and_bool": _logic(0),
    "or_bool": _logic(1),
    "f16_from_bits": of_any,
    "f16_to_bits": of_any,
    "unpack2x16float": _unpacked_half,
}
COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


# ---- conversions ---------------------------------------------------------------------------------------------


def _to_integer(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return rules.unless(_stays(args[0], _gap_trunc(args[0].real)))


def _to_bool(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return rules.unless(_stays(args[0], abs(args[0].real)))


def _from_integer(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    """Exact up to the largest number up to which all integers are representable."""
    (x,) = args
    form, size = FORMATS[result.kind], abs(rules.real(result))
    rounding = (size < form.whole).choose(0.0, rules.rounded(result, rules.real(0.0), 1.5))
    return rounding + rules.unless(x.bound.is_sure)


def _from_bool(rules: RuleContext, result: Value, args: list[Number]) -> Real:
    return rules.unless(args[0].bound.is_sure, 1.0)


CONVERSIONS: dict[tuple[str, str], Rule] = {
    ("f32", "f16"): _half,
    ("f16", "f32"): of_any,
    **{(a, b): _to_integer for a in FORMATS for b in ("i32", "u32")},
    **{(a, b): _from_integer for a in ("i32", "u32") for b in FORMATS},
    **{(a, "bool"): _to_bool for a in FORMATS},
    **{("bool", b): _from_bool for b in FORMATS},
}

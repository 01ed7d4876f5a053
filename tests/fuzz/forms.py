"""Every way to make a value of a type by one operation: the builtin table's overloads, written as text with holes.

`FORMS[result][name]` are the forms of one builtin, operator or constructor. Where an operation promises nothing for
some arguments (`log` of a negative number), or a program is no program with them (a constant shift of 40), `GUARDED`
and `LIMITED` keep those arguments out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from bankshot.sim.codegen.inexact_ops import is_inexact_op
from bankshot.sim.wgsl import types as t
from bankshot.sim.wgsl.builtins import BUILTINS, CONSTRUCTORS, OPERATORS, Builtin, Candidate


@dataclass(frozen=True, slots=True)
class Form:
    """`text` has a hole `{0}`, `{1}`, … for each of `params`. `limited`: arguments that, where they are constants, must
    be small, and each larger than the one before. `free`: implementations are sure to differ in it."""

    text: str
    params: tuple[t.Type, ...]
    limited: tuple[int, ...]
    free: bool


# `R` is the result type, `P` that of the first argument, `I` and `U` are the integers of `R`'s shape: all can be called
# with a number for all components. A name may say of what arguments alone.
GUARDED: Mapping[str, str] = {
    "acos": "acos(clamp({0}, {R}(-1), {R}(1)))",
    "acosh": "acosh(abs({0}) + {R}(1))",
    "asin": "asin(clamp({0}, {R}(-1), {R}(1)))",
    "atan2": "atan2({0}, abs({1}) + {R}(0.25))",
    "atanh": "atanh(clamp({0}, {R}(-0.9), {R}(0.9)))",
    "cosh": "cosh(clamp({0}, {R}(-6), {R}(6)))",
    "exp": "exp(clamp({0}, {R}(-6), {R}(6)))",
    "exp2": "exp2(clamp({0}, {R}(-8), {R}(8)))",
    "inverseSqrt": "inverseSqrt(abs({0}) + {R}(0.25))",
    "ldexp": "ldexp({0}, clamp({1}, {I}(-6), {I}(6)))",
    "log": "log(abs({0}) + {R}(0.25))",
    "log2": "log2(abs({0}) + {R}(0.25))",
    "normalize": "normalize({0} + {R}(3))",
    "pow": "pow(abs({0}) + {R}(0.25), clamp({1}, {R}(-4), {R}(4)))",
    "quantizeToF16": "quantizeToF16(clamp({0}, {R}(-60000), {R}(60000)))",
    "sin": "sin(clamp({0}, {R}(-3), {R}(3)))",
    "cos": "cos(clamp({0}, {R}(-3), {R}(3)))",
    "sinh": "sinh(clamp({0}, {R}(-6), {R}(6)))",
    "smoothstep": "smoothstep({R}(-0.5) - abs({0}), {R}(0.5) + abs({1}), {2})",
    "sqrt": "sqrt(abs({0}))",
    "tan": "tan(clamp({0}, {R}(-1.5), {R}(1.5)))",
    "tanh": "tanh(clamp({0}, {R}(-6), {R}(6)))",
    "unpack2x16float": "unpack2x16float({0} & 0xbbffbbffu)",
    # Of integers any order is defined.
    "clamp of floats": "clamp({0}, -abs({1}), abs({2}))",
    # wgpu refuses constant components of 32 and more, also beside others that vary.
    "<< of vectors": "({0} << ({1} & {U}(31u)))",
    ">> of vectors": "({0} >> ({1} & {U}(31u)))",
}
# Bits that become a float: its exponent is made a plain one.
BITCAST: Mapping[t.Scalar, str] = {
    t.F32: "bitcast<{R}>(({0} & {P}(0x7fffff)) | {P}(0x3f000000))",
    t.F16: "bitcast<{R}>(({0} & {P}(0x3ff03ff)) | {P}(0x38003800))",
}
# Integer arguments that the reader rejects where it sees that they are out of range.
LIMITED: Mapping[str, tuple[int, ...]] = {
    **{name: (1,) for name in ("/", "%", "<<", ">>")},
    "clamp": (1, 2),
    "extractBits": (1, 2),
    "insertBits": (2, 3),
}
_LEFT_OUT = frozenset(("determinant", "refract"))  # nothing is promised; a root of what may be negative
_HALF_LEFT_OUT = frozenset(("bitcast", "frexp"))  # wgpu refuses those of f16, see `known`


def _shapes(row: Builtin) -> Iterator[tuple[t.Type, Form]]:
    """Every overload without abstract types, with the type that it makes."""
    for signature in row.overloads:
        if signature.open_variables:
            continue
        for candidate in signature.candidates(()):
            result, params = candidate.result, candidate.params
            if result is None or not all(map(t.is_concrete, (*candidate.templates, *params, result))):
                continue
            if row.name in _HALF_LEFT_OUT and any(map(is_half, (*params, result))):
                continue
            whole = all(t.element_of(p) in t.INTEGERS for p in params)
            free = is_inexact_op(f"{row.op}_f32") or row.name in ("pow", "tanh")
            form = Form(_text(row, candidate), params, LIMITED.get(row.name, ()) if whole else (), free)
            if isinstance(result, t.Struct):
                for member in result.members:
                    yield member.type, replace(form, text=f"{form.text}.{member.name}")
            else:
                yield result, form


def _text(row: Builtin, candidate: Candidate) -> str:
    first, result = (candidate.params or (None,))[0], candidate.result
    if guard := _guard(row.name, first, result):
        types = {"R": result, "P": first}
        if isinstance(result, t.Scalar | t.Vec):
            types |= {"I": t.with_element(result, t.I32), "U": t.with_element(result, t.U32)}
        for letter, type_ in types.items():
            guard = guard.replace(f"{{{letter}}}", str(type_))
        return guard
    holes = [f"{{{i}}}" for i in range(len(candidate.params))]
    if row.name in OPERATORS:
        operator = row.name.removeprefix("unary ")
        return f"({holes[0]} {operator} {holes[1]})" if len(holes) == 2 else f"{operator}({holes[0]})"
    templates = f"<{', '.join(map(str, candidate.templates))}>" if candidate.templates else ""
    return f"{row.name}{templates}({', '.join(holes)})"


def is_half(type_: t.Type) -> bool:
    """Whether a type is f16, or of f16."""
    return isinstance(type_, t.Scalar | t.Vec | t.Mat) and t.element_of(type_) == t.F16


def _guard(name: str, first: t.Type | None, result: t.Type | None) -> str | None:
    """The text for an operation whose arguments are kept in limits."""
    if first is None or result is None:
        return None
    if name == "bitcast":
        return BITCAST.get(t.element_of(result)) if t.element_of(first) in t.INTEGERS else None
    kinds = {" of floats": t.is_float(t.element_of(first)), " of vectors": isinstance(first, t.Vec), "": True}
    return next((GUARDED[name + kind] for kind, holds in kinds.items() if holds and name + kind in GUARDED), None)


def _forms() -> dict[t.Type, dict[str, list[Form]]]:
    found: dict[t.Type, dict[str, list[Form]]] = defaultdict(lambda: defaultdict(list))
    rows = [row for table in (CONSTRUCTORS, OPERATORS, BUILTINS) for row in table.values()]
    for row in rows:
        if row.kind != "effect" and row.name not in _LEFT_OUT:
            for result, form in _shapes(row):
                if form.params:
                    found[result][row.name].append(form)
    for operator in ("&&", "||"):
        found[t.BOOL][operator].append(Form(f"({{0}} {operator} {{1}})", (t.BOOL, t.BOOL), (), False))
    return found


FORMS = _forms()

"""Constructors of typed expressions that fold: a const-expression becomes a `Const`.

The checker builds every expression with them. Pipeline creation builds the same expressions again, with every override
replaced by its value (`Substitution`), so that the same code finds the errors. Spec: WGSL, "Early Evaluation
Expressions".

A `Const` whose value is None is a const-expression that is *not evaluated* (right of a decided `&&` or `||`): its type
is known, and an expression made of it is not evaluated either.
"""

from __future__ import annotations

from collections.abc import Mapping

from .. import typed
from .. import types as t
from ..builtins import Builtin
from ..diagnostics import fail, first_words
from ..source import Span
from . import const_eval, overloads
from .const_checks import CHECKS


def is_early(expr: typed.Expr) -> bool:
    """Whether an expression is an override-expression (const-expressions are): known by pipeline creation."""
    match expr:
        case typed.Const() | typed.OverrideRef():
            return True
        case typed.BuiltinCall():
            return expr.builtin.const and all(is_early(a) for a in expr.args)
        case typed.Construct():
            return all(is_early(a) for a in expr.args)
        case typed.Convert():
            return is_early(expr.arg)
        case typed.ShortCircuit():
            return is_early(expr.left) and is_early(expr.right)
        case typed.Index():
            return is_early(expr.base) and is_early(expr.index)
        case typed.Member() | typed.Swizzle():
            return is_early(expr.base)
        case _:
            return False


# ---- conversions ---------------------------------------------------------------------------------------


def convertible(from_: t.Type, to: t.Type) -> bool:
    """Whether there is a feasible automatic conversion. Spec: "Conversion Rank"."""
    return overloads.conversion_rank(from_, to) is not None


def convert(expr: typed.Expr, to: t.Type) -> typed.Expr:
    """Apply an automatic conversion that is feasible."""
    if expr.type is to or expr.type == to:
        return expr
    assert isinstance(expr, typed.Const)  # only constants may be abstract
    value = None if expr.value is None else const_eval.convert(expr.value, expr.type, to, expr.span)
    return typed.Const(to, expr.span, value)


def concrete(expr: typed.Expr) -> typed.Expr:
    """Make an expression concrete: abstract-int becomes i32, abstract-float f32."""
    if type(expr) is not typed.Const:  # only constants may be abstract
        return expr
    return convert(expr, overloads.concretize(expr.type))


def conversion(type_: t.Type, arg: typed.Expr, span: Span) -> typed.Expr:
    """Build an explicit value conversion, `f32(i)`."""
    if isinstance(arg, typed.Const):
        value = None if arg.value is None else const_eval.convert(arg.value, arg.type, type_, span, explicit=True)
        return typed.Const(type_, span, value)
    return typed.Convert(type_, span, arg)


def same_shape(one: t.Type, other: t.Type) -> bool:
    """Whether two types have one shape, so that a constructor converts: scalars, or vectors or matrices of one size."""
    match one, other:
        case t.Scalar(), t.Scalar():
            return True
        case t.Vec(), t.Vec():
            return one.size == other.size
        case t.Mat(), t.Mat():
            return (one.cols, one.rows) == (other.cols, other.rows)
        case _:
            return False


def conversion_hint(made: typed.Expr, to: t.Type) -> str | None:
    """Return a hint where a value has the right shape and the wrong kind of number, or is a pointer to the value."""
    from_, text = made.type, first_words(made.span.text)
    if isinstance(from_, t.Pointer):
        return _pointer_hint(text, from_, to)
    if isinstance(to, t.Pointer) and from_ == to.store and isinstance(made, typed.Load):
        return f"write &{text} for a pointer to it"
    if isinstance(to, t.Vec) and isinstance(from_, t.Scalar) and overloads.conversion_rank(from_, to.elem) is not None:
        return f"write {to}({text}) for a vector of equal components"
    if to == t.BOOL and isinstance(from_, t.Scalar):
        return f"compare it: {overloads.operand(text)} != 0"
    if to == t.BOOL and isinstance(from_, t.Vec) and from_.elem == t.BOOL:
        return f"write all({text}) or any({text})"
    if isinstance(to, t.Scalar) and isinstance(from_, t.Vec) and (from_.elem == to or to == t.U32):
        return f"take one of its components: {overloads.operand(text)}.x"
    if isinstance(to, t.Vec) and isinstance(from_, t.Vec) and from_.elem == to.elem and from_.size != to.size:
        added = f"add to its components: {to}({text}, …)"
        return added if from_.size < to.size else f"take {to.size} of its components: {text}.{'xyzw'[: to.size]}"
    return f"convert it: {to}({text})" if same_shape(from_, to) else None


def _pointer_hint(text: str, from_: t.Pointer, to: t.Type) -> str | None:
    """Return a hint for a pointer, written as `text`, where another type is required."""
    value = text[1:] if text.startswith("&") else f"*{text}"
    if isinstance(to, t.Pointer):
        declare = f"declare the pointer as {from_}"
        if from_.store == to.store or not same_shape(from_.store, to.store):
            return declare
        return f"{declare}, or point to a converted copy: var copy = {to.store}({value});"
    if from_.store == to:
        return f"write {value} for the value that it points to"
    return f"convert the value that it points to: {to}({value})" if same_shape(from_.store, to) else None


# ---- constructors--------------------------------------------------------------------------------------


def constants(args: list[typed.Expr]) -> int:
    """Return how many of these are constants."""
    count = 0
    for arg in args:
        if type(arg) is typed.Const:
            count += 1
    return count


def builtin_call(builtin: Builtin, args: list[typed.Expr], known: int, result: t.Type, span: Span) -> typed.Expr:
    """Build a call of a builtin function or operator, with its arguments already converted, of which `known` are
    constants.

    Raises `WgslError`, also where the known arguments alone are an error (`x / 0`).
    """
    is_const = builtin.const and 0 < known == len(args)
    if not is_const and (not known or builtin.name not in CHECKS):
        return typed.BuiltinCall(result, span, builtin, args)
    values = [a.value if isinstance(a, typed.Const) else None for a in args]
    if is_const:
        evaluated = None not in values
        value = const_eval.evaluate(builtin, [a.type for a in args], values, result, span) if evaluated else None
        return typed.Const(result, span, value)
    const_eval.partial_check(builtin, [a.type for a in args], values, span)
    return typed.BuiltinCall(result, span, builtin, args)


def construct(type_: t.Type, args: list[typed.Expr], span: Span) -> typed.Expr:
    """Build a composite of its parts, or a zero value where there are none."""
    if not all(isinstance(a, typed.Const) for a in args):
        return typed.Construct(type_, span, args)
    if not args:
        return typed.Const(type_, span, const_eval.zero(type_))
    values = [a.value for a in args if isinstance(a, typed.Const)]
    known = None not in values
    return typed.Const(type_, span, const_eval.construct(type_, [a.type for a in args], values) if known else None)


def short_circuit(op: str, left: typed.Expr, right: typed.Expr, span: Span) -> typed.Expr:
    """Build `&&` or `||` of two bools; `right` is not evaluated where `left` decides."""
    if decides(op, left):
        return typed.Const(t.BOOL, span, op == "||")
    if isinstance(left, typed.Const) and isinstance(right, typed.Const):
        return typed.Const(t.BOOL, span, None if left.value is None else right.value)
    return typed.ShortCircuit(t.BOOL, span, op, left, right)


def decides(op: str, left: typed.Expr) -> bool:
    """Whether the left operand of `&&` or `||` decides the result."""
    return isinstance(left, typed.Const) and left.value is (op == "||")


def index(base: typed.Expr, at: typed.Expr, span: Span) -> typed.Expr:
    """Build `base[at]` of a vector, matrix or array, or of a reference to one; `at` is i32 or u32."""
    whole = base.type.store if isinstance(base.type, t.Reference) else base.type
    _check_bounds(whole, at)
    if isinstance(base, typed.Const) and isinstance(at, typed.Const):
        element = None if base.value is None or at.value is None else base.value[at.value]
        return typed.Const(element_type(whole), span, element)
    if not isinstance(base.type, t.Reference):
        base = concrete(base)
        return typed.Index(element_type(base.type), span, base, at)
    return typed.Index(_part(base.type, element_type(whole)), span, base, at)


def member(base: typed.Expr, position: int, span: Span) -> typed.Expr:
    """Build the member of a struct, or of a reference to one."""
    whole = base.type.store if isinstance(base.type, t.Reference) else base.type
    assert isinstance(whole, t.Struct)
    type_ = whole.members[position].type
    if isinstance(base, typed.Const):
        return typed.Const(type_, span, None if base.value is None else base.value[position])
    if isinstance(base.type, t.Reference):
        type_ = _part(base.type, type_)
    return typed.Member(type_, span, base, position)


def swizzle(base: typed.Expr, components: tuple[int, ...], span: Span) -> typed.Expr:
    """Build `v.x` or `v.xyz`; of a reference, a reference to one component, or to several (an assignment's target)."""
    whole = base.type.store if isinstance(base.type, t.Reference) else base.type
    assert isinstance(whole, t.Vec)
    type_ = whole.elem if len(components) == 1 else t.Vec(len(components), whole.elem)
    if isinstance(base, typed.Const):
        picked = None if base.value is None else tuple(base.value[c] for c in components)
        return typed.Const(type_, span, picked[0] if picked and len(components) == 1 else picked)
    if isinstance(base.type, t.Reference):
        return typed.Swizzle(_part(base.type, type_), span, base, components)
    return typed.Swizzle(type_, span, base, components)


def _part(whole: t.Reference, type_: t.Type) -> t.Reference:
    return t.Reference(whole.space, type_, whole.access)


def element_type(type_: t.Type) -> t.Type:
    """Return the type of an element of a vector or array, or of a column of a matrix."""
    match type_:
        case t.Mat():
            return t.Vec(type_.rows, type_.elem)
        case t.Vec() | t.Array():
            return type_.elem
        case _:
            raise TypeError(f"{type_} has no elements")


def _check_bounds(whole: t.Type, at: typed.Expr) -> None:
    if not isinstance(at, typed.Const) or at.value is None:
        return
    match whole:
        case t.Vec():
            count = whole.size
        case t.Mat():
            count = whole.cols
        case t.Array():
            count = whole.count if isinstance(whole.count, int) else None
        case _:
            count = None
    if at.value < 0 or (count is not None and at.value >= count):
        limit = "" if count is None else f" of {whole}, which has {count} elements"
        hint = f"the indices are 0 to {count - 1}" if count else "the first index is 0"
        raise fail("index-out-of-bounds", f"index {at.value} is out of bounds{limit}", at.span, hint=hint)


# ---- pipeline creation ---------------------------------------------------------------------------------


class Substitution:
    """Replaces overrides by their values: expressions fold as far as possible, array sizes become known.

    Raises `WgslError` for the errors that this uncovers, as pipeline creation must.
    """

    def __init__(self, values: Mapping[typed.Override, typed.Value]) -> None:
        self._values = values

    def type(self, type_: t.Type) -> t.Type:
        """Resolve the override-sized array in a type."""
        match type_:
            case t.Array(count=t.OverrideCount() as count):
                return t.Array(type_.elem, self._count(count))
            case t.Reference() | t.Pointer():
                return type(type_)(type_.space, self.type(type_.store), type_.access)
            case _:
                return type_

    def _count(self, count: t.OverrideCount) -> int:
        made = self.expr(count.expr)
        assert isinstance(made, typed.Const)
        if made.value < 1:
            raise fail("array-length", f"an array length must be at least 1, not {made.value}", made.span)
        return made.value

    def expr(self, expr: typed.Expr, live: bool = True) -> typed.Expr:
        """Rebuild an expression without overrides; `live` False: without evaluating."""
        if not self._values:
            return expr  # the checker has folded it
        if isinstance(expr, typed.ShortCircuit):
            left = self.expr(expr.left, live)
            right = self.expr(expr.right, live and not decides(expr.op, left))
            return short_circuit(expr.op, left, right, expr.span)
        return self._rebuilt(expr, [self.expr(part, live) for part in typed.children(expr)], live)

    def _rebuilt(self, expr: typed.Expr, parts: list[typed.Expr], live: bool) -> typed.Expr:
        span = expr.span
        match expr:
            case typed.Const():
                return expr if live else typed.Const(expr.type, span, None)
            case typed.OverrideRef():
                return typed.Const(expr.type, span, self._values[expr.override] if live else None)
            case typed.VarRef() | typed.ValueRef():
                return type(expr)(self.type(expr.type), span, expr.var)
            case typed.BuiltinCall():
                return builtin_call(expr.builtin, parts, constants(parts), expr.type, span)
            case typed.Construct():
                return construct(expr.type, parts, span)
            case typed.Convert():
                return conversion(expr.type, parts[0], span)
            case typed.Index():
                return index(parts[0], parts[1], span)
            case typed.Member():
                return member(parts[0], expr.index, span)
            case typed.Swizzle():
                return swizzle(parts[0], expr.components, span)
            case typed.Load():
                return typed.Load(expr.type, span, *parts)
            case typed.AddressOf():
                return typed.AddressOf(self.type(expr.type), span, *parts)
            case typed.Deref():
                return typed.Deref(self.type(expr.type), span, *parts)
            case typed.Call():
                return typed.Call(expr.type, span, expr.function, parts)
            case _:
                return expr

    def check(self, stmt: typed.Stmt) -> None:
        """Check the expressions of a statement, without those of its nested blocks."""
        parts = [self.expr(part) for part in typed.operands(stmt)]
        if isinstance(stmt, typed.CompoundAssign):
            # The left operand is unknown, but `x /= 0` is an error.
            target, value = parts
            assert isinstance(target.type, t.Reference)
            loaded = typed.Load(target.type.store, target.span, target)
            builtin_call(stmt.builtin, [loaded, value], constants([value]), stmt.result, stmt.span)

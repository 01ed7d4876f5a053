"""Calls: user functions, builtin functions, operators and value constructors.

`overloads` resolves the overload; the arguments are checked, converted and combined here. Spec: WGSL, "Function Calls"
and "Value Constructor Built-in Functions".
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from ...fast_dataclass import frozen
from .. import typed
from .. import types as t
from ..builtins import BUILTINS, OPERATORS, Builtin
from ..diagnostics import Note, counted, fail, first_words
from ..syntax import tree
from . import buffer_views, const_eval, fold, overloads
from .check_types import check_held, predeclared
from .scopes import Generator, TypeName, declared, describe

if TYPE_CHECKING:
    from .check_expressions import Expressions

MAX_ARRAY_CONSTRUCTOR = 65535  # spec, "Limits", requires at least 2047; tables of 2048 entries are in use

_UNARY_ROWS = {"-": "unary -", "!": "!", "~": "~"}
_INFERRING = ("vec", "mat", "array")  # generators whose template arguments a constructor infers


@frozen
class Called:
    """A checked call. Without a value it is only valid as a statement; if it must be used, only as an expression."""

    expr: typed.Expr
    has_value: bool
    must_use: bool


def call(e: Expressions, expr: tree.Call) -> Called:
    """Check `callee(args)`. Raises `WgslError`."""
    callee = expr.callee
    entity = e.resolve(callee.name, callee.name_span)
    match entity:
        case Builtin() if entity.name in buffer_views.BUFFER_BUILTINS:
            return Called(buffer_views.check_call(e, entity, expr), True, True)
        case Builtin():
            return _builtin(e, entity, expr)
        case TypeName() | Generator():
            return Called(_construct(e, entity, expr), True, True)
        case typed.Function():
            if callee.args is not None:
                raise fail("unexpected-template", f"function '{callee.name}' takes no template arguments", callee.span)
            return _function(e, entity, expr)
        case _:
            message = f"'{callee.name}' is {describe(entity)} and cannot be called"
            hint = f"for a product, write {callee.name} * (…)" if len(expr.args) == 1 else None
            if callee.name in BUILTINS or predeclared(callee.name):
                hint = f"it hides WGSL's own '{callee.name}' here: give it another name"
            raise fail("not-callable", message, callee.name_span, *declared(entity), hint=hint)


def operator(e: Expressions, op: str, operands: list[typed.Expr], node: tree.Node) -> typed.Expr:
    """Apply a unary or binary operator of a syntax node to values. Raises `WgslError`."""
    row = OPERATORS[_UNARY_ROWS[op] if len(operands) == 1 else op]
    if op in ("<<", ">>"):
        _check_shift_amount(op, operands[1])
    return _apply(row, (), operands, node)


def _check_shift_amount(op: str, amount: typed.Expr) -> None:
    """Raise `WgslError` for an abstract amount below zero, where the conversion to u32 would be refused."""
    if not isinstance(amount, typed.Const) or not isinstance(amount.type, (t.Scalar, t.Vec)) or amount.value is None:
        return
    if t.element_of(amount.type) == t.ABSTRACT_INT and min(const_eval.flatten(amount.value)) < 0:
        hint = f"write {'>>' if op == '<<' else '<<'} to shift the other way"
        raise fail("shift-too-far", "the shift amount must not be negative", amount.span, hint=hint)


# ---- user functions ------------------------------------------------------------------------------------


def _function(e: Expressions, function: typed.Function, expr: tree.Call) -> Called:
    if function.stage:
        declared = Note("declared here", function.span)
        raise fail("entry-point-call", f"'{function.name}' is an entry point and cannot be called", expr.span, declared)
    if len(expr.args) != len(function.params):
        wanted = counted(len(function.params), len(function.params), "argument")
        declared = Note(f"'{function.name}' declared here", function.span)
        message = f"'{function.name}' takes {wanted}, not {len(expr.args)}"
        raise fail("wrong-argument-count", message, expr.span, declared)
    args = [_argument(e, function, p, a) for p, a in zip(function.params, expr.args, strict=True)]
    e.uses.calls.setdefault(function, expr.span)
    made = typed.Call(function.result or typed.NOTHING, expr.span, function, args)
    return Called(made, function.result is not None, function.must_use)


def _argument(e: Expressions, function: typed.Function, param: typed.Variable, arg: tree.Expr) -> typed.Expr:
    value = e.value(arg)
    if t.narrows_buffer(value.type, param.type):
        return value
    if not fold.convertible(value.type, param.type):
        declared = Note(f"'{param.name}' declared here", param.span)
        hint = fold.conversion_hint(value, param.type)
        message = f"parameter '{param.name}' of '{function.name}' is {param.type}, but the argument is {value.type}"
        raise fail("type-mismatch", message, arg.span, declared, hint=hint)
    if isinstance(param.type, t.Pointer) and not e.supports("unrestricted_pointer_parameters") and e.is_part(value):
        message = f"parameter '{param.name}' takes only a pointer to a whole variable"
        raise fail("unsupported-feature", message, arg.span)
    return fold.convert(value, param.type)


# ---- builtin functions and operators -------------------------------------------------------------------


def _builtin(e: Expressions, row: Builtin, expr: tree.Call) -> Called:
    callee = expr.callee
    if row.requires:
        e.module.need_feature(row.requires, f"'{callee.name}'", callee.name_span)
    e.uses.builtins.setdefault(row.name, expr.span)
    templates = tuple(e.type_of(a) for a in callee.args or ())
    args = [_builtin_argument(e, row, i, a) for i, a in enumerate(expr.args)]
    made = _apply(row, templates, args, expr)
    has_value = made.type != typed.NOTHING
    return Called(made, has_value, row.must_use and has_value)


def _builtin_argument(e: Expressions, row: Builtin, i: int, arg: tree.Expr) -> typed.Expr:
    """Check an argument. Raises `WgslError`, with a hint for a variable where its address is asked for."""
    made = e.check(arg)
    if isinstance(made.type, t.Reference) and _takes_pointer(row, i):
        message = f"argument {i + 1} of '{row.name}' must be a pointer, not a variable"
        raise fail("type-mismatch", message, arg.span, hint=f"write &{first_words(arg.span.text)}")
    if isinstance(made.type, t.Pointer) and isinstance(made.type.store, t.Buffer):
        hint = f"write bufferLength({first_words(arg.span.text)})" if row.name == "arrayLength" else None
        raise fail("type-mismatch", f"'{row.name}' takes no pointer to a buffer", arg.span, hint=hint)
    if row.name == "length" and isinstance(made.type, t.Reference) and isinstance(made.type.store, t.Array):
        hint = f"write arrayLength(&{first_words(arg.span.text)})" if made.type.store.count is None else None
        raise fail("type-mismatch", f"'length' takes a vector, not {made.type.store}", arg.span, hint=hint)
    return e.load(made)


@cache
def _takes_pointer(row: Builtin, i: int) -> bool:
    """Whether an argument must be a pointer in every overload that has it."""
    params = [s.params[i] for s in row.overloads if i < len(s.params)]
    return bool(params) and all(param.name == "ptr" for param in params)


def _apply(row: Builtin, templates: tuple[t.Type, ...], args: list[typed.Expr], node: tree.Node) -> typed.Expr:
    known = fold.constants(args)
    types, all_const = tuple([arg.type for arg in args]), row.const and known == len(args)
    chosen = overloads.find(row, templates, types, all_const)
    if chosen is None:
        chosen = overloads.resolve(row, templates, types, node.op_span, [a.span for a in args], all_const=all_const)
    for i in chosen.const_params:
        if not isinstance(args[i], typed.Const):
            message = f"argument {i + 1} of '{row.name}' must be a const-expression"
            raise fail("not-constant", message, args[i].span)
    converted = args
    if types != chosen.params:
        converted = [fold.convert(a, p) for a, p in zip(args, chosen.params, strict=True)]
    return fold.builtin_call(row, converted, known, chosen.result or typed.NOTHING, node.span)


# ---- value constructors --------------------------------------------------------------------------------


def _construct(e: Expressions, entity: TypeName | Generator, expr: tree.Call) -> typed.Expr:
    target = _target(e, entity, expr)
    args = [e.value(a) for a in expr.args]
    spans = [a.span for a in expr.args]
    all_const = all(isinstance(a, typed.Const) for a in args)
    types = [a.type for a in args]
    chosen = overloads.resolve_constructor(target, types, expr.span, spans, all_const=all_const)
    type_ = chosen.result
    assert type_ is not None
    if len(args) > MAX_ARRAY_CONSTRUCTOR:  # nothing but an array has so many parts
        message = f"an array constructor takes at most {MAX_ARRAY_CONSTRUCTOR} elements, not {len(args)}"
        raise fail("limit", message, expr.span)
    check_held(type_, expr.span)
    converted = [fold.convert(a, p) for a, p in zip(args, chosen.params, strict=True)]
    if len(converted) == 1 and fold.same_shape(converted[0].type, type_):
        return fold.conversion(type_, converted[0], expr.span)
    return fold.construct(type_, converted, expr.span)


def _target(e: Expressions, entity: TypeName | Generator, expr: tree.Call) -> t.Type | str:
    """Return the type to construct, or the name of the generator whose arguments the call infers."""
    callee = expr.callee
    if isinstance(entity, Generator) and callee.args is None:
        if entity.name.startswith(_INFERRING):
            return entity.name
        raise fail("not-constructible", f"'{callee.name}' cannot be constructed", callee.span)
    type_ = e.types.named(entity, callee) if isinstance(entity, TypeName) else e.types.generated(entity, callee)
    if not t.is_constructible(type_):
        raise fail("not-constructible", f"a value of type {type_} cannot be constructed", callee.span)
    check_held(type_, callee.span)
    return type_

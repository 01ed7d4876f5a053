"""The target of an assignment: why it cannot be assigned to, and how to declare it so that it can.

Spec: WGSL, "Assignment Statement".
"""

from __future__ import annotations

from .. import typed
from .. import types as t
from ..diagnostics import Note, WgslError, fail, first_words
from ..source import Span
from ..syntax import tree
from . import overloads
from .check_expressions import Expressions
from .scopes import Constant


def refuse_value(expressions: Expressions, function: typed.Function, expr: tree.Expr) -> None:
    """Raise `WgslError` for an assignment to a name that is a value for good: its declaration can be changed."""
    root = _root_name(expr)
    if root is None:
        return
    entity = expressions.resolve(root.name, root.name_span)
    match entity:
        case typed.Variable(space=None, type=t.Pointer()):
            return
        case typed.Variable(space=None) if any(entity is param for param in function.params):
            kind, hint = "a parameter", f"assign to a copy: var copy = {entity.name};"
        case typed.Variable(space=None):
            kind, hint = "a 'let'", f"declare it with 'var {entity.name}'"
        case Constant():
            local = expressions.scope is not None and expressions.scope.lookup(root.name) is not None
            kind, hint = "a 'const'", f"declare it with '{'var' if local else 'var<private>'} {entity.name}'"
        case typed.Override():
            kind, hint = "an 'override'", f"assign to a copy: var copy = {entity.name};"
        case _:
            return
    declared = Note(f"'{entity.name}' declared here", entity.span)
    message = f"'{entity.name}' is {kind}, which cannot be assigned to"
    raise fail("not-assignable", message, expr.span, declared, hint=hint)


def _root_name(expr: tree.Expr) -> tree.Ident | None:
    """Return the name of which a target is a part, or None where it is behind an operator."""
    while isinstance(expr, (tree.Index, tree.Member, tree.Paren)):
        expr = expr.inner if isinstance(expr, tree.Paren) else expr.base
    return expr if isinstance(expr, tree.Ident) else None


def read_only(target: typed.Expr, span: Span) -> WgslError:
    """Return the error of an assignment to read-only memory, with the name of the variable where it is known."""
    root = target
    while not isinstance(root, (typed.VarRef, typed.Deref)):
        root = typed.children(root)[0]
    if isinstance(root, typed.Deref):
        return fail("not-assignable", f"what a {root.pointer.type} points to can only be read", span)
    declared = Note(f"'{root.var.name}' declared here", root.var.span)
    hint = {
        "storage": "declare it as var<storage, read_write>",
        "uniform": "what is written must be in var<storage, read_write>",
    }.get(root.var.space or "")
    return fail("not-assignable", f"'{root.var.name}' can only be read", span, declared, hint=hint)


def check_update(store: t.Type, op: str, value: typed.Expr) -> None:
    """Raise `WgslError` for a value of another kind of number: only the value can be converted, not the target."""
    if not isinstance(store, (t.Scalar, t.Vec, t.Mat)) or not isinstance(value.type, (t.Scalar, t.Vec, t.Mat)):
        return
    elem, given = t.element_of(store), t.element_of(value.type)
    if op in ("<<", ">>") or t.BOOL in (elem, given) or overloads.conversion_rank(given, elem) is not None:
        return
    hint = f"convert it: {t.with_element(value.type, elem)}({first_words(value.span.text)})"
    raise fail("type-mismatch", f"'{op}=' on {store} does not take {value.type}", value.span, hint=hint)

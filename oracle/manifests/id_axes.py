"""Along which axes of a grid the workgroups of a shader differ: those of the ids that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from ...sim.wgsl import typed
from ...sim.wgsl import types as t

# Built-in values that differ between workgroups, and the axes that they depend on.
_IDS = {
    "global_invocation_id": {0, 1, 2},
    "workgroup_id": {0, 1, 2},
    "global_invocation_index": {0},
    "workgroup_index": {0},
}


def id_axes(entry: typed.Function) -> set[int]:
    """The axes of the ids that an entry point reads."""
    found: set[int] = set()
    copies: dict[typed.Variable, str] = {}
    narrowed: set[int] = set()  # ids of which components are taken, or that a `let` names
    assert entry.body is not None
    for statement in typed.statements(entry.body):
        if isinstance(statement, typed.LetDecl) and (name := _id_of(statement.init, copies)):
            copies[statement.var] = name
            narrowed.add(id(statement.init))
    ids = {id(expr): name for expr in typed.every_expression(entry) if (name := _id_of(expr, copies))}
    for expr in typed.every_expression(entry):
        if isinstance(expr, typed.Swizzle) and id(expr.base) in ids:
            narrowed.add(id(expr.base))
            found.update(expr.components)
    for number, name in ids.items():
        if number not in narrowed:
            found |= _IDS[name]
    return found


def _id_of(expr: typed.Expr, copies: Mapping[typed.Variable, str]) -> str | None:
    """Return which built-in value of `_IDS` an expression is, as a parameter, a member of one or one of `copies`, by
    the `let` that names it; None for others."""
    name = None
    if isinstance(expr, typed.ValueRef):
        name = copies.get(expr.var) or expr.var.builtin
    elif isinstance(expr, typed.Member) and isinstance(expr.base, typed.ValueRef):
        struct = expr.base.type
        assert isinstance(struct, t.Struct)
        name = struct.members[expr.index].attrs.get("builtin")
    return name if name in _IDS else None

"""Checks that need every function: recursion, static accesses, and what each pipeline stage may use.

Spec: WGSL, "Declaration and Scope" (no recursion), "Resource Interface", "Address Spaces".
"""

from __future__ import annotations

from collections.abc import Iterator

from .. import typed
from .. import types as t
from ..builtins import BUILTINS
from ..diagnostics import Note, WgslError, fail
from ..source import Span
from .aliasing import check_aliasing
from .behavior import check_behavior
from .static_uses import AllUses, Uses


def analyse(module: typed.Module, uses: AllUses) -> list[typed.Function]:
    """Check a module whose declarations are checked, and fill in the calls and static accesses of its functions.

    Returns the functions, callees first. Raises `WgslError`.
    """
    functions = list(module.functions.values())
    for function in functions:
        function.calls = list(uses[function].calls)
    order = _callees_first(functions, uses)
    for function in order:
        check_behavior(function)
        _collect(function, uses)
    check_aliasing(order)
    for function in functions:
        if function.stage:
            _check_entry_point(function, uses)
    return order


# ---- the call graph ------------------------------------------------------------------------------------


def _callees_first(functions: list[typed.Function], uses: AllUses) -> list[typed.Function]:
    """Sort functions by depth-first search, with a stack of its own: chains of calls may be long."""
    order: dict[typed.Function, None] = {}
    for root in functions:
        if root in order:
            continue
        path: dict[typed.Function, Span] = {root: root.span}
        todo = [iter(uses[root].calls.items())]
        while todo:
            callee, called_at = next(todo[-1], (None, None))
            if callee is None or called_at is None:
                todo.pop()
                order[path.popitem()[0]] = None
            elif callee in path:
                raise _recursion(callee, called_at, path)
            elif callee not in order:
                path[callee] = called_at
                todo.append(iter(uses[callee].calls.items()))
    return list(order)


def _recursion(function: typed.Function, called_at: Span, path: dict[typed.Function, Span]) -> WgslError:
    cycle = list(path)[list(path).index(function) :]
    notes = [Note(f"which calls '{callee.name}'", path[callee]) for callee in cycle[1:]]
    message = f"function '{function.name}' calls itself"
    hint = "WGSL has no recursion: write a loop, with an array as the stack where it needs one"
    return fail("recursive-declaration", message, called_at, *notes, hint=hint)


# ---- static accesses -----------------------------------------------------------------------------------


def _collect(function: typed.Function, uses: AllUses) -> None:
    """Collect the variables and overrides that a function accesses, also through calls. Its callees have theirs."""
    variables: dict[typed.Variable, None] = dict.fromkeys(uses[function].globals)
    overrides: dict[typed.Override, None] = dict.fromkeys(uses[function].overrides)
    for callee in function.calls:
        variables.update(dict.fromkeys(callee.globals))
        overrides.update(dict.fromkeys(callee.overrides))
    for variable in variables:
        overrides.update(dict.fromkeys(uses[variable].overrides))
        overrides.update(dict.fromkeys(_sizing_overrides(variable.type)))
    function.globals = sorted(variables, key=lambda v: v.span.start)
    function.overrides = sorted(overrides, key=lambda o: o.span.start)


def _sizing_overrides(type_: t.Type) -> Iterator[typed.Override]:
    if isinstance(type_, t.Array) and isinstance(type_.count, t.OverrideCount):
        for part in typed.expressions(type_.count.expr):
            if isinstance(part, typed.OverrideRef):
                yield part.override


# ---- entry points --------------------------------------------------------------------------------------


def _check_entry_point(entry: typed.Function, uses: AllUses) -> None:
    _check_bindings(entry)
    for function in typed.reached(entry):
        _check_stage(entry, function, uses[function])
    immediates = [v for v in entry.globals if v.space == "immediate"]
    if len(immediates) > 1:
        message = f"entry point '{entry.name}' uses two variables in the immediate address space"
        raise fail("immediate", message, immediates[1].span, Note("the other one", immediates[0].span))


def _check_bindings(entry: typed.Function) -> None:
    seen: dict[tuple[int, int], typed.Variable] = {}
    for variable in entry.globals:
        if variable.binding is None:
            continue
        other = seen.setdefault(variable.binding, variable)
        if other is not variable:
            group, binding = variable.binding
            hint = "give one of them another @binding"
            message = (
                f"'{variable.name}' and '{other.name}' share @group({group}) @binding({binding}) in '{entry.name}'"
            )
            raise fail("duplicate-binding", message, variable.span, Note("also bound here", other.span), hint=hint)


_WITH_LEVEL = ("textureSample", "textureSampleCompare")


def _check_stage(entry: typed.Function, function: typed.Function, used: Uses) -> None:
    stage = entry.stage
    assert stage is not None
    through = [] if function is entry else [Note(f"reached from {stage} entry point '{entry.name}'", entry.span)]
    for name, span in used.builtins.items():
        if stage not in BUILTINS[name].stages:
            hint = f"write {name}Level, with the level of detail" if name in _WITH_LEVEL else None
            raise fail("builtin-stage", f"'{name}' cannot be used in a {stage} shader", span, *through, hint=hint)
    if used.discard and stage != "fragment":
        hint = "to end the invocation, write return;"
        raise fail("discard-stage", f"a {stage} shader cannot discard", used.discard, *through, hint=hint)
    for variable, span in used.globals.items():
        problem = _stage_problem(stage, variable)
        if problem:
            message = f"'{variable.name}' is {problem} and cannot be used in a {stage} shader"
            raise fail("variable-stage", message, span, *through)


def _stage_problem(stage: str, variable: typed.Variable) -> str | None:
    if variable.space == "workgroup" and stage != "compute":
        return "in the workgroup address space"
    if stage != "vertex":
        return None
    if variable.space == "storage" and variable.access != "read":
        return "a writable storage buffer"
    written = isinstance(variable.type, t.Texture) and variable.type.access in ("write", "read_write")
    return "a writable storage texture" if written else None

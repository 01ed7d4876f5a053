"""Behavior analysis: a function with a result returns on every path, and every loop can be left.

The behavior of a statement is the set of ways in which control leaves it: Next, Return, Break and Continue. Spec: WGSL,
"Statements Behavior Analysis".
"""

from __future__ import annotations

from .. import typed
from ..diagnostics import fail

Behavior = frozenset[str]

NEXT, RETURN, BREAK, CONTINUE = (frozenset((name,)) for name in ("Next", "Return", "Break", "Continue"))


def check_behavior(function: typed.Function) -> None:
    """Raise `WgslError` where a function may end without its result, or a loop can never be left."""
    assert function.body is not None
    behavior = behavior_of(function.body)
    if function.result is not None and behavior != RETURN:
        message = f"function '{function.name}' does not return a value of type {function.result} on every path"
        raise fail("missing-return", message, function.span, hint="end it with a 'return'")


def behavior_of(stmt: typed.Stmt) -> Behavior:
    """Return the behavior of a statement. Raises `WgslError` where it has none."""
    match stmt:
        case typed.Assign() | typed.VarDecl() | typed.LetDecl():  # the most frequent
            return NEXT
        case typed.Block():
            return _sequence(stmt.body)
        case typed.Return():
            return RETURN
        case typed.Break():
            return BREAK
        case typed.Continue():
            return CONTINUE
        case typed.If():
            return behavior_of(stmt.then) | (behavior_of(stmt.orelse) if stmt.orelse else NEXT)
        case typed.Switch():
            return _switch(stmt)
        case typed.Loop():
            return _loop(stmt)
        case _:
            return NEXT


def _sequence(body: list[typed.Stmt]) -> Behavior:
    result = NEXT
    for stmt in body:
        behavior = behavior_of(stmt)
        if behavior is not NEXT and "Next" in result:
            result = (result - NEXT) | behavior
    return result


def _switch(stmt: typed.Switch) -> Behavior:
    every = Behavior().union(*(behavior_of(case.body) for case in stmt.cases))
    return (every - BREAK) | NEXT if "Break" in every else every


def _loop(stmt: typed.Loop) -> Behavior:
    body = behavior_of(stmt.body)
    if stmt.condition is not None:
        # The loop begins with `if !condition { break; }`.
        body = body | BREAK
    continuing = behavior_of(stmt.continuing) if stmt.continuing else NEXT
    if stmt.break_if is not None:
        continuing = continuing | BREAK
    if body == RETURN:
        return RETURN
    every = body | continuing
    result = (every | NEXT) - BREAK - CONTINUE if "Break" in every else every - CONTINUE - NEXT
    if not result:
        raise fail("endless-loop", "this loop can never be left", stmt.span, hint="add a break or a return")
    return result

"""Walk the statements of a syntax tree: what a probe must go around or behind."""

from __future__ import annotations

from collections.abc import Iterator

from ...sim.wgsl.syntax import tree

Loop = tree.Loop | tree.For | tree.While


def statements(node: tree.Stmt) -> Iterator[tree.Stmt]:
    """Yield a statement and every statement in it, outer ones first."""
    yield node
    inner: list[tree.Stmt | None]
    match node:
        case tree.Block(body=body):
            inner = list(body)
        case tree.If(then=then, orelse=orelse):
            inner = [then, orelse]
        case tree.Switch(cases=cases):
            inner = [case.body for case in cases]
        case tree.Loop(body=body, continuing=continuing):
            inner = [body, continuing]
        case tree.For(init=init, update=update, body=body):
            inner = [init, update, body]
        case tree.While(body=body):
            inner = [body]
        case _:
            inner = []
    for statement in inner:
        if statement is not None:
            yield from statements(statement)


def loops(body: tree.Block) -> list[Loop]:
    return [s for s in statements(body) if isinstance(s, tree.Loop | tree.For | tree.While)]


def header(loop: Loop) -> list[tree.Stmt]:
    return [part for part in (loop.init, loop.update) if part] if isinstance(loop, tree.For) else []


def can_end(loop: Loop) -> bool:
    """Return whether control can reach the statement after a loop, other than by returning from within."""
    if isinstance(loop, tree.Loop):
        return loop.break_if is not None or _breaks(loop.body)
    return loop.condition is not None or _breaks(loop.body)


def _breaks(node: tree.Stmt) -> bool:
    """Return whether a `break` in this statement leaves the loop around it."""
    match node:
        case tree.Break():
            return True
        case tree.Block(body=body):
            return any(map(_breaks, body))
        case tree.If(then=then, orelse=orelse):
            return _breaks(then) or (orelse is not None and _breaks(orelse))
        case _:
            return False

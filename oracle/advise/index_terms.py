"""The parts of an index in the text: terms of a sum, factors of a product, and the indices of nested arrays."""

from __future__ import annotations

from ...sim.wgsl.syntax import tree as s


def terms_of(node: s.Expr) -> list[s.Expr]:
    """Return the terms of a sum."""
    return _operands(node, "+")


def factors_of(node: s.Expr) -> list[s.Expr]:
    """Return the factors of a product."""
    return _operands(node, "*")


def _operands(node: s.Expr, op: str) -> list[s.Expr]:
    bare = node
    while isinstance(bare, s.Paren):
        bare = bare.inner
    if isinstance(bare, s.Binary) and bare.op == op:
        return _operands(bare.left, op) + _operands(bare.right, op)
    return [node]


def levels(node: s.Expr) -> tuple[s.Ident | None, list[s.Index]]:
    """Return the name at the root of `name[i][j]`, None if it is none, and the indices, outermost array first."""
    found: list[s.Index] = []
    while isinstance(node, s.Index):
        found.insert(0, node)
        node = node.base
    return (node if isinstance(node, s.Ident) else None), found

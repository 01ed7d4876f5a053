"""Exact identities of operations with a constant operand.

Every rewrite gives the same bits on every input: integer and boolean algebra, never floating point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .ir import Value


class Maker(Protocol):
    """What builds the replacements, such as a `Builder`."""

    def op(self, name: str, /, *args: Value) -> Value: ...

    def const(self, kind: str, value: float, /) -> Value: ...


_COMMUTATIVE = frozenset(
    f"{stem}_{kind}" for stem in ("add", "mul", "and", "or", "xor", "eq", "ne") for kind in ("i32", "u32", "bool")
)
# (operation without its kind, constant on the right) -> "left" (the left operand) or "zero"
_RIGHT = {
    ("add", 0): "left",
    ("sub", 0): "left",
    ("mul", 1): "left",
    ("mul", 0): "zero",
    ("div", 1): "left",
    ("or", 0): "left",
    ("xor", 0): "left",
    ("and", 0): "zero",
    ("and", 0xFFFFFFFF): "left",
    ("shl", 0): "left",
    ("shr", 0): "left",
}


def simplify(builder: Maker, name: str, args: tuple[Value, ...]) -> Value | None:
    """Return a cheaper value equal to `name(*args)`, or None."""
    if len(args) != 2:
        chosen = name.startswith("select_") and args[2].op == "const"
        return args[1 if args[2].imm else 0] if chosen else None
    stem, _, kind = name.rpartition("_")
    if kind not in ("i32", "u32", "bool"):
        return None
    left, right = args
    if left.op == "const" != right.op and name in _COMMUTATIVE:
        return builder.op(name, right, left)
    if right.op != "const":
        return None
    if kind == "bool":
        return _boolean(builder, stem, left, right.imm)
    verdict = _RIGHT.get((stem, right.imm))
    if verdict == "left":
        return left
    if verdict == "zero":
        return builder.const(kind, 0)
    if kind == "u32":
        return _power_of_two(builder, stem, left, right.imm)
    return None


def _boolean(builder: Maker, stem: str, left: Value, right: int) -> Value | None:
    if stem in ("and", "or"):
        keeps = 1 if stem == "and" else 0
        return left if right == keeps else builder.const("bool", right)
    return None


def _power_of_two(builder: Maker, stem: str, left: Value, right: int) -> Value | None:
    if right == 0 or right & (right - 1):
        return None
    if stem == "div":
        return builder.op("shr_u32", left, builder.const("u32", right.bit_length() - 1))
    if stem == "rem":
        return builder.op("and_u32", left, builder.const("u32", right - 1))
    return None

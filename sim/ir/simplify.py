"""Exact identities of operations with a constant operand.

Every rewrite gives the same bits on every input: integer and boolean algebra, never floating point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .ir import Value


class Maker(Protocol):
    """What builds the replacements, such as a `Builder`."""

    def op(self, name: str, /, *args: Value) -> Value: ...

    def const(self, kind: str, value: float, /) -> Value: ...


_INTEGERS = ("i32", "u32")
_COMMUTATIVE = frozenset(
    f"{stem}_{kind}" for stem in ("add", "mul", "and", "or", "xor", "eq", "ne") for kind in (*_INTEGERS, "bool")
)
# (integer operation without its kind, constant on the right) -> "left" (the left operand) or "zero"
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
# The same by the whole name, which needs no splitting, and those of bool.
_VERDICTS = {
    **{(f"{stem}_{kind}", right): verdict for (stem, right), verdict in _RIGHT.items() for kind in _INTEGERS},
    ("and_bool", 1): "left",
    ("and_bool", 0): "zero",
    ("or_bool", 0): "left",
    ("or_bool", 1): "one",
}


def simplify(builder: Maker, name: str, args: tuple[Value, ...]) -> Value | None:
    """Return a cheaper value equal to `name(*args)`, or None."""
    if len(args) != 2:
        chosen = name.startswith("select_") and args[2].op == "const"
        return args[1 if args[2].imm else 0] if chosen else None
    left, right = args
    if right.op != "const":
        return builder.op(name, right, left) if left.op == "const" and name in _COMMUTATIVE else None
    number = right.imm
    verdict = _VERDICTS.get((name, number))
    if verdict == "left":
        return left
    if verdict is not None:
        return builder.const(left.kind, 0 if verdict == "zero" else 1)
    if name in _BY_POWERS and number and not number & (number - 1):
        return _BY_POWERS[name](builder, left, number)
    return None


# Operations with a power of two on the right.
_BY_POWERS: dict[str, Callable[[Maker, Value, int], Value]] = {
    "div_u32": lambda builder, left, power: builder.op("shr_u32", left, builder.const("u32", power.bit_length() - 1)),
    "rem_u32": lambda builder, left, power: builder.op("and_u32", left, builder.const("u32", power - 1)),
}

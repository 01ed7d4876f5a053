"""Upper bounds of u32 values, from the operations that compute them: they make some clamps and masks redundant.

`i % 4u` needs no clamp to index four elements, and `(word & 0x0f0f0f0fu) >> 2u` has no bits beyond 0x3ffffff to mask.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ir import Value

_WORD = 0xFFFFFFFF
_DEPTH = 6  # operations to look through


def within(name: str, args: tuple[Value, ...]) -> Value | None:
    """Return the left operand if `name` limits it to a constant that it cannot exceed, else None."""
    rule = _KEEPS.get(name)
    if rule is None or args[1].op != "const":
        return None
    return args[0] if rule(most(args[0]), args[1].imm) else None


# Operation -> whether it changes no number up to `largest`, with the constant `limit` on the right.
_KEEPS: dict[str, Callable[[int, int], bool]] = {
    "min_u32": lambda largest, limit: largest <= limit,
    "rem_u32": lambda largest, limit: largest < limit,
    "and_u32": lambda largest, limit: largest <= limit and limit & (limit + 1) == 0,  # all ones
}


def most(value: Value, depth: int = _DEPTH) -> int:
    """Return an upper bound of a value, its bits read as a u32."""
    if value.op == "const":
        return value.imm
    rule = _RULES.get(value.op)
    if rule is None or depth == 0:
        return _WORD
    largest = rule(value.args, [most(argument, depth - 1) for argument in value.args])
    return largest if largest <= _WORD else _WORD  # a larger result wraps around


def _by_constant(rule: Callable[[int, int], int]) -> _Rule:
    """Return a rule for operations that decrease in their right operand, which must be a constant other than 0."""

    def largest(args: Sequence[Value], most: Sequence[int]) -> int:
        right = args[1]
        return rule(most[0], right.imm) if right.op == "const" and right.imm else _WORD

    return largest


def _byte(args: Sequence[Value], most: Sequence[int]) -> int:
    """Byte number `args[1]` of a word, at most that byte of a mask."""
    word, number = args
    if number.op != "const" or word.op != "and_u32" or word.args[1].op != "const":
        return 0xFF
    return word.args[1].imm >> 8 * (number.imm & 3) & 0xFF


def _field(args: Sequence[Value], most: Sequence[int]) -> int:
    return (1 << min(most[2], 32)) - 1


# Operation -> an upper bound of its result, from its operands and their upper bounds.
_Rule = Callable[[Sequence["Value"], Sequence[int]], int]
_RULES: dict[str, _Rule] = {
    "bits": lambda args, most: most[0],
    "and_u32": lambda args, most: min(most),
    "or_u32": lambda args, most: (1 << max(most).bit_length()) - 1,
    "xor_u32": lambda args, most: (1 << max(most).bit_length()) - 1,
    "add_u32": lambda args, most: most[0] + most[1],
    "mul_u32": lambda args, most: most[0] * most[1],
    "shl_u32": _by_constant(lambda left, right: left << (right & 31)),
    "shr_u32": _by_constant(lambda left, right: left >> (right & 31)),
    "div_u32": _by_constant(lambda left, right: left // right),
    "rem_u32": _by_constant(lambda left, right: min(left, right - 1)),
    "min_u32": lambda args, most: min(most),
    "max_u32": lambda args, most: max(most),
    "select_u32": lambda args, most: max(most[:2]),
    "convert_bool_u32": lambda args, most: 1,
    "extractBits_u32": _field,
    "unpack4xU8_u32": _byte,
}

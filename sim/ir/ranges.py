"""How large a u32 can be, from the operations that make it: what needs no limit is not held below one.

`i % 4u` needs no clamp to index four elements, nor has `(word & 0x0f0f0f0fu) >> 2u` bits to mask beyond 0x3ffffff.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .ir import Value

_WORD = 0xFFFFFFFF
_DEPTH = 6  # operations that are looked through


def within(name: str, args: tuple[Value, ...]) -> Value | None:
    """The left operand, where `name` would keep it within a constant that it cannot be beyond."""
    rule = _KEEPS.get(name)
    if rule is None or args[1].op != "const":
        return None
    return args[0] if rule(most(args[0]), args[1].imm) else None


# Operation -> whether it leaves every number up to the first as it is, by a constant on the right.
_KEEPS: dict[str, Callable[[int, int], bool]] = {
    "min_u32": lambda largest, limit: largest <= limit,
    "rem_u32": lambda largest, limit: largest < limit,
    "and_u32": lambda largest, limit: largest <= limit and limit & (limit + 1) == 0,  # all ones
}


def most(value: Value, depth: int = _DEPTH) -> int:
    """The largest number that a value can be, its bits read as a u32."""
    if value.op == "const":
        return value.imm
    rule = _RULES.get(value.op)
    if rule is None or depth == 0:
        return _WORD
    largest = rule(value.args, [most(argument, depth - 1) for argument in value.args])
    return largest if largest <= _WORD else _WORD  # what does not fit wraps around


def _by_constant(rule: Callable[[int, int], int]) -> _Rule:
    """A rule of operations that get smaller as their right operand grows: it must be known, and not 0."""

    def largest(args: Sequence[Value], most: Sequence[int]) -> int:
        right = args[1]
        return rule(most[0], right.imm) if right.op == "const" and right.imm else _WORD

    return largest


def _byte(args: Sequence[Value], most: Sequence[int]) -> int:
    """Byte number `args[1]` of a word; of one that is masked, what the mask leaves of it."""
    word, number = args
    if number.op != "const" or word.op != "and_u32" or word.args[1].op != "const":
        return 0xFF
    return word.args[1].imm >> 8 * (number.imm & 3) & 0xFF


def _field(args: Sequence[Value], most: Sequence[int]) -> int:
    return (1 << min(most[2], 32)) - 1


# Operation -> its largest result, from its operands and how large each can be.
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

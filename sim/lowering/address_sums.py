"""Integer sums that are addresses, split into terms so that loop-invariant ones are added first."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.bottom_up import bottom_up
from ..ir.builder import Builder
from ..ir.integer_operations import DIFFERENCES, LEFT_SHIFTS, PRODUCTS, SUMS
from ..ir.ir import Value

_SCALED = (*PRODUCTS, *LEFT_SHIFTS, "bits")
_MOST_SPLIT = 32  # values of an index: one of a chain of thousands costs no more


class Sum:
    """A sum modulo 2^32. `mixed`: results of `is_mixed` for values so far, which are added to; None: split nothing."""

    def __init__(self, mixed: dict[Value, bool] | None) -> None:
        self.constant = 0
        self._mixed = mixed
        self._terms: dict[Value, int] = {}

    def add(self, value: Value, times: int = 1) -> None:
        """Add `value * times`."""
        left, waiting = _MOST_SPLIT, [(value, times)]
        while waiting:
            value, times = waiting.pop()
            if value.op == "const":
                self.constant += value.imm * times
            elif self._mixed is not None and left and (parts := _parts(value, times, self._mixed)):
                waiting += parts
                left -= 1
            else:
                self._terms[value] = self._terms.get(value, 0) + times

    def value(self, builder: Builder) -> Value | None:
        """Return the sum of the terms, outermost first, without the constant; None if there are none."""
        total: Value | None = None
        for term, times in sorted(self._terms.items(), key=lambda item: item[0].region.depth):
            if times & 0xFFFFFFFF == 0:
                continue
            word = builder.reinterpret("u32", term)
            part = builder.op("mul_u32", word, builder.const("u32", times))
            total = part if total is None else builder.op("add_u32", total, part)
        return total


def _parts(value: Value, times: int, mixed: dict[Value, bool]) -> list[tuple[Value, int]]:
    """Return the terms of `value * times`, the first one last; none where it is not worth splitting."""
    op, args = value.op, value.args
    if op == "bits":
        return [(args[0], times)]
    if op in (*SUMS, *DIFFERENCES) and (args[1].op == "const" or is_mixed(value, mixed)):
        return [(args[1], times if op in SUMS else -times), (args[0], times)]
    if op in PRODUCTS and args[1].op == "const":
        return [(args[0], times * args[1].imm)]
    if op in LEFT_SHIFTS and args[1].op == "const":
        return [(args[0], times << (args[1].imm & 31))]
    return []


def is_mixed(value: Value, mixed: dict[Value, bool]) -> bool:
    """Return whether part of a value is computed in fewer loops than the rest. `mixed`: results so far."""
    return bottom_up(value, mixed, _operands, _is_mixed)


def _operands(value: Value) -> Sequence[Value]:
    if value.op in (*SUMS, *DIFFERENCES):
        return value.args
    return value.args[:1] if value.op in _SCALED else ()


def _is_mixed(value: Value, parts: Sequence[bool]) -> bool:
    if value.op in (*SUMS, *DIFFERENCES):
        left, right = value.args
        return right.op == "const" or left.region.depth != right.region.depth or any(parts)
    return any(parts)

"""A pass that joins a sum of products and the checks of its results into one instruction.

It needs checks that directly follow their operation, as codegen emits them. It changes `fma, check` and `mul, check,
add, check` into `checked`, which computes the same and reports the same checks (see `machine.checks`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache

from ..machine import opcodes as op
from ..machine.layout import NON_FINITE
from .basic_blocks import rewrite_blocks, uses_of
from .virtual_registers import Code, Ins, Reg

_MUL, _ADD, _FMA = (op.scalar_opcodes()[name] for name in ("mul_f32", "add_f32", "fma_f32"))


def join_checks(code: Code) -> None:
    """Replace `t = fma(a, b, c)` and its check by `checked`, and `p = a * b; t = p + c` and their checks."""
    if op.CHECK not in code.opcodes():
        return
    uses = cache(lambda: uses_of(code))  # few programs need them

    def joined(block: list[Ins]) -> list[Ins]:
        made: list[Ins] = []
        for ins in block:
            made.append(ins)
            if ins.op != op.CHECK:
                continue
            if both := _fused(made[-2:]):
                made[-2:] = [both]
            elif all_four := _rounded_twice(made[-4:], uses):
                made[-4:] = [all_four]
        return made

    rewrite_blocks(code, joined)


def _is_check_of(check: Ins, what: Ins) -> bool:
    """Whether `check` is of the result of `what`, an operation on every lane that keeps its operands."""
    seen = (check.dest, check.a, check.b, check.c) == (what.dest, what.a, what.b, what.c)
    return (
        check.op == op.CHECK
        and check.e == NON_FINITE
        and seen
        and what.mask != 1
        and what.dest not in (what.a, what.b, what.c)
    )


def _fused(rows: list[Ins]) -> Ins | None:
    if rows[0].op != _FMA or not _is_check_of(rows[1], rows[0]):
        return None
    return replace(rows[1], op=op.CHECKED, e=op.FUSED)


def _rounded_twice(rows: list[Ins], uses: Callable[[], Counter[Reg]]) -> Ins | None:
    if len(rows) < 4:
        return None
    product, first, total, second = rows
    if (
        (product.op, total.op) != (_MUL, _ADD)
        or not isinstance(product.dest, Reg)
        or (total.a is product.dest) == (total.b is product.dest)
    ):
        return None
    adjacent = first.mask == second.mask and isinstance(first.x, int) and second.x == first.x + 1
    if not (_is_check_of(first, product) and _is_check_of(second, total) and adjacent):
        return None
    if uses()[product.dest] != len(rows):
        return None
    kind, other = (op.PRODUCT_FIRST, total.b) if total.a is product.dest else (op.PRODUCT_LAST, total.a)
    return replace(first, op=op.CHECKED, dest=total.dest, c=other, e=kind)

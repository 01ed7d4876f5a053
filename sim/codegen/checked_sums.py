"""Sums of products and the checks of what they make, which become one instruction (see `machine.checks`)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ..machine import opcodes as op
from ..machine.layout import BORN
from .basic_blocks import rewrite_runs, uses_of
from .virtual_registers import Code, Ins, Reg

_MUL, _ADD, _FMA = (op.scalar_opcodes()[name] for name in ("mul_f32", "add_f32", "fma_f32"))


def join_checks(code: Code) -> None:
    """Put `checked` in place of `t = fma(a, b, c)` and its check, and of `p = a * b; t = p + c` and theirs."""
    if not any(ins.op == op.CHECK for ins in code.instructions):
        return
    uses = uses_of(code)

    def joined(run: list[Ins]) -> list[Ins]:
        made: list[Ins] = []
        for ins in run:
            made.append(ins)
            if ins.op != op.CHECK:
                continue
            if both := _fused(made[-2:]):
                made[-2:] = [both]
            elif all_four := _rounded_twice(made[-4:], uses):
                made[-4:] = [all_four]
        return made

    rewrite_runs(code, joined)


def _looks_at(check: Ins, what: Ins) -> bool:
    """Whether a check is of the result that an operation has in every lane."""
    seen = (check.d, check.a, check.b, check.c) == (what.d, what.a, what.b, what.c)
    return check.op == op.CHECK and check.e == BORN and seen and what.m != 1 and what.d not in (what.a, what.b, what.c)


def _fused(rows: list[Ins]) -> Ins | None:
    if len(rows) < 2 or rows[0].op != _FMA or not _looks_at(rows[1], rows[0]):
        return None
    return replace(rows[1], op=op.CHECKED, e=op.FUSED)


def _rounded_twice(rows: list[Ins], uses: Counter[Reg]) -> Ins | None:
    if len(rows) < 4:
        return None
    product, first, total, second = rows
    alone = isinstance(product.d, Reg) and product.d.of is None and uses[product.d] == len(rows)
    if (product.op, total.op) != (_MUL, _ADD) or not alone or (total.a is product.d) == (total.b is product.d):
        return None
    workgroups_per_batch = first.m == second.m and isinstance(first.x, int) and second.x == first.x + 1
    if not (_looks_at(first, product) and _looks_at(second, total) and workgroups_per_batch):
        return None
    kind, other = (op.PRODUCT_FIRST, total.b) if total.a is product.d else (op.PRODUCT_LAST, total.a)
    return replace(first, op=op.CHECKED, d=total.d, c=other, e=kind)

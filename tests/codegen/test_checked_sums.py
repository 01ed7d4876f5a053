"""Which products, sums and checks become one instruction, on code written by hand."""

from __future__ import annotations

import pytest

from bankshot.sim.codegen.checked_sums import join_checks
from bankshot.sim.codegen.virtual_registers import FIELDS, Code, Ins, Reg
from bankshot.sim.machine import opcodes as op
from bankshot.sim.machine.layout import NON_FINITE, SHIFTS

MUL, ADD, FMA, SUB = (op.scalar_opcodes()[name] for name in ("mul_f32", "add_f32", "fma_f32", "sub_f32"))
OPERATIONS = {"mul": MUL, "add": ADD, "fma": FMA, "sub": SUB, "check": op.CHECK, "checked": op.CHECKED}
KINDS = {"fused": op.FUSED, "first": op.PRODUCT_FIRST, "last": op.PRODUCT_LAST, "finite": NON_FINITE, "shift": SHIFTS}


def code_of(lines: str) -> tuple[Code, dict[str, Reg]]:
    """Instructions, separated by semicolons: an operation, its registers as letters, and other fields by name."""
    registers: dict[str, Reg] = {}
    made = []
    for line in lines.split(";"):
        name, letters, *rest = line.split()
        fields = dict(each.split("=") for each in rest)
        made.append(
            Ins(
                OPERATIONS[name],
                *(registers.setdefault(each, Reg()) for each in letters),
                **{key: KINDS[value] if key == "e" else int(value) for key, value in fields.items()},
            )
        )
    return Code(made), registers


def joined(lines: str) -> str:
    """The code after the pass, written as `code_of` reads it."""
    code, registers = code_of(lines)
    join_checks(code)
    letters = {id(reg): letter for letter, reg in registers.items()}
    operations = {number: name for name, number in OPERATIONS.items()}
    kinds = {op.CHECKED: {KINDS[each]: each for each in ("fused", "first", "last")}, op.CHECK: {NON_FINITE: "finite"}}
    made = []
    for ins in code.instructions:
        fields = list(zip(FIELDS, ins.fields(), strict=True))
        words = [operations[ins.op], "".join(letters[id(each)] for _, each in fields if isinstance(each, Reg))]
        rest = {name: each for name, each in fields if not isinstance(each, Reg) and each != -1}
        words += [f"{name}={kinds[ins.op].get(each, each) if name == 'e' else each}" for name, each in rest.items()]
        made.append(" ".join(words))
    return "; ".join(made)


CHECK = "e=finite x="
TWICE = f"mul pab; check pab {CHECK}4; add tpc; check tpc {CHECK}5"
JOINED = {
    "a fused sum": (f"fma tabc; check tabc {CHECK}3", "checked tabc e=fused x=3"),
    "after others": (f"add dab; fma tabc; check tabc {CHECK}3", "add dab; checked tabc e=fused x=3"),
    "two fused sums": (
        f"fma tabc; check tabc {CHECK}3; fma uabt; check uabt {CHECK}4",
        "checked tabc e=fused x=3; checked uabt e=fused x=4",
    ),
    "under a mask of the check": (f"fma tabc; check tabc mask=7 {CHECK}3", "checked tabc e=fused mask=7 x=3"),
    "a product, then a sum": (TWICE, "checked tabc e=first x=4"),
    "a product that is added last": (
        f"mul pab; check pab {CHECK}4; add tcp; check tcp {CHECK}5",
        "checked tabc e=last x=4",
    ),
    "after what else is checked": (
        f"sub dab; check dab {CHECK}3; {TWICE}",
        f"sub dab; check dab {CHECK}3; checked tabc e=first x=4",
    ),
    "under one mask": (
        f"mul pab; check pab mask=7 {CHECK}4; add tpc; check tpc mask=7 {CHECK}5",
        "checked tabc e=first mask=7 x=4",
    ),
}


@pytest.mark.parametrize(("lines", "after"), JOINED.values(), ids=JOINED)
def test_joined(lines: str, after: str) -> None:
    assert joined(lines) == after


APART = {
    "no check": "fma tabc; add dta",
    "a check alone": f"check tabc {CHECK}3",
    "another operation": f"sub tab; check tab {CHECK}3",
    "a check of another kind": "fma tabc; check tabc e=shift x=3",
    "a check of another result": f"fma tabc; check uabc {CHECK}3",
    "a check of other operands": f"fma tabc; check tabd {CHECK}3",
    "of the first lane only": f"fma tabc mask=1; check tabc {CHECK}3",
    "a sum in its first factor": f"fma aabc; check aabc {CHECK}3",
    "a sum in its second factor": f"fma babc; check babc {CHECK}3",
    "a sum in its addend": f"fma cabc; check cabc {CHECK}3",
    "a product that is used again": f"{TWICE}; add upd",
    "a product used before": f"add upd; {TWICE}",
    "a product that is added to itself": f"mul pab; check pab {CHECK}4; add tpp; check tpp {CHECK}5",
    "a product that is not added": f"mul pab; check pab {CHECK}4; add tcd; check tcd {CHECK}5",
    "a product of sums": f"add pab; check pab {CHECK}4; mul tpc; check tpc {CHECK}5",
    "a product and a product": f"mul pab; check pab {CHECK}4; mul tpc; check tpc {CHECK}5",
    "a product and a difference": f"mul pab; check pab {CHECK}4; sub tpc; check tpc {CHECK}5",
    "different masks": f"mul pab; check pab mask=7 {CHECK}4; add tpc; check tpc mask=8 {CHECK}5",
    "checks two apart": f"mul pab; check pab {CHECK}4; add tpc; check tpc {CHECK}6",
    "checks in the other order": f"mul pab; check pab {CHECK}5; add tpc; check tpc {CHECK}4",
    "a product without a check of its own": f"mul pab; check qab {CHECK}4; add tpc; check tpc {CHECK}5",
    "a sum without a check of its own": f"mul pab; check pab {CHECK}4; add tpc; check upc {CHECK}5",
    "only three of them": f"mul pab; add tpc; check tpc {CHECK}5",
}


@pytest.mark.parametrize("lines", APART.values(), ids=APART)
def test_apart(lines: str) -> None:
    code, _ = code_of(lines)
    before = [(ins.op, ins.fields()) for ins in code.instructions]
    join_checks(code)
    assert [(ins.op, ins.fields()) for ins in code.instructions] == before


def test_a_product_in_a_part_of_a_register_stays() -> None:
    """Another part of it may be read elsewhere as the whole."""
    code, registers = code_of(TWICE)
    part = Reg(row=1, of=Reg(rows=2))
    for name in ("dest", "a"):
        for ins in code.instructions:
            if getattr(ins, name) is registers["p"]:
                setattr(ins, name, part)
    before = list(code.instructions)
    join_checks(code)
    assert code.instructions == before

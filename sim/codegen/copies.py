"""Copies that are not needed: `t = a * b + s; s = t; u = c * d + t` is `s = a * b + s; u = c * d + s`."""

from __future__ import annotations

from collections import Counter

from ..machine import opcodes as op
from .basic_blocks import rewrite_runs, uses_of, written
from .virtual_registers import Code, Ins, Reg

Touched = dict[Ins, list[Reg]]  # the registers of each instruction of a run


def drop_copies(code: Code) -> None:
    """Let what computes a value write the register that the value is copied to, where nobody can tell."""
    uses = uses_of(code)

    def without(run: list[Ins]) -> list[Ins]:
        copies = [ins for ins in run if ins.op == op.COPY]
        touched = {ins: ins.registers() for ins in run} if copies else {}
        for copy in copies:
            if _is_needless(run, copy, uses, touched):
                run = _renamed(run, copy, uses, touched)
        return run

    rewrite_runs(code, without)


def _is_needless(run: list[Ins], copy: Ins, uses: Counter[Reg], touched: Touched) -> bool:
    """Whether a copied value lives in this run alone, and its new register is free from its making to its last use."""
    old, new = copy.a, copy.d
    if not isinstance(old, Reg) or not isinstance(new, Reg) or old.fixed or old.of is not None:
        return False
    places = [i for i, ins in enumerate(run) if old in touched[ins]]
    users = [run[i] for i in places]
    first, here = users[0], run.index(copy)
    if len(places) != uses[old] or first.d is not old or any(ins.d is old for ins in users[1:]):
        return False
    if not _computes(first) or (first.m == 1) != (copy.m == 1):
        return False
    if any(not _computes(ins) and ins.op != op.COPY for ins in users):
        return False
    whole = new.of or new
    before, after = run[places[0] + 1 : here], run[here + 1 : places[-1]]
    return not any(whole in touched[ins] for ins in before) and not any(whole in written(ins) for ins in after)


def _computes(ins: Ins) -> bool:
    return ins.op >= op.SCALAR or ins.op == op.CHECKED


def _renamed(run: list[Ins], copy: Ins, uses: Counter[Reg], touched: Touched) -> list[Ins]:
    """The run without the copy."""
    old, new = copy.a, copy.d
    assert isinstance(old, Reg)
    assert isinstance(new, Reg)
    whole = new.of or new
    left = [ins for ins in run if ins is not copy]
    uses[whole] -= sum(whole in touched[ins] for ins in run)
    for ins in left:
        if old in touched[ins]:
            for name in "dabcemx":
                if getattr(ins, name) is old:
                    setattr(ins, name, new)
            touched[ins] = ins.registers()
    uses[whole] += sum(whole in touched[ins] for ins in left)
    del uses[old]
    return left

"""A pass that drops copies: `t = a * b + s; s = t; u = c * d + t` becomes `s = a * b + s; u = c * d + s`.

It needs basic blocks, and looks at one at a time. The register that a value is copied to takes the place of the one it
was computed in. No instruction can see the difference: the old register is not used outside of the block, and the new
one is neither read nor written from the computation to the copy, nor written from there to the last use.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache

from ..machine import opcodes as op
from .basic_blocks import rewrite_blocks, uses_of, written
from .virtual_registers import FIELDS, Code, Ins, Reg

Touched = dict[Ins, list[Reg]]  # the registers of each instruction of a block


def drop_copies(code: Code) -> None:
    """Let the instruction that computes a copied value write the register that it is copied to."""
    if op.COPY not in code.opcodes():
        return
    uses = cache(lambda: uses_of(code))  # few programs need them

    def without(block: list[Ins]) -> list[Ins]:
        copies = [ins for ins in block if _copies_a_value(ins)]
        touched = {ins: ins.registers() for ins in block} if copies else {}
        for copy in copies:
            if _is_needless(block, copy, uses, touched):
                block = _renamed(block, copy, uses(), touched)
        return block

    rewrite_blocks(code, without)


def _copies_a_value(ins: Ins) -> bool:
    """Whether an instruction copies a register that is neither fixed nor a part of another."""
    return ins.op == op.COPY and isinstance(ins.a, Reg) and not ins.a.fixed and ins.a.of is None


def _is_needless(block: list[Ins], copy: Ins, uses: Callable[[], Counter[Reg]], touched: Touched) -> bool:
    """Whether a copied value lives in this block only, and its new register is free from its computation to its last
    use."""
    old, new = copy.a, copy.dest
    if not isinstance(old, Reg) or not isinstance(new, Reg) or old.fixed or old.of is not None:
        return False
    places = [i for i, ins in enumerate(block) if old in touched[ins]]
    users = [block[i] for i in places]
    first, here = users[0], block.index(copy)
    if first.dest is not old or any(ins.dest is old for ins in users[1:]):
        return False
    if not _computes(first) or (first.mask == 1) != (copy.mask == 1):
        return False
    if any(not _computes(ins) and ins.op != op.COPY for ins in users):
        return False
    whole = new.of or new
    before, after = block[places[0] + 1 : here], block[here + 1 : places[-1]]
    if any(whole in touched[ins] for ins in before) or any(whole in written(ins) for ins in after):
        return False
    return len(places) == uses()[old]


def _computes(ins: Ins) -> bool:
    return ins.op >= op.SCALAR or ins.op == op.CHECKED


def _renamed(block: list[Ins], copy: Ins, uses: Counter[Reg], touched: Touched) -> list[Ins]:
    """Return the block without the copy."""
    old, new = copy.a, copy.dest
    assert isinstance(old, Reg)
    assert isinstance(new, Reg)
    whole = new.of or new
    left = [ins for ins in block if ins is not copy]
    uses[whole] -= sum(whole in touched[ins] for ins in block)
    for ins in left:
        if old in touched[ins]:
            for name in FIELDS:
                if getattr(ins, name) is old:
                    setattr(ins, name, new)
            touched[ins] = ins.registers()
    uses[whole] += sum(whole in touched[ins] for ins in left)
    del uses[old]
    return left

"""Registers that are live at once have rows of their own, and others share them."""

from __future__ import annotations

import random

import pytest

from bankshot.sim.codegen.virtual_registers import Code, Ins, Reg, assemble

FIRST = 3  # rows before the first that is free


def code_of(lines: list[tuple[Reg, ...]], loops: list[tuple[int, int]] = []) -> Code:  # noqa: B006
    """Code that writes the first register of each line from the others."""
    instructions = [Ins(0, *registers) for registers in lines]
    return Code(instructions, loops)


def rows(lines: str, loops: list[tuple[int, int]] | None = None, wide: str = "", shared: bool = True) -> str:
    """The row of each register after `FIRST`, and the number of rows.

    Lines as in "ab cab": b computes a, then a and b compute c. The jump at the end of a loop, "-", has no registers.
    Registers in `wide` take two rows."""
    regs = {name: Reg(rows=2 if name in wide else 1) for name in sorted(set(lines) - set(" -"))}
    code = code_of([tuple(regs[name] for name in line if name != "-") for line in lines.split()], loops or [])
    _, top = assemble(code, FIRST, shared)
    return " ".join([*(f"{name}{reg.row - FIRST}" for name, reg in regs.items()), str(top - FIRST)])


# Lines, loops, wide registers, and the rows that they take, worked out by hand.
BY_HAND = {
    "one": ("a", [], "", "a0 1"),
    "a result takes the row of an operand that dies": ("a ba cb", [], "", "a0 b0 c0 1"),
    "an operand that lives on keeps its row": ("a ba ca", [], "", "a0 b1 c0 2"),
    "two that live at once": ("a b cab", [], "", "a0 b1 c0 2"),
    "a result that nothing reads has a row for its instruction": ("a b ca", [], "", "a0 b1 c0 2"),
    "its row is free afterwards": ("a b c d", [], "", "a0 b0 c0 d0 1"),
    "the lowest free row": ("a b c dabc", [], "", "a0 b1 c2 d0 3"),
    "a wide one takes adjacent rows": ("a b ca db", [], "c", "a0 b1 c2 d0 4"),
    "a wide one takes two that are free": ("a b c dabc", [], "d", "a0 b1 c2 d0 3"),
    "not two that are apart": ("a b c dac eb", [], "d", "a0 b1 c2 d3 e0 5"),
    "the rows of a wide one are free afterwards": ("a ba cb db", [], "a", "a0 b0 c1 d0 2"),
    "live into a loop, live to its end": ("a b ca - d eb", [(1, 3)], "", "a0 b1 c2 d0 e0 3"),
    "live over a loop, not live after it": ("a b ca d - e", [(1, 4)], "", "a0 b1 c1 d1 e0 2"),
    "read in the last but one": ("a b c da - e", [(2, 4)], "", "a0 b1 c1 d1 e0 2"),
    "read before and after a loop, not in it": ("a ba c d - ea", [(2, 4)], "", "a0 b1 c1 d1 e0 2"),
    "from the first instruction of a loop on": ("a b cb db - e", [(1, 4)], "", "a0 b0 c1 d0 e0 2"),
    "live into two loops, to the end of the outer": ("a b ca - d - e", [(1, 5), (2, 3)], "", "a0 b1 c1 d1 e0 2"),
    "live into the inner loop alone": ("a b cb d - e - f", [(1, 6), (2, 4)], "", "a0 b0 c1 d1 e0 f0 2"),
    "dead before a loop": ("a ba c - d", [(2, 3)], "", "a0 b0 c0 d0 1"),
}


@pytest.mark.parametrize(("lines", "loops", "wide", "wanted"), BY_HAND.values(), ids=BY_HAND)
def test_rows_by_hand(lines, loops, wide, wanted):
    assert rows(lines, loops, wide) == wanted


def test_rows_that_are_not_shared():
    assert rows("a ba cb db", wide="c", shared=False) == "a0 b1 c2 d4 5"


def live(lines: list[tuple[Reg, ...]], loops: list[tuple[int, int]]) -> list[set[int]]:
    """The registers that hold a value that a later instruction may read, after each line: backward data flow."""
    after: list[set[int]] = [set() for _ in lines]
    backward = {end: start for start, end in loops}
    while True:
        before = [{*map(id, line[1:])} | (out - {*map(id, line[:1])}) for line, out in zip(lines, after, strict=True)]
        follows = [before[i + 1] if i + 1 < len(lines) else set() for i in range(len(lines))]
        new = [following | (before[backward[i]] if i in backward else set()) for i, following in enumerate(follows)]
        if new == after:
            return after
        after = new


def random_code(random_: random.Random) -> tuple[list[tuple[Reg, ...]], list[tuple[int, int]]]:
    """Lines that read only registers that earlier lines write, and loops within one another or apart."""
    written: list[Reg] = []
    lines = list[tuple[Reg, ...]]()
    for _ in range(random_.randrange(4, 24)):
        read = tuple(random_.choices(written[-6:], k=random_.randrange(4))) if written else ()
        again = written and random_.random() < 0.2
        written.append(random_.choice(written) if again else Reg(rows=random_.choice((1, 1, 1, 2, 3))))
        lines.append((written[-1], *read))
    loops = list[tuple[int, int]]()
    first, last = 0, len(lines)
    for _ in range(random_.randrange(4)):  # each in the one before
        start, end = sorted((random_.randint(first, last), random_.randint(first, last)))
        lines.insert(end, ())  # the jump back
        loops = [(start, end), *((begin, stop + 1) for begin, stop in loops)]
        first, last = start, end
    return lines, loops


@pytest.mark.parametrize("seed", range(150))
def test_registers_that_are_live_at_once_share_no_row(seed):
    lines, loops = random_code(random.Random(seed))
    _, end = assemble(code_of(lines, loops), FIRST)
    regs = {id(reg): reg for line in lines for reg in line}
    assert all(reg.row >= FIRST and reg.row + reg.rows <= end for reg in regs.values())
    for line, after in zip(lines, live(lines, loops), strict=True):
        owners: dict[int, int] = {}
        for key in after | {*map(id, line[:1])}:
            for row in range(regs[key].row, regs[key].row + regs[key].rows):
                assert owners.setdefault(row, key) == key, (seed, row)

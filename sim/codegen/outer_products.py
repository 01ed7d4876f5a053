"""Outer products in the code: sums of products that share their factors become tiles (see `machine.tiles`).

The rows themselves stay, as they are or moved together, and mean what they meant. Which ones belong together is seen
from registers alone, whatever the source looks like:

    a0 = load …; a1 = load …; b0 = load …; b1 = load …
    s00 = a0 * b0 + s00; s01 = a0 * b1 + s01; s10 = a1 * b0 + s10; s11 = a1 * b1 + s11
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..fast_dataclass import frozen
from ..machine import opcodes as op
from .basic_blocks import LOADS, replace, rewrite_runs, uses_of, written
from .virtual_registers import Code, Field, Ins, Reg

_MAD, _FMA = (op.scalar_opcodes()[name] for name in op.TILED)
_WORTH_COPYING = 4  # sums of a tile, where a factor is not brought by its rows but copied from a register


@frozen
class _Tile:
    """An outer product: rows that bring the factors, and sums, all of A's first row first."""

    head: Ins
    factors: list[Ins]
    sums: list[Ins]

    @property
    def all(self) -> list[Ins]:
        return [self.head, *self.factors, *self.sums]


def tile(code: Code) -> None:
    """Put tiles before what they are made of."""
    if not any(_operation(ins) for ins in code.instructions):
        return
    uses = uses_of(code)
    tiles: list[_Tile] = []
    rewrite_runs(code, lambda run: _tiled(run, uses, tiles))
    _let_wait(code, tiles)


# ---- one straight run --------------------------------------------------------------------------------


def _tiled(run: list[Ins], uses: Counter[Reg], tiles: list[_Tile]) -> list[Ins]:
    """The run, with tiles in it; they are added to `tiles`."""
    for group in _groups(run):
        for sums in _products(group):
            made = _made(run, sums, uses)
            moved = made and _together(run, made)
            if made and moved:
                run = moved
                tiles.append(made)
    return run


def _groups(run: list[Ins]) -> list[list[Ins]]:
    """Sums that could be taken at once: of one operation, and none twice."""
    groups: list[list[Ins]] = [[]]
    for ins in run:
        if _operation(ins) is not None and ins.d is ins.c:
            alike = bool(groups[-1]) and _operation(groups[-1][0]) == _operation(ins)
            if not alike or any(ins.d is other.d for other in groups[-1]):
                groups.append([])
            groups[-1].append(ins)
    return groups


def _operation(ins: Ins) -> tuple[bool, bool] | None:
    """Whether a sum of all lanes rounds once, and whether it is checked; None for what is no such sum."""
    if ins.op == op.CHECKED:
        return (ins.e == op.FUSED, True) if ins.m == -1 else None
    return (ins.op == _FMA, False) if ins.op in (_MAD, _FMA) and ins.m != 1 else None


def _products(sums: list[Ins]) -> list[list[Ins]]:
    """Outer products among the sums: the rows, by A, that have the same columns, by B."""
    rows: dict[Field, dict[Field, Ins]] = {}
    for ins in sums:
        if ins.b in rows.setdefault(ins.a, {}):
            return []
        rows[ins.a][ins.b] = ins
    alike: dict[frozenset[Field], list[Ins]] = {}
    for columns in rows.values():
        alike.setdefault(frozenset(columns), []).extend(columns.values())
    return list(alike.values())


def _made(run: list[Ins], sums: list[Ins], uses: Counter[Reg]) -> _Tile | None:
    """The tile of an outer product, if it is worth while."""
    by_factors = {(s.a, s.b): s for s in sums}
    rows, columns = list(dict.fromkeys(s.a for s in sums)), list(dict.fromkeys(s.b for s in sums))
    if {*rows} & {*columns} or {*rows, *columns} & {s.d for s in sums}:
        return None
    early = run[: run.index(sums[0])]
    factors = [
        _brought(early, factor, count, uses)
        for several, count in ((rows, len(columns)), (columns, len(rows)))
        for factor in several
    ]
    if any(ins.op == op.COPY for ins in factors) and len(sums) < _WORTH_COPYING:
        return None
    ordered = [by_factors[a, b] for a in rows for b in columns]
    return _Tile(Ins(op.TILE, a=len(rows), b=len(columns), e=0), factors, ordered)


def _brought(early: list[Ins], factor: Field, count: int, uses: Counter[Reg]) -> Ins:
    """The row that brings a factor: the one that makes it, where only `count` sums use it, or a copy."""
    for ins in early:
        brings = (ins.op in LOADS and ins.m != 1) or ins.op == op.BROADCAST
        if brings and ins.d is factor and isinstance(factor, Reg) and uses[factor] == 1 + count:
            return ins
    return Ins(op.COPY, d=Reg(), a=factor, m=0)


def _together(run: list[Ins], tile: _Tile) -> list[Ins] | None:
    """The run with the rows of a tile side by side, and what stood between them before it; None where that would
    change what they do."""
    members = {id(ins) for ins in tile.all}
    places = [i for i, ins in enumerate(run) if id(ins) in members]
    first, last = places[0], places[-1] + 1
    read: set[Reg] = set()
    changed: set[Reg] = set()
    for ins in run[first:last]:
        if id(ins) in members:
            read.update(ins.registers())
            changed.update(written(ins))
        elif changed.intersection(ins.registers()) or read.intersection(written(ins)):
            return None
    sums = {reg for ins in tile.sums for reg in written(ins)}
    if any(sums.intersection(ins.registers()) for ins in tile.factors):
        return None
    others = [ins for ins in run[first:last] if id(ins) not in members]
    rows = int(tile.head.a)  # type: ignore[arg-type]
    for i, ins in enumerate(tile.sums):
        columns = len(tile.factors) - rows
        ins.a, ins.b = tile.factors[i // columns].d, tile.factors[rows + i % columns].d
    return [*run[:first], *others, *tile.all, *run[last:]]


# ---- the whole code ----------------------------------------------------------------------------------


def _let_wait(code: Code, tiles: list[_Tile]) -> None:
    """Number the sums, and let those wait that nothing else in their loop touches: they are added after it."""
    numbers: dict[tuple[Any, ...], int] = {}
    ends: set[int] = set()
    for each in tiles:
        alike = (_operation(each.sums[0]), each.head.a, each.head.b, *(ins.d for ins in each.sums))
        each.head.d = numbers.setdefault(alike, len(numbers))
    for each in tiles:
        position = next(i for i, ins in enumerate(code.instructions) if ins is each.head)
        around = [loop for loop in code.loops if loop[0] <= position <= loop[1]]
        if around:
            first, last = min(around, key=lambda loop: loop[1] - loop[0])
            own = {id(ins) for other in tiles if other.head.d == each.head.d for ins in other.all}
            if _may_wait(code, first, last, own, {reg for ins in each.sums for reg in written(ins)}):
                each.head.e = 1
                ends.add(last + 1)
    replace(code, [(i, [Ins(op.ADD_UP), ins] if i in ends else [ins]) for i, ins in enumerate(code.instructions)])


def _may_wait(code: Code, first: int, last: int, own: set[int], sums: set[Reg]) -> bool:
    """Whether a loop is left at its end only, and nothing in it but their own tiles touches these sums."""
    if any(first <= at <= last and not first <= label.position <= last + 1 for at, label in code.jumps):
        return False
    inner = code.instructions[first : last + 1]
    return all(
        id(i) in own or (i.op not in (op.BARRIER, op.HALT) and not sums.intersection(i.registers())) for i in inner
    )

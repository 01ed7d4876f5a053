"""A pass that finds outer products, sums of products that share their factors, and marks them as tiles.

It needs instructions on virtual registers, with copies already dropped. A `tile` instruction before the sums tells the
machine to compute them at once (see `machine.tiles`). The instructions of a tile stay, moved together, and mean the
same as without it. The pass finds them by their registers alone, whatever the source looks like:

    a0 = load …; a1 = load …; b0 = load …; b1 = load …
    s00 = a0 * b0 + s00; s01 = a0 * b1 + s01; s10 = a1 * b0 + s10; s11 = a1 * b1 + s11
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

from ..fast_dataclass import frozen
from ..machine import opcodes as op
from .basic_blocks import LOADS, replace, rewrite_blocks, uses_of, written
from .virtual_registers import Code, Field, Ins, Reg

_MAD, _FMA = (op.scalar_opcodes()[name] for name in op.TILED)
_SUMS = frozenset((_MAD, _FMA, op.CHECKED))
_MIN_SUMS_WITH_COPIES = 4  # of a tile for which a factor has to be copied from a register


@frozen
class _Tile:
    """An outer product: the instructions that bring its factors, and its sums, row by row."""

    head: Ins
    factors: list[Ins]
    sums: list[Ins]

    @property
    def all(self) -> list[Ins]:
        return [self.head, *self.factors, *self.sums]


def tile(code: Code) -> None:
    """Insert tiles before the instructions that they consist of."""
    if _SUMS.isdisjoint(code.opcodes()):
        return
    uses = cache(lambda: uses_of(code))  # few programs need them
    tiles: list[_Tile] = []
    rewrite_blocks(code, lambda block: _tiled(block, uses, tiles))
    _defer_sums(code, tiles)


# ---- one basic block ---------------------------------------------------------------------------------


def _tiled(block: list[Ins], uses: Callable[[], Counter[Reg]], tiles: list[_Tile]) -> list[Ins]:
    """Return the block with its tiles, which are added to `tiles`."""
    for group in _groups(block):
        for sums in _products(group):
            made = _made(block, sums, uses)
            moved = made and _together(block, made)
            if made and moved:
                block = moved
                tiles.append(made)
    return block


def _groups(block: list[Ins]) -> list[list[Ins]]:
    """Return groups of sums that can be computed at once: of one operation, and each into another register."""
    groups: list[list[Ins]] = [[]]
    for ins in block:
        if ins.dest is ins.c and _operation(ins) is not None:
            same = bool(groups[-1]) and _operation(groups[-1][0]) == _operation(ins)
            if not same or any(ins.dest is other.dest for other in groups[-1]):
                groups.append([])
            groups[-1].append(ins)
    return groups


def _operation(ins: Ins) -> tuple[bool, bool] | None:
    """Return whether a sum on all lanes rounds once, and whether it is checked; None for other instructions."""
    if ins.op == op.CHECKED:
        return (ins.e == op.FUSED, True) if ins.mask == -1 else None
    return (ins.op == _FMA, False) if ins.op in (_MAD, _FMA) and ins.mask != 1 else None


def _products(sums: list[Ins]) -> list[list[Ins]]:
    """Return the outer products among sums: the rows, by field A, that have the same columns, by field B."""
    rows: dict[Field, dict[Field, Ins]] = {}
    for ins in sums:
        if ins.b in rows.setdefault(ins.a, {}):
            return []
        rows[ins.a][ins.b] = ins
    by_columns: dict[frozenset[Field], list[Ins]] = {}
    for columns in rows.values():
        by_columns.setdefault(frozenset(columns), []).extend(columns.values())
    return list(by_columns.values())


def _made(block: list[Ins], sums: list[Ins], uses: Callable[[], Counter[Reg]]) -> _Tile | None:
    """Return the tile of an outer product, if it pays."""
    by_factors = {(s.a, s.b): s for s in sums}
    rows, columns = list(dict.fromkeys(s.a for s in sums)), list(dict.fromkeys(s.b for s in sums))
    if {*rows} & {*columns} or {*rows, *columns} & {s.dest for s in sums}:
        return None
    early = block[: block.index(sums[0])]
    factors = [
        _brought(early, factor, count, uses())
        for several, count in ((rows, len(columns)), (columns, len(rows)))
        for factor in several
    ]
    if any(ins.op == op.COPY for ins in factors) and len(sums) < _MIN_SUMS_WITH_COPIES:
        return None
    ordered = [by_factors[a, b] for a in rows for b in columns]
    return _Tile(Ins(op.TILE, a=len(rows), b=len(columns), e=0), factors, ordered)


def _brought(early: list[Ins], factor: Field, count: int, uses: Counter[Reg]) -> Ins:
    """Return the instruction that brings a factor: the one that computes it, if only `count` sums use it, or a copy."""
    for ins in early:
        brings = (ins.op in LOADS and ins.mask != 1) or ins.op == op.BROADCAST
        if brings and ins.dest is factor and isinstance(factor, Reg) and uses[factor] == 1 + count:
            return ins
    return Ins(op.COPY, dest=Reg(), a=factor, mask=0)


def _together(block: list[Ins], tile: _Tile) -> list[Ins] | None:
    """Return the block with the instructions of a tile side by side, and those between them moved before it; None if
    that would change what they compute."""
    members = {id(ins) for ins in tile.all}
    places = [i for i, ins in enumerate(block) if id(ins) in members]
    first, last = places[0], places[-1] + 1
    read: set[Reg] = set()
    changed: set[Reg] = set()
    for ins in block[first:last]:
        if id(ins) in members:
            read.update(ins.registers())
            changed.update(written(ins))
        elif changed.intersection(ins.registers()) or read.intersection(written(ins)):
            return None
    sums = {reg for ins in tile.sums for reg in written(ins)}
    if any(sums.intersection(ins.registers()) for ins in tile.factors):
        return None
    others = [ins for ins in block[first:last] if id(ins) not in members]
    rows = int(tile.head.a)  # type: ignore[arg-type]
    for i, ins in enumerate(tile.sums):
        columns = len(tile.factors) - rows
        ins.a, ins.b = tile.factors[i // columns].dest, tile.factors[rows + i % columns].dest
    return [*block[:first], *others, *tile.all, *block[last:]]


# ---- the whole code ----------------------------------------------------------------------------------


def _defer_sums(code: Code, tiles: list[_Tile]) -> None:
    """Number the sums, and defer additions to the end of the outermost loop where nothing else touches their sums."""
    numbers: dict[tuple[Any, ...], int] = {}
    ends: set[int] = set()
    for each in tiles:
        key = (_operation(each.sums[0]), each.head.a, each.head.b, *(ins.dest for ins in each.sums))
        each.head.dest = numbers.setdefault(key, len(numbers))
    for each in tiles:
        position = next(i for i, ins in enumerate(code.instructions) if ins is each.head)
        own = {id(ins) for other in tiles if other.head.dest == each.head.dest for ins in other.all}
        sums = {reg for ins in each.sums for reg in written(ins)}
        around = [loop for loop in code.loops if loop[0] <= position <= loop[1]]
        for first, last in sorted(around, key=lambda loop: loop[0] - loop[1]):  # the outermost first
            if _can_defer(code, first, last, own, sums):
                each.head.e = 1
                ends.add(last + 1)
                break
    replace(code, [(i, [Ins(op.ADD_UP), ins] if i in ends else [ins]) for i, ins in enumerate(code.instructions)])


def _can_defer(code: Code, first: int, last: int, own: set[int], sums: set[Reg]) -> bool:
    """Whether a loop is left at its end only, and nothing in it but their own tiles touches these sums."""
    if any(first <= at <= last and not first <= label.position <= last + 1 for at, label in code.jumps):
        return False
    inner = code.instructions[first : last + 1]
    return all(id(i) in own or (i.op != op.HALT and not sums.intersection(i.registers())) for i in inner)

"""Adjacent scalar accesses that a compiler may merge into one, as devices with `merge_adjacent` are charged for.

Loads (or stores) of 4 bytes by one invocation merge where they make up an aligned 8 or 16 bytes: they are in one basic
block, access one variable, and their addresses differ by constants. Alignment must follow from the address as written
(`4u * i + 1u`); a stride or counter known only at run time gives none. Between them may be no barrier, and no access of
another kind to the variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..ir import ir
from ..ir.access import Access
from ..ir.bottom_up import bottom_up
from ..ir.integer_operations import LEFT_SHIFTS, PRODUCTS, SUMS
from ..ir.ir import Item, Region, Value
from ..wgsl.typed import Variable
from .uses import split

WIDTHS = (4, 2)  # of merged accesses in words, widest first
SPACES = ("workgroup", "storage")

Key = tuple[type, Variable, int, int | None, Value | None, Value | None]  # all of an access but the constant
Groups = dict[Key, dict[int, list[ir.Load | ir.Store]]]  # -> word -> accesses


def find_merged_accesses(root: Region, accesses: Sequence[Access]) -> dict[int, int]:
    """Return the merged accesses by identity: the number of words for the one that is charged, 0 for the others."""
    search = _Search(accesses)
    for run in ir.straight_runs(root):
        search.run(run)
    return search.found


class _Search:
    """Merges the accesses of each variable up to the next item that forbids it."""

    def __init__(self, accesses: Sequence[Access]) -> None:
        self._accesses = accesses
        self._open: Groups = {}
        self._multiples: dict[Value, int] = {}
        self.found: dict[int, int] = {}

    def run(self, items: Sequence[Item]) -> None:
        for item in items:
            match item:
                case ir.Load() | ir.Store():
                    self._access(item)
                case ir.Atomic():
                    self._close(self._accesses[item.access].variable)
                case _:
                    pass
        self._close()

    def _access(self, item: ir.Load | ir.Store) -> None:
        access = self._accesses[item.access]
        self._close(access.variable, but=type(item))
        if access.memory not in SPACES or (access.unit, access.units) != (4, 1):
            return
        parts = split(item.address)
        key = (type(item), access.variable, access.stride, access.count, parts.lane, parts.shared)
        self._open.setdefault(key, {}).setdefault(access.offset + parts.constant, []).append(item)

    def _close(self, variable: Variable | None = None, but: type | None = None) -> None:
        """Merge the pending accesses of a variable (None: of all), except those of the type `but`."""
        for key in [k for k in self._open if variable in (None, k[1]) and k[0] is not but]:
            *_, lane, shared = key
            self._merge(self._open.pop(key), min(self._known_multiple(lane), self._known_multiple(shared)))

    def _known_multiple(self, value: Value | None) -> int:
        """Return the largest of 4, 2 and 1 words that a part of an address is known to be a multiple of."""
        return 4 if value is None else bottom_up(value, self._multiples, _operands, _multiple)

    def _merge(self, places: dict[int, list[ir.Load | ir.Store]], aligned: int) -> None:
        for words in (n for n in WIDTHS if n <= aligned):
            for first in sorted(places):
                group = [places.get(first + i) for i in range(words)]
                if first % words == 0 and all(group):
                    heads = [each.pop(0) for each in group if each]
                    self.found |= {id(head): 0 for head in heads} | {id(heads[0]): words}


def _operands(value: Value) -> Sequence[Value]:
    """Return the operands whose multiples determine that of a value."""
    if value.op in (*SUMS, *PRODUCTS):
        return value.args
    is_shifted = value.op in LEFT_SHIFTS and value.args[1].op == "const"
    return value.args[:1] if is_shifted or value.op == "bits" else ()


def _multiple(value: Value, operands: Sequence[int]) -> int:
    """Return the largest of 4, 2 and 1 words that a value is known to be a multiple of, from those of its operands."""
    if value.op == "const":
        return _power(value.imm)
    if value.op in LEFT_SHIFTS and operands:
        return min(4, operands[0] << min(value.args[1].imm, 2))
    if value.op in PRODUCTS:
        return min(4, prod(operands))
    return min(operands, default=1)


def _power(number: int) -> int:
    return 4 if number % 4 == 0 else 2 if number % 2 == 0 else 1

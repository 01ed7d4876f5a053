"""Adjacent scalar accesses that a compiler may make one: what a device with `merge_adjacent` is charged for.

Loads (or stores) of 4 bytes by one invocation, in one straight run of code and of one variable, whose addresses differ
by constants, go together where they make up an aligned 8 or 16 bytes. Alignment has to follow from the address as it is
written (`4u * i + 1u`): a stride or a counter that is known only when it runs has none. Nothing else may touch the
variable between them but accesses of their kind, and no barrier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir import ir
from ..ir.access import Access
from ..ir.ir import Region, Value
from .uses import base, split

WORDS = (4, 2)  # of merged accesses, the widest first
SPACES = ("workgroup", "storage")

Groups = dict[tuple[Any, ...], dict[int, list[ir.Load | ir.Store]]]  # alike but for the constant -> word -> accesses


def find_merged_accesses(root: Region, accesses: Sequence[Access]) -> dict[int, int]:
    """By identity, the accesses that are merged: how many words the one that is charged has, 0 for the others."""
    found: dict[int, int] = {}
    _Straight(accesses, found).region(root)
    return found


class _Straight:
    """Walks straight runs, and settles the accesses of each variable where something ends theirs."""

    def __init__(self, accesses: Sequence[Access], found: dict[int, int]) -> None:
        self._accesses = accesses
        self._found = found
        self._open: Groups = {}

    def region(self, region: Region) -> None:
        for item in region.items:
            match item:
                case ir.Load() | ir.Store():
                    self._access(item)
                case ir.Atomic():
                    self._settle(self._accesses[item.access].variable)
                case ir.Barrier() | ir.Jump():
                    self._settle()
                case ir.If() | ir.Loop() | ir.Scope():
                    self._settle()
                    for inner in ir.regions(item):
                        self.region(inner)
                case _:
                    pass
        self._settle()

    def _access(self, item: ir.Load | ir.Store) -> None:
        access = self._accesses[item.access]
        self._settle(access.variable, but=type(item))
        if access.memory not in SPACES or (access.unit, access.units) != (4, 1):
            return
        parts = split(item.address)
        key = (type(item), access.variable, access.stride, access.count, parts.lane, parts.shared)
        self._open.setdefault(key, {}).setdefault(access.offset + parts.constant, []).append(item)

    def _settle(self, variable: Any = None, but: type | None = None) -> None:
        """Merge what is open of a variable (None: of all), except accesses of one type."""
        for key in [k for k in self._open if variable in (None, k[1]) and k[0] is not but]:
            *_, lane, shared = key
            self._merge(self._open.pop(key), min(_factor(lane), _factor(shared)))

    def _merge(self, places: dict[int, list[ir.Load | ir.Store]], aligned: int) -> None:
        for words in (n for n in WORDS if n <= aligned):
            for first in sorted(places):
                group = [places.get(first + i) for i in range(words)]
                if first % words == 0 and all(group):
                    heads = [each.pop(0) for each in group if each]
                    self._found |= {id(head): 0 for head in heads} | {id(heads[0]): words}


def _factor(value: Value | None) -> int:
    """The largest of 4, 2 and 1 words that a part of an address is known to be a multiple of."""
    if value is None:
        return 4
    value = base(value)
    if value.op == "const":
        return _power(value.imm)
    if value.op in ("mul_u32", "mul_i32"):
        return min(4, _factor(value.args[0]) * _factor(value.args[1]))
    if value.op in ("shl_u32", "shl_i32") and value.args[1].op == "const":
        return min(4, _factor(value.args[0]) << min(value.args[1].imm, 2))
    if value.op in ("add_u32", "add_i32"):
        return min(_factor(value.args[0]), _factor(value.args[1]))
    return 1


def _power(number: int) -> int:
    return 4 if number % 4 == 0 else 2 if number % 2 == 0 else 1

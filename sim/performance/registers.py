"""The registers that an invocation needs: the most values that are live at once, and some that every program has.

Values that all lanes share are in registers of their own, conditions in predicates, and long arrays that are indexed at
run time in memory; a constant that is added to an address is part of the access. What a loop needs from before it is
live to its end. A compiler that has registers to spare takes more, to load ahead; but where the workgroups that a core
holds depend on them, an H200's driver takes 13 more than the values that a loop keeps, two of which are its own:
kernels that keep 20, 27, 35 and 49 values fit in 32, 40, 48 and 64 registers, and with one more they do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import accumulate

from ..ir import ir
from ..ir.lowered import Lowered
from .function_arrays import arrays_in_memory, slots_of
from .instruction_costs import needed_values, operands

_OTHERS = 10  # for addresses, and what a driver keeps
_FREE = frozenset(("const", "length"))
_COPIES = frozenset(("get", "bits"))


def registers(lowered: Lowered) -> int:
    """Return the registers of an invocation. Needs the uniformity that `chains.region_costs` finds."""
    walk = _Walk(lowered)
    walk.region(lowered.body)
    changes: Counter[int] = Counter()
    for value, first in walk.first.items():
        changes[first] += 1
        changes[walk.last[value] + 1] -= 1
    return _OTHERS + max(accumulate(changes[position] for position in sorted(changes)), default=0)


class _Walk:
    """Finds where values and variables are live: from the first to the last position, by their identity."""

    def __init__(self, lowered: Lowered) -> None:
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self._position = 0
        self._needed = needed_values(lowered.body)
        self._in_memory = slots_of(arrays_in_memory(lowered.body))
        self._used: list[set[int]] = [set()]  # in each of the loops around, and in the program

    def region(self, region: ir.Region) -> None:
        for item in region.items:
            self._position += 1
            match item:
                case ir.Value():
                    if id(item) in self._needed and item.op not in _COPIES:
                        self._use(item.args)
                        self._touch([item])
                case ir.Loop():
                    self._loop(item)
                case ir.Load() | ir.Store() | ir.Atomic():
                    self._use_address(item.address)
                    self._use(_stored(item))
                    self._touch(_written(item))
                case _:
                    self._use(operands(item))
                    self._touch(_written(item))
                    for inner in ir.regions(item):
                        self.region(inner)

    def _loop(self, loop: ir.Loop) -> None:
        begin = self._position
        self._used.append(set())
        for region in ir.regions(loop):
            self.region(region)
        self._use(operands(loop))
        used = self._used.pop()
        self.last.update((each, self._position) for each in used if self.first[each] < begin)
        self._used[-1] |= used

    def _use(self, values: Iterable[ir.Value]) -> None:
        for value in values:
            while value.op == "bits":
                value = value.args[0]
            self._touch([value.imm if value.op == "get" else value])

    def _use_address(self, address: ir.Value | None) -> None:
        while address is not None and address.op == "add_u32" and address.args[-1].op == "const":
            address = address.args[0]
        if address is not None:
            self._use([address])

    def _touch(self, written: Iterable[ir.Value | ir.Slot]) -> None:
        for each in written:
            unused = isinstance(each, ir.Value) and (each.op in _FREE or id(each) not in self._needed)
            if not (unused or each.kind == "bool" or each.uniform or id(each) in self._in_memory):
                self.first.setdefault(id(each), self._position)
                self.last[id(each)] = self._position
                self._used[-1].add(id(each))


def _stored(item: ir.Load | ir.Store | ir.Atomic) -> list[ir.Value]:
    """Return the operands of an access, without its address."""
    match item:
        case ir.Load():
            return []
        case ir.Store(values=values) | ir.Atomic(args=values):
            return values


def _written(item: ir.Item) -> Iterable[ir.Value | ir.Slot]:
    """Return the values and variables that an item needs registers for, besides its operands."""
    match item:
        case ir.Set(slot=slot):
            return [slot]
        case ir.Load(results=results) | ir.Atomic(results=results) | ir.Collective(results=results):
            return results
        case ir.Pick(result=result, block=block):
            return [result, *block.slots]
        case ir.Put(block=block):
            return block.slots
        case _:
            return []

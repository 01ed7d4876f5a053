"""The registers that an invocation needs: the most values that are live at once, and some that every program has.

Values that all lanes share are in registers of their own, conditions in predicates, and long arrays that are indexed at
run time in memory; a constant that is added to an address is part of the access. What a loop needs from before it is
live to its end. Where the number of resident workgroups depends on them, an H200's driver takes 13 registers more than
a loop carries values, two of them for the loop itself: loops that carry 20, 27, 35 and 49 values fit in 32, 40, 48 and
64 registers, and with one more value they do not. Where fewer registers would not make room for another workgroup, the
spare ones hold the results of loads in flight.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import field
from itertools import accumulate

from ..fast_dataclass import frozen
from ..ir import ir
from ..ir.lowered import Lowered
from .instruction_costs import needed_values, operands, operands_without_address

_OTHERS = 10  # for addresses, and what a driver keeps
# Registers that a loop needs for itself, and the fewest that loads in flight fill. On an H200, loops of independent
# loads that carry 4, 8, 16, 24, 32, 48 and 64 words wait once for every 16, 13, 13, 22, 28, 50 and 64 words where more
# than 32 registers would reduce the resident workgroups; those that carry up to 32, for every 64, 58, 53, 45 and 37
# where workgroup memory leaves 80. Loops that carry 36 words wait twice for as many, and those that carry 40 once.
_OWN, _LEAST_IN_FLIGHT, _MANY = 2, 13, 40
_OF_ADDRESSES = 1  # registers of parts of addresses that a loop needs from before it
_FREE = frozenset(("const", "length"))
_COPIES = frozenset(("get", "bits"))


@frozen
class LiveWords:
    """The words of an invocation that are live at once. `most`: at any place; `kept`: likewise, without those that only
    addresses need; `through`: kept from before each loop to its end, by the identity of the loop."""

    most: int
    kept: int
    through: Mapping[int, int] = field(hash=False)

    @property
    def registers(self) -> int:
        """The registers of an invocation."""
        return _OTHERS + self.most

    @property
    def kept_registers(self) -> int:
        """Those of them that loads in flight cannot fill."""
        return _OTHERS + self.kept


def live_words(lowered: Lowered, needed: Set[int], elsewhere: Set[int]) -> LiveWords:
    """Return the words that are live at once in a program. Needs the uniformity of values.

    `needed`: the identities of the values that cost something; `elsewhere`: those of variables that take no registers.
    """
    walk = _Walk(lowered, needed, elsewhere)
    walk.region(lowered.body)
    others = needed_values(lowered.body, addresses=False)
    values, addresses = [0] * (walk.position + 2), [0] * (walk.position + 2)
    for value, first in walk.first.items():
        changes = addresses if value in needed and value not in others else values
        changes[first] += 1
        changes[walk.last[value] + 1] -= 1
    live, of_addresses = [*accumulate(values)], [*accumulate(addresses)]
    kept = [each + min(its, _OF_ADDRESSES) for each, its in zip(live, of_addresses, strict=True)]
    most = max(each + its for each, its in zip(live, of_addresses, strict=True))
    return LiveWords(most, max(kept), {loop: kept[begin] for loop, begin in walk.loops.items()})


def words_in_flight(held: int, live: int, unit: int) -> int:
    """Return the words that loads may fill before the first is used, in a loop through which so many others are live.

    `held`: registers that an invocation needs, or may hold without an effect on how many workgroups are resident. An
    H200's driver takes them all. It takes more, though fewer workgroups are resident then, for 13 words in flight, and
    for as many as are live. `unit`: registers of an invocation are a multiple of it.
    """
    held = -(-max(held, _OTHERS + live + _LEAST_IN_FLIGHT) // unit) * unit
    own = 0 if live > _MANY else _OWN
    return max(live - own, held - live - _OTHERS)


class _Walk:
    """Finds where values and variables are live: from the first to the last position, by their identity."""

    def __init__(self, lowered: Lowered, needed: Set[int], elsewhere: Set[int]) -> None:
        self.first: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.loops: dict[int, int] = {}  # the position where each begins, by identity
        self.position = 0
        self._loaded: dict[int, tuple[int, int]] = {}  # where and in how many loops, by identity
        self._needed, self._elsewhere = needed, elsewhere
        self._set = {id(item.value) for item in ir.items_of(lowered.body) if isinstance(item, ir.Set)}
        self._used: list[set[int]] = [set()]  # in each of the loops around, and in the program

    def region(self, region: ir.Region) -> None:
        for item in region.items:
            self.position += 1
            match item:
                case ir.Value():
                    if id(item) in self._needed and item.op not in _COPIES:
                        self._use(item.args)
                        self._touch([item])
                case ir.Loop():
                    self._loop(item)
                case ir.Load(address=address, results=results):
                    self._use_address(address)
                    self._loaded.update((id(each), (self.position, len(self._used))) for each in results)
                case ir.Store() | ir.Atomic():
                    self._use_address(item.address)
                    self._use(operands_without_address(item))
                    self._touch(_written(item))
                case _:
                    self._use(operands(item))
                    self._touch(_written(item))
                    for inner in ir.regions(item):
                        self.region(inner)

    def _loop(self, loop: ir.Loop) -> None:
        begin = self.loops[id(loop)] = self.position
        self._used.append(set())
        for region in ir.regions(loop):
            self.region(region)
        self._use(operands(loop))
        used = self._used.pop()
        self.last.update((each, self.position) for each in used if self.first[each] < begin)
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
            no_register = isinstance(each, ir.Value) and (each.op in _FREE or id(each) not in self._needed)
            no_register |= id(each) in self._set  # it is made in the register of the variable
            if not (no_register or each.kind == "bool" or each.uniform or id(each) in self._elsewhere):
                self.first.setdefault(id(each), self._begin(each))
                self.last[id(each)] = self.position
                self._used[-1].add(id(each))

    def _begin(self, written: ir.Value | ir.Slot) -> int:
        """Return from where on something takes a register that is used or written here for the first time.

        A compiler that lacks registers moves a load to the first use of its result, but into no loop.
        """
        position, loops = self._loaded.get(id(written), (self.position, len(self._used)))
        return self.position if loops == len(self._used) else position


def _written(item: ir.Item) -> Iterable[ir.Value | ir.Slot]:
    """Return the values and variables that an item needs registers for, besides its operands."""
    match item:
        case ir.Set(slot=slot):
            return [slot]
        case ir.Atomic(results=results) | ir.Collective(results=results):
            return results
        case ir.Pick(result=result, block=block):
            return [result, *block.slots]
        case ir.Put(block=block):
            return block.slots
        case _:
            return []

"""Which values may differ on another implementation, and what a branch that may go the other way can affect.

The analysis starts from no inexact values, and walks the program until it finds no more: loops reach a fixed point.

A branch is *doubtful* if its condition may be inexact. Its *extent* is the construct up to whose end the lanes of the
branch may be elsewhere in the program: the branch itself or, if jumps leave it, the outermost Loop or Scope that they
leave, with what jumps in there leave in turn.
"""

from __future__ import annotations

from dataclasses import field

from ...fast_dataclass import entity
from ...ir import ir
from ...ir.access import Access
from ...ir.ir import Region, Slot, Value, items, regions
from ...wgsl.typed import Variable
from .error_rules import is_exact
from .formats import FORMATS

Construct = ir.If | ir.Loop | ir.Scope
Place = tuple[Variable, int]  # the words of a variable that are read and written in units of so many bytes


@entity
class Inexact:
    """What may be inexact. `doubtful`: Ifs and Loops, by identity, with their extents. `lost`: variables of which a
    doubtful branch may have stored an element that is not known."""

    values: set[Value] = field(default_factory=set[Value])
    slots: set[Slot] = field(default_factory=set[Slot])
    places: set[Place] = field(default_factory=set[Place])
    doubtful: dict[int, Construct] = field(default_factory=dict[int, Construct])
    lost: set[Variable] = field(default_factory=set[Variable])

    @property
    def extents(self) -> set[int]:
        return {id(extent) for extent in self.doubtful.values()}

    def size(self) -> int:
        return len(self.values) + len(self.slots) + len(self.places) + len(self.doubtful) + len(self.lost)


def find_inexact(body: Region, accesses: list[Access], start: frozenset[str]) -> Inexact:
    """Find what may be inexact. `start`: variables whose floats are inexact from the start."""
    found = Inexact()
    while True:
        before = found.size()
        _Walk(found, accesses, start).region(body, False)
        if found.size() == before:
            return found


def place(accesses: list[Access], item: ir.Load | ir.Store | ir.Atomic) -> Place:
    access = accesses[item.access]
    return access.variable, access.unit


def is_known_in(region: Region, address: Value | None) -> bool:
    """Whether an address is computed in this region or around it."""
    here: Region | None = region
    while address is not None and here is not address.region:
        if here is None:
            return False
        here = here.parent
    return True


def _beside(slot: Slot) -> list[Slot]:
    """Return the variables that an index that may pick this one may also pick."""
    return slot.block.slots if slot.block is not None and slot.block.indexed else [slot]


class _Walk:
    """One pass, which adds to `found`."""

    def __init__(self, found: Inexact, accesses: list[Access], start: frozenset[str]) -> None:
        self._found = found
        self._accesses = accesses
        self._start = start
        self._around: list[tuple[Construct, Region]] = []

    def region(self, region: Region, astray: bool) -> None:
        """`astray`: inside the extent of a doubtful branch."""
        for item in region.items:
            self._item(item, astray, region)

    def _off(self, *values: Value | None) -> bool:
        return any(v in self._found.values for v in values if v is not None)

    def _item(self, item: ir.Item, astray: bool, here: Region) -> None:
        found = self._found
        match item:
            case Value():
                if self._value(item):
                    found.values.add(item)
            case ir.Set(slot=slot, value=value):
                if astray or self._off(value):
                    found.slots.update(_beside(slot))
            case ir.Put(block=block, index=index, value=value):
                if astray or self._off(index, value):
                    found.slots.update(block.slots)
            case ir.Pick(result=result, block=block, index=index):
                if self._off(index) or found.slots.intersection(block.slots):
                    found.values.add(result)
            case ir.Load() | ir.Store() | ir.Atomic():
                self._memory(item, astray, here)
            case ir.Collective(results=results, args=args, scalar=scalar):
                rounds = scalar in ("add_f32", "add_f16", "mul_f32", "mul_f16")
                if astray or rounds or self._off(*args):
                    found.values.update(results)
            case ir.If() | ir.Loop() | ir.Scope():
                self._construct(item, astray, here)
            case _:
                pass

    def _value(self, value: Value) -> bool:
        match value.op:
            case "const":
                return False
            case "get":
                return value.imm in self._found.slots
            case "input" | "length":
                return False
            case _:
                return self._off(*value.args) or not is_exact(value)

    def _memory(self, item: ir.Load | ir.Store | ir.Atomic, astray: bool, here: Region) -> None:
        found, which = self._found, place(self._accesses, item)
        wild = self._off(item.address)
        if not isinstance(item, ir.Load):
            args = item.values if isinstance(item, ir.Store) else item.args
            if astray or wild or self._off(*args):
                found.places.add(which)
            if wild:
                found.lost.add(which[0])
        if not isinstance(item, ir.Store):
            start = which[0].name in self._start and (which[1] == 2 or item.results[0].kind in FORMATS)
            if wild or start or which in found.places or which[0] in found.lost:
                found.values.update(item.results)

    def _construct(self, item: Construct, astray: bool, here: Region) -> None:
        found = self._found
        self._around.append((item, here))
        inside = astray or id(item) in found.extents
        for region in regions(item):
            self.region(region, inside)
        conditions = [getattr(item, name, None) for name in ("condition", "break_if")]
        if self._off(*conditions):
            extent, around = self._extent()
            found.doubtful[id(item)] = extent
            for each in items(extent):
                if isinstance(each, ir.Store | ir.Atomic) and not is_known_in(around, each.address):
                    found.lost.add(place(self._accesses, each)[0])
        self._around.pop()

    def _extent(self) -> tuple[Construct, Region]:
        """Return the extent of the innermost construct around here, and the region that contains it."""
        depth = len(self._around) - 1
        while True:
            extent = self._around[depth][0]
            left = {id(j.target.node) for j in items(extent) if isinstance(j, ir.Jump)}
            further = [i for i, (each, _) in enumerate(self._around[:depth]) if id(each) in left]
            if not further:
                return self._around[depth]
            depth = further[0]

"""The intermediate program: scalar values in a tree of regions.

The lowerer builds it, the emitter flattens it. A `Value` is computed once on every lane, whether or not the lane is
active: values have no effects. What has an effect (loads that are counted, stores, jumps, barriers) is an item in a
`Region`, in order. Mutable variables are `Slot`s, one per scalar.

`Builder` numbers values as they are made: the same operation on the same values is made once, constants are folded
through the scalar semantics, and a value that does not depend on a loop is placed before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import Any

import numpy as np

from ..fast_dataclass import entity
from ..scalar import OPS
from ..wgsl.source import Span
from .passes import ALL, Passes
from .ranges import within
from .register_bits import from_bits, to_bits
from .simplify import simplify


@entity
class Value:
    """One scalar per lane. `kind` is f32, f16, i32, u32 or bool.

    `op` is a scalar operation, or one of: const (imm: uint32 bits), input (imm: name of a machine input),
    length (imm: access index whose element count is meant), get (imm: Slot), pick (imm: Pick), bits (the argument's
    bits under another kind), or the result of an effect item.
    """

    op: str
    args: tuple[Value, ...]
    kind: str
    region: Region
    imm: Any = None
    id: int = 0
    uniform: bool = False

    def __repr__(self) -> str:
        return f"%{self.id}={self.op}({', '.join(f'%{a.id}' for a in self.args)}{'' if self.imm is None else self.imm})"


@entity
class Slot:
    """One scalar of a mutable variable, in every lane. Slots of one `Block` lie side by side."""

    kind: str
    name: str
    region: Region
    block: Block | None = None
    uniform: bool = False


@entity
class Block:
    """The slots of one variable. `indexed`: some access picks a slot at run time, so they need adjacent registers."""

    slots: list[Slot]
    indexed: bool = False


@entity
class Region:
    """A straight run of items. `loop`: one that is run again and again."""

    parent: Region | None
    loop: bool = False
    items: list[Item] = field(default_factory=list)
    known: dict[Any, Value] = field(default_factory=dict)
    depth: int = 0
    count: Count | None = None
    hidden_after: int | None = None  # values of the parent made later than this may not have been reached


# ---- items -------------------------------------------------------------------------------------------


@entity
class Count:
    """Counts executions and active lanes once for all the sites of one straight run, and for all that is computed in
    it: how many instructions of which class (see `mix`) at which place. `rounded`: FLOPs, and what they give."""

    sites: list[int] = field(default_factory=list)
    computed: dict[tuple[str, Span], int] = field(default_factory=dict)
    rounded: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list)


@entity
class Set:
    slot: Slot
    value: Value


@entity
class Pick:
    """`result` = slot number `index` of `block` (clamped)."""

    result: Value
    block: Block
    index: Value


@entity
class Put:
    block: Block
    index: Value
    value: Value


@entity
class Load:
    """`results` = consecutive units at address + offset of the access. `address` None: the access alone says where."""

    results: list[Value]
    access: int
    address: Value | None
    site: int


@entity
class Check:
    """`address` = an index that is kept inside without a word; `access` says how far it may go."""

    access: int
    address: Value | None
    site: int


@entity
class Store:
    values: list[Value]
    access: int
    address: Value | None
    site: int


@entity
class Atomic:
    """`result` = old value; `op` is a machine atomic; `args` its operands."""

    op: str
    results: list[Value]
    args: list[Value]
    access: int
    address: Value | None
    site: int


@entity
class Barrier:
    """`kind` is workgroup, storage or texture (the memory it orders)."""

    kind: str
    site: int


@entity
class Collective:
    """`results` of `args` over the active lanes of each subgroup; `op` is one of the machine's collectives, those that
    combine values do so by the operation `scalar`."""

    op: str
    results: list[Value]
    args: list[Value]
    site: int
    scalar: str = ""


@entity
class Note:
    """`values` (one) is traced at a point. `address`: the component, or the place in memory, where it is not known yet;
    `access`: how memory is touched, -1 for other variables."""

    values: list[Value]
    point: int
    address: Value | None = None
    access: int = -1


@entity
class Inspect:
    """The source computes `result` here; `kind` says what could be wrong with it (see `machine.layout`).

    It changes nothing about what is computed, and how: it is made `active` when that is settled.
    """

    kind: int
    result: Value
    site: int
    active: bool = False


@entity
class Margin:
    """Looks how far `one` < `other` (`least` 1), or <= (0), is from being otherwise; `place` in the table of these."""

    one: Value
    other: Value
    least: int
    signed: bool
    place: int


@entity
class If:
    condition: Value
    then: Region
    orelse: Region


@entity
class Loop:
    """`header` computes `condition` (None: none), then `body`, `continuing`, and `break_if`."""

    header: Region
    condition: Value | None
    body: Region
    continuing: Region
    break_if: Value | None
    site: int = -1


@entity
class Scope:
    """`body` may jump to its end: an inlined function, or a switch."""

    body: Region


@entity
class Jump:
    """Leave `target`: `exit` ends a Scope or Loop, `continue` goes to the loop's continuing part."""

    kind: str
    target: Target


@entity
class Target:
    """Where jumps go; made before the Loop or Scope it belongs to is complete."""

    node: Loop | Scope | None = None
    jumps: int = 0
    continues: int = 0


Memory = Load | Store | Atomic | Check
Look = Note | Inspect | Margin
Item = Value | Count | Set | Pick | Put | Memory | Barrier | Collective | Look | If | Loop | Scope | Jump


def regions(item: Item) -> tuple[Region, ...]:
    """The regions inside an item, in the order in which they run."""
    match item:
        case If(then=then, orelse=orelse):
            return then, orelse
        case Loop(header=header, body=body, continuing=continuing):
            return header, body, continuing
        case Scope(body=body):
            return (body,)
        case _:
            return ()


def items(item: Item) -> Iterator[Item]:
    """Everything inside an item."""
    for region in regions(item):
        yield from items_of(region)


def items_of(region: Region) -> Iterator[Item]:
    """Everything in a region, and inside that."""
    for each in region.items:
        yield each
        if isinstance(each, If | Loop | Scope):
            yield from items(each)


def regions_of(body: Region) -> list[Region]:
    """A region and all those inside it."""
    return [body, *(region for item in items_of(body) for region in regions(item))]


def _has_floats(name: str) -> bool:
    """Whether a scalar operation takes or makes any."""
    row = OPS[name]
    return not {"f32", "f16"}.isdisjoint((row.result, *row.args))


class Builder:
    """Makes values and regions. `here` is the region that grows. `fold_floats`: operations of floats on constants are
    done at once, as others are. `passes`: see `passes`."""

    def __init__(self, fold_floats: bool = True, passes: Passes = ALL) -> None:
        self._fold_floats = fold_floats
        self._passes = passes
        self.root = Region(None)
        self.here = self.root
        self._next = 0
        self._versions: dict[Slot, tuple[int, Region]] = {}
        self._version = 0
        self.slots: list[Slot] = []

    # -- values --

    def const(self, kind: str, value: Any) -> Value:
        return self._bits(kind, to_bits(kind, value))

    def _bits(self, kind: str, bits: int) -> Value:
        return self._value("const", (), kind, self.root, bits)

    def input(self, name: str) -> Value:
        return self._value("input", (), "u32", self.root, name)

    def length(self, access: int) -> Value:
        return self._value("length", (), "u32", self.root, access)

    def op(self, name: str, *args: Value) -> Value:
        """The scalar operation `name`, folded, simplified, found again or made."""
        constants = [a.op for a in args].count("const")
        if not constants:
            return self.computed(name, *args)
        if constants == len(args) and "fold" in self._passes and (self._fold_floats or not _has_floats(name)):
            return self._folded(name, args)
        simpler = simplify(self, name, args) if "simplify" in self._passes else None
        if simpler is None and "ranges" in self._passes:
            simpler = within(name, args)
        return self.computed(name, *args) if simpler is None else simpler

    def _folded(self, name: str, args: tuple[Value, ...]) -> Value:
        row = OPS[name]
        operands = [from_bits(k, a.imm) for k, a in zip(row.args, args, strict=True)]
        with np.errstate(all="ignore"):
            return self._bits(row.result, to_bits(row.result, row.fn(*operands)))

    def computed(self, name: str, *args: Value) -> Value:
        """The scalar operation `name`, found again or made: it is not known before the run."""
        return self._value(name, args, OPS[name].result, self._home(args))

    def result(self, kind: str) -> Value:
        """A value that an effect item of this region gives."""
        value = Value("result", (), kind, self.here, None, self._number())
        return value

    def fixed_load(self, kind: str, count: int, access: int, address: Value | None, site: int) -> list[Value]:
        """Units of memory that nothing writes: loaded where the address is known, once for the same address."""
        home = self._home(() if address is None else (address,))
        keys = [("load", access, address, unit, kind) for unit in range(count)]
        found = [self._find(key) for key in keys] if "number" in self._passes else []
        if found and all(v is not None for v in found):
            return [v for v in found if v is not None]
        results = [Value("result", (), kind, home, None, self._number()) for _ in range(count)]
        home.known.update(zip(keys, results, strict=True))
        home.items.append(Load(results, access, address, site))
        return results

    def reinterpret(self, kind: str, value: Value) -> Value:
        """The same bits under another name (registers have no type)."""
        if value.kind == kind:
            return value
        if value.op == "const":
            return self._bits(kind, value.imm)
        return self._value("bits", (value,), kind, value.region)

    def _value(self, op: str, args: tuple[Value, ...], kind: str, home: Region, imm: Any = None) -> Value:
        key = (op, args, imm, kind)
        found = self._find(key) if "number" in self._passes else None
        if found is not None:
            return found
        value = Value(op, args, kind, home, imm, self._number())
        home.known[key] = value
        home.items.append(value)
        return value

    def _number(self) -> int:
        self._next += 1
        return self._next

    def _find(self, key: Any) -> Value | None:
        region: Region | None = self.here
        limit: int | None = None
        while region is not None:
            value = region.known.get(key)
            if value is not None and (limit is None or value.id <= limit):
                return value
            limit = region.hidden_after
            region = region.parent
        return None

    def _home(self, args: Iterable[Value]) -> Region:
        """Where a value of these arguments is computed: before the outermost loop that does not change it."""
        if "place" not in self._passes:
            return self.here
        depth = max([a.region.depth for a in args], default=0)
        home = region = self.here
        while region.depth > depth:
            assert region.parent is not None
            if region.loop:
                home = region.parent
            region = region.parent
        return home

    @property
    def last(self) -> int:
        """The number of the value made last."""
        return self._next

    # -- slots --

    def block(self, kinds: list[str], name: str) -> Block:
        block = Block([])
        block.slots = [Slot(kind, name, self.here, block) for kind in kinds]
        self.slots += block.slots
        return block

    def get(self, slot: Slot) -> Value:
        version, region = self._versions[slot]
        key = ("get", slot, version)
        found = self._find(key)
        if found is None:
            found = Value("get", (), slot.kind, region, slot, self._number())
            region.known[key] = found
            region.items.append(found)
        return found

    def set(self, slot: Slot, value: Value) -> None:
        self.here.items.append(Set(slot, value))
        self.changed([slot])
        version, _ = self._versions[slot]
        if "forward" in self._passes:
            self.here.known["get", slot, version] = value

    def pick(self, block: Block, index: Value) -> Value:
        block.indexed = True
        result = Value("pick", (), block.slots[0].kind, self.here, None, self._number())
        result.imm = Pick(result, block, index)
        self.here.items.append(result.imm)
        return result

    def put(self, block: Block, index: Value, value: Value) -> None:
        block.indexed = True
        self.here.items.append(Put(block, index, value))
        self.changed(block.slots)

    def changed(self, slots: Iterable[Slot]) -> None:
        """From here on, in this region, reads of `slots` are new values."""
        for slot in slots:
            self._version += 1
            self._versions[slot] = (self._version, self.here)

    def versions(self) -> dict[Slot, tuple[int, Region]]:
        return dict(self._versions)

    def merge(self, before: dict[Slot, tuple[int, Region]], *after: dict[Slot, tuple[int, Region]]) -> None:
        """After constructs that ran on some lanes: what any of them changed is a new value."""
        self._versions = dict(before)
        moved = [slot for some in after for slot, was in before.items() if some.get(slot) is not was]
        self.changed(dict.fromkeys(moved))

    def restore(self, versions: dict[Slot, tuple[int, Region]]) -> None:
        self._versions = dict(versions)

    # -- regions --

    def region(self, loop: bool = False, parent: Region | None = None) -> Region:
        parent = parent or self.here
        return Region(parent, loop, depth=parent.depth + 1)

    def append(self, item: Item) -> None:
        """An effect item; a construct that may change the mask ends the open count."""
        self.here.items.append(item)
        if isinstance(item, If | Loop | Scope | Jump):
            self.here.count = None

    def tally(self, site: int) -> None:
        """`site` is executed here."""
        self._count().sites.append(site)

    def tally_rounded(self, flops: int, values: Iterable[Value]) -> None:
        """So many FLOPs are done here for these values."""
        self._count().rounded.append((flops, tuple(values)))

    def tally_computed(self, name: str | None, span: Span) -> None:
        """An instruction of this class (None: nothing) is executed here; `span` is where the source has it."""
        if name is not None:
            computed = self._count().computed
            computed[name, span] = computed.get((name, span), 0) + 1

    def _count(self) -> Count:
        """What counts the straight run that we are in."""
        if self.here.count is None:
            self.here.count = Count()
            self.here.items.append(self.here.count)
        return self.here.count

"""The intermediate program: scalar values in a tree of regions.

Lowering builds it with a `builder.Builder`; codegen flattens it. A `Value` is computed once, on every lane, active or
not: values have no effects. Anything with an effect (counted loads, stores, jumps, barriers) is an item of a `Region`,
in program order. A mutable variable is a `Block` of `Slot`s, one per scalar component.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any

from ..fast_dataclass import entity
from ..wgsl.source import Span
from .sites import SourceSite


@entity(slots=True)
class Value:
    """One scalar per lane. `kind` is f32, f16, i32, u32 or bool.

    `op` is a scalar operation, or one of: const (imm: uint32 bits), input (imm: name of a machine input), length (imm:
    access, whose array's length it is), get (imm: Slot), pick (imm: Pick), bits (the argument's bits as another kind),
    result (of an effect item).
    """

    op: str
    args: tuple[Value, ...]
    kind: str
    region: Region
    imm: Any = None
    id: int = 0
    uniform: bool = False
    span: Span | None = None  # the source it was first built for, if any

    def __repr__(self) -> str:
        return f"%{self.id}={self.op}({', '.join(f'%{a.id}' for a in self.args)}{'' if self.imm is None else self.imm})"


@entity
class Slot:
    """One scalar of a mutable variable, in every lane. The slots of a `Block` are adjacent.

    A *table* has `rows` scalars, and is the only slot of its block: `Pick` and `Put` access one of them, `Set` sets
    all. A large array is a table, so that passes need not visit its elements.
    """

    kind: str
    name: str
    region: Region = field(repr=False)
    block: Block | None = field(default=None, repr=False)
    uniform: bool = False
    rows: int = 1


@entity
class Block:
    """The slots of one variable. `indexed`: some are selected at run time, so they need adjacent registers; `copied`:
    they hold an array that is a value, such as a parameter, which is copied to select from it."""

    slots: list[Slot]
    indexed: bool = False
    copied: bool = False

    @property
    def rows(self) -> int:
        """The number of scalars."""
        return self.slots[0].rows if self.is_table else len(self.slots)

    @property
    def is_table(self) -> bool:
        return self.slots[0].rows > 1


@entity
class Region:
    """A sequence of items. `loop`: it may run more than once."""

    parent: Region | None = field(repr=False)
    loop: bool = False
    items: list[Item] = field(default_factory=list["Item"])
    depth: int = 0
    hidden_after: int | None = None  # parent values with a higher id may not have been computed when this region runs


# ---- items -------------------------------------------------------------------------------------------


@entity
class Count:
    """Counts executions and active lanes of a basic block, once for all its sites and instructions.

    `computed`: instructions, each with its class (see `instruction_classes`), source, and the value that it computes or
    decides by, if any. `rounded`: FLOPs, and the values that they compute.
    """

    sites: list[int] = field(default_factory=list[int])
    computed: list[tuple[str, Span, Value | None]] = field(default_factory=list[tuple[str, Span, "Value | None"]])
    rounded: list[tuple[int, tuple[Value, ...]]] = field(default_factory=list[tuple[int, tuple[Value, ...]]])


@entity(slots=True)
class Set:
    slot: Slot
    value: Value
    span: Span | None = None


@entity
class Pick:
    """`result` = scalar number `index` of `block`; an index past the last gives the last."""

    result: Value = field(repr=False)  # it shows the item
    block: Block
    index: Value


@entity
class Put:
    block: Block
    index: Value
    value: Value
    span: Span | None = None


@entity(slots=True)
class Load:
    """`results` = consecutive units at `address` (None: 0) plus the offset of the access."""

    results: list[Value]
    access: int
    address: Value | None
    site: int


@entity
class Check:
    """Checks an index that is silently kept in bounds. `access` has the bound."""

    access: int
    address: Value | None
    site: int


@entity(slots=True)
class Store:
    """Stores `values` to consecutive units. `watched`: only the probes see it, nothing is stored."""

    values: list[Value]
    access: int
    address: Value | None
    site: int
    watched: bool = False


@entity
class Atomic:
    """`results` = the old value, and for `compare` whether it exchanged. `op` is an atomic of the machine."""

    op: str
    results: list[Value]
    args: list[Value]
    access: int
    address: Value | None
    site: int


@entity
class Barrier:
    """A control barrier. `kind` is the memory that it orders: workgroup, storage or texture."""

    kind: str
    site: int


@entity
class Collective:
    """`results` of `args` over the active lanes of each subgroup.

    `op` is a subgroup operation of the machine; reductions and scans combine lanes with the scalar operation `scalar`.
    """

    op: str
    results: list[Value]
    args: list[Value]
    site: int
    scalar: str = ""


@entity
class Note:
    """Traces `values` (one value) at a trace point. `address`: the component or address, where it is known at run time;
    `access`: -1 for variables that are not in memory."""

    values: list[Value]
    point: int
    address: Value | None = None
    access: int = -1


@entity
class Inspect:
    """Checks `result` where the source computes it; `kind` says what for (see `machine.layout`).

    It does not keep a value alive or in place: it becomes `active` after optimization, if the value still exists.
    """

    kind: int
    result: Value
    site: int
    active: bool = False


@entity
class Margin:
    """Measures how close `one` < `other` (`least` 1) or <= (`least` 0) is to the opposite; `place` numbers them."""

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
    """Repeats `header`, `body` while `condition` holds (None: always), then `continuing` until `break_if` holds."""

    header: Region
    condition: Value | None
    body: Region
    continuing: Region
    break_if: Value | None
    site: int = -1


@entity
class Scope:
    """A body that jumps can leave: an inlined function, or the clauses of a switch, each an If."""

    body: Region
    is_switch: bool = False


@entity
class Jump:
    """Leaves `target`: `exit` ends a Scope or Loop, `continue` goes to the loop's continuing part."""

    kind: str
    target: Target


@entity
class Target:
    """Where jumps go; exists before its Loop or Scope is complete."""

    node: Loop | Scope | None = field(default=None, repr=False)
    jumps: int = 0
    continues: int = 0


Memory = Load | Store | Atomic | Check
Look = Note | Inspect | Margin
Item = Value | Count | Set | Pick | Put | Memory | Barrier | Collective | Look | If | Loop | Scope | Jump


WITH_REGIONS: frozenset[type[Item]] = frozenset((If, Loop, Scope))
_ENDS_A_RUN: frozenset[type[Item]] = frozenset((Barrier, Jump))


_WITH_SPAN = (Value, Set, Put)
_WITH_SITE = (Load, Store, Atomic, Check, Barrier, Collective, Inspect)


def span_of(item: Item, sites: Sequence[SourceSite]) -> Span | None:
    """The source that a value, a write or an item with a site was lowered from, if it is known."""
    if isinstance(item, _WITH_SPAN):
        return item.span
    if not isinstance(item, _WITH_SITE):
        return None
    if item.site >= 0:
        return sites[item.site].span
    return item.results[0].span if isinstance(item, Load) and item.results else None


def regions(item: Item) -> tuple[Region, ...]:
    """Return the regions of an item, in execution order."""
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
    """Iterate over all items inside an item."""
    for region in regions(item):
        yield from items_of(region)


def items_of(region: Region) -> Iterator[Item]:
    """Iterate over all items of a region, and those inside them."""
    pending = [iter(region.items)]  # one generator: nested ones pass each item through every level
    while pending:
        for each in pending[-1]:
            yield each
            if type(each) in WITH_REGIONS:
                pending.extend(iter(inner.items) for inner in reversed(regions(each)))
                break
        else:
            pending.pop()


def straight_runs(region: Region) -> Iterator[list[Item]]:
    """Yield the items of a region and of those inside it, in order, by runs that no barrier, jump or region divides."""
    run: list[Item] = []
    for item in region.items:
        if type(item) in WITH_REGIONS:
            yield run
            run = []
            for inner in regions(item):
                yield from straight_runs(inner)
        elif type(item) in _ENDS_A_RUN:
            yield run
            run = []
        else:
            run.append(item)
    yield run


def regions_of(body: Region) -> list[Region]:
    """Return a region and all regions inside it."""
    found = [body]
    for item in body.items:
        if type(item) in WITH_REGIONS:
            inner = regions(item)
            found += inner
            for region in inner:
                found += regions_of(region)[1:]
    return found

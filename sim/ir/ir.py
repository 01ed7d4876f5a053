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
    span: Span | None = None  # the source it was first built for, if any

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
    depth: int = 0
    hidden_after: int | None = None  # parent values with a higher id may not have been computed when this region runs


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
    span: Span | None = None


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
    span: Span | None = None


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


def span_of(item: Item, sites: Sequence[SourceSite]) -> Span | None:
    """The source that a value, a write or an item with a site was lowered from, if it is known."""
    match item:
        case Value(span=span) | Set(span=span) | Put(span=span):
            return span
        case Load(results=[first, *_], site=-1):
            return first.span
        case Load(site=site) | Store(site=site) | Atomic(site=site) | Check(site=site) if site >= 0:
            return sites[site].span
        case Barrier(site=site) | Collective(site=site) | Inspect(site=site) if site >= 0:
            return sites[site].span
        case _:
            return None


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

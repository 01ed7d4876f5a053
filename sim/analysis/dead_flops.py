"""FLOPs for nothing: those of which no result gets to anybody, as of outputs that lie past the edge of a matrix.

What an invocation computes gets to somebody where it stores it (to storage, workgroup memory or a texture), combines it
atomically, or exchanges it within its subgroup: a *sink*. A static walk finds the sinks that each operation's result
can flow into, through variables and as an address; of what decides a branch, a loop or nothing but a constant, it is
taken to count always. The program then counts, invocation by invocation, the FLOPs of each set of sinks and notes which
sinks the invocation came to: where it came to none of a set, those FLOPs are padding.

So it is certain that padding is for nothing; of the rest some may be too: what is stored to workgroup memory and never
loaded, zeros that are multiplied, and, of an array that is indexed at run time, each element that is not stored.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir import ir
from ..ir.access import Access
from ..ir.builder import Builder
from ..ir.ir import Slot, Value
from ..ir.lowered import Lowered
from ..wgsl import types as t
from ..wgsl.source import Source, Span
from ..wgsl.typed import Variable

DEAD_FLOPS = Variable("(padding)", t.Array(t.U32, None), Span(Source(""), 0, 0), "storage", "read_write")
"""A buffer with a word for each invocation, by its number in the grid: its FLOPs that are padding."""

Sink = ir.Store | ir.Atomic | ir.Collective
Node = Value | Slot


def count_dead_flops(lowered: Lowered, lanes: int) -> None:
    """Weave the count into a program whose values are as the source has them. `lanes`: of a workgroup."""
    builder = lowered.builder
    reached = _reached(lowered.body)
    flags: dict[Sink, Slot] = {}
    counts: dict[frozenset[Sink], Slot] = {}
    for region in ir.regions_of(lowered.body):
        items, region.items = region.items, []
        for item in items:
            region.items.append(item)
            if isinstance(item, Sink):
                flags[item] = builder.block(["bool"], "came to").slots[0]
                region.items.append(ir.Set(flags[item], builder.const("bool", True)))
            elif isinstance(item, ir.Count):
                for flops, values in item.rounded:
                    sinks = _sinks(reached, values)
                    if sinks is not None:
                        slot = counts.setdefault(sinks, builder.block(["u32"], "FLOPs").slots[0])
                        region.items += _add(region, slot, builder.const("u32", flops))
    slots = [*flags.values(), *counts.values()]
    lowered.body.items[:0] = [ir.Set(slot, Value("const", (), slot.kind, lowered.body, 0)) for slot in slots]
    _leave(lowered, flags, counts, lanes)


# ---- what gets where ---------------------------------------------------------------------------------


def _reached(body: ir.Region) -> dict[Node, set[Sink | None]]:
    """The sinks that each value and variable flows into; None among them where it always counts."""
    makers: dict[Value, ir.Item] = {}
    writes: dict[Slot, list[Value]] = {}
    roots: list[tuple[Sink | None, Value]] = []
    for item in ir.items_of(body):
        for result in getattr(item, "results", ()):
            makers[result] = item
        match item:
            case ir.Set(slot=slot, value=value):
                writes.setdefault(slot, []).append(value)
            case ir.Put(block=block, index=index, value=value):
                for slot in block.slots:
                    writes.setdefault(slot, []).extend((index, value))
            case ir.If(condition=condition):
                roots.append((None, condition))
            case ir.Loop(condition=condition, break_if=break_if):
                roots += [(None, value) for value in (condition, break_if) if value is not None]
            case ir.Store() | ir.Atomic() | ir.Collective():
                roots += [(item, value) for value in _operands(item)]
            case _:
                pass
    reached: dict[Node, set[Sink | None]] = {}
    for sink, root in roots:
        waiting: list[Node] = [root]
        while waiting:
            node = waiting.pop()
            found = reached.setdefault(node, set())
            if sink not in found:
                found.add(sink)
                waiting += writes.get(node, ()) if isinstance(node, Slot) else _needs(node, makers)
    return reached


def _operands(item: ir.Item | None) -> list[Value]:
    """What an item is given: values, and an address."""
    match item:
        case ir.Store(values=values, address=address):
            given = [*values, address]
        case ir.Atomic(args=args, address=address):
            given = [*args, address]
        case ir.Collective(args=args):
            given = args
        case ir.Load(address=address):
            given = [address]
        case _:
            given = []
    return [value for value in given if value is not None]


def _needs(value: Value, makers: dict[Value, ir.Item]) -> Iterator[Node]:
    """What a value is made of."""
    yield from value.args
    yield from _operands(makers.get(value))
    if value.op == "get":
        yield value.imm
    elif value.op == "pick":
        yield value.imm.index
        yield from value.imm.block.slots


def _sinks(reached: dict[Node, set[Sink | None]], values: tuple[Value, ...]) -> frozenset[Sink] | None:
    """The sinks that some of these values flow into; None where they always count."""
    found = frozenset[Sink | None]().union(*(reached.get(value, ()) for value in values))
    if None in found or any(value.op == "const" for value in values):
        return None
    return frozenset(sink for sink in found if sink is not None)


# ---- counting ----------------------------------------------------------------------------------------


def _get(region: ir.Region, slot: Slot) -> Value:
    return Value("get", (), slot.kind, region, slot)


def _add(region: ir.Region, slot: Slot, number: Value) -> list[ir.Item]:
    """Add to a variable of each active lane."""
    before = _get(region, slot)
    after = Value("add_u32", (before, number), "u32", region)
    return [before, after, ir.Set(slot, after)]


def _leave(lowered: Lowered, flags: dict[Sink, Slot], counts: dict[frozenset[Sink], Slot], lanes: int) -> None:
    """At the end, store each invocation's padding."""
    builder, body = lowered.builder, lowered.body
    builder.here = body
    padding = zero = builder.const("u32", 0)
    for sinks, count in counts.items():
        came: Value = builder.const("bool", False)
        for sink in sinks:
            came = _made(body, "or_bool", "bool", came, _placed(body, flags[sink]))
        wasted = _made(body, "select_u32", "u32", _placed(body, count), zero, came)
        padding = _made(body, "add_u32", "u32", padding, wasted)
    access = Access(DEAD_FLOPS, "storage", 4, 1, 0, 0, 1, (0, 4), writes=True)
    lowered.accesses.append(access)
    body.items.append(ir.Store([padding], len(lowered.accesses) - 1, _number(builder, lanes), -1))


def _placed(region: ir.Region, slot: Slot) -> Value:
    region.items.append(value := _get(region, slot))
    return value


def _made(region: ir.Region, op: str, kind: str, *args: Value) -> Value:
    region.items.append(value := Value(op, args, kind, region))
    return value


def _number(builder: Builder, lanes: int) -> Value:
    """The number of the invocation in the grid."""
    op = builder.op
    row = op("add_u32", op("mul_u32", builder.input("group_z"), builder.input("grid_y")), builder.input("group_y"))
    workgroup = op("add_u32", op("mul_u32", row, builder.input("grid_x")), builder.input("group_x"))
    return op("add_u32", op("mul_u32", workgroup, builder.const("u32", lanes)), builder.input("local_index"))

"""Dead FLOPs: those whose results are never used, as for outputs past the edge of a matrix.

An invocation uses what it computes at a *sink*: where it stores it (to storage, workgroup memory or a texture),
combines it atomically, or exchanges it within its subgroup. A static walk finds the sinks that the result of each
operation can flow into, through variables and as an address. Results that decide a branch or a loop, and constants,
count as used. Instructions added to the program then count, for each invocation, the FLOPs of each set of sinks, and
note which sinks it reached. If it reached none of a set, the FLOPs of that set are dead.

The count is a lower bound. It leaves out values that are stored to workgroup memory and never loaded, products with
zero, and the elements that are not stored of an array that is indexed at run time.
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

DEAD_FLOPS = Variable("(dead FLOPs)", t.Array(t.U32, None), Span(Source(""), 0, 0), "storage", "read_write")
"""A buffer with the dead FLOPs of each invocation, one word each, by its number in the grid."""

Sink = ir.Store | ir.Atomic | ir.Collective
Node = Value | Slot


def count_dead_flops(lowered: Lowered, lanes: int) -> None:
    """Add the count to a program, in place. A workgroup has `lanes` invocations.

    The program must be as it was lowered: passes that combine operations would hide FLOPs from the count."""
    lowered.builder = builder = Builder.extending(lowered.builder)
    reached = _reached(lowered.body)
    flags: dict[Sink, Slot] = {}
    counts: dict[frozenset[Sink], Slot] = {}
    for region in ir.regions_of(lowered.body):
        for item in builder.rewrite(region):
            builder.append(item)
            if isinstance(item, Sink):
                flags[item] = builder.block(["bool"], "reached").slots[0]
                builder.append(ir.Set(flags[item], builder.const("bool", True)))
            elif isinstance(item, ir.Count):
                for flops, values in item.rounded:
                    sinks = _sinks(reached, values)
                    if sinks is not None:
                        _add_to(builder, _slot_of(counts, sinks, builder), builder.const("u32", flops))
    slots = [*flags.values(), *counts.values()]
    builder.prepend([ir.Set(slot, builder.const(slot.kind, 0)) for slot in slots])
    _store_counts(lowered, flags, counts, lanes)


# ---- what flows where ---------------------------------------------------------------------------------


def _reached(body: ir.Region) -> dict[Node, set[Sink | None]]:
    """Return the sinks that each value and variable flows into, with None among them if it always counts as used."""
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
    """Return the values and the address that an item takes."""
    match item:
        case ir.Store(values=values, address=address):
            taken = [*values, address]
        case ir.Atomic(args=args, address=address):
            taken = [*args, address]
        case ir.Collective(args=args):
            taken = args
        case ir.Load(address=address):
            taken = [address]
        case _:
            taken = []
    return [value for value in taken if value is not None]


def _needs(value: Value, makers: dict[Value, ir.Item]) -> Iterator[Node]:
    """Yield what a value is computed from."""
    yield from value.args
    yield from _operands(makers.get(value))
    if value.op == "get":
        yield value.imm
    elif value.op == "pick":
        yield value.imm.index
        yield from value.imm.block.slots


def _sinks(reached: dict[Node, set[Sink | None]], values: tuple[Value, ...]) -> frozenset[Sink] | None:
    """Return the sinks that some of these values flow into; None if they always count as used."""
    found = frozenset[Sink | None]().union(*(reached.get(value, ()) for value in values))
    if None in found or any(value.op == "const" for value in values):
        return None
    return frozenset(sink for sink in found if sink is not None)


# ---- counting ----------------------------------------------------------------------------------------


def _slot_of(counts: dict[frozenset[Sink], Slot], sinks: frozenset[Sink], builder: Builder) -> Slot:
    """Return the variable that counts the FLOPs of these sinks, declared at the first use."""
    if sinks not in counts:
        counts[sinks] = builder.block(["u32"], "FLOPs").slots[0]
    return counts[sinks]


def _add_to(builder: Builder, slot: Slot, number: Value) -> None:
    builder.append(ir.Set(slot, builder.op("add_u32", builder.read(slot), number)))


def _store_counts(lowered: Lowered, flags: dict[Sink, Slot], counts: dict[frozenset[Sink], Slot], lanes: int) -> None:
    """At the end, store the dead FLOPs of each invocation."""
    builder = lowered.builder
    dead = zero = builder.const("u32", 0)
    for sinks, count in counts.items():
        reached: Value = builder.const("bool", False)
        for sink in (each for each in flags if each in sinks):
            reached = builder.op("or_bool", reached, builder.read(flags[sink]))
        unused = builder.op("select_u32", builder.read(count), zero, reached)
        dead = builder.op("add_u32", dead, unused)
    access = Access(DEAD_FLOPS, "storage", 4, 1, 0, 0, 1, (0, 4), writes=True)
    lowered.accesses.append(access)
    builder.append(ir.Store([dead], len(lowered.accesses) - 1, _number(builder, lanes), -1))


def _number(builder: Builder, lanes: int) -> Value:
    """Return the number of the invocation in the grid."""
    op = builder.op
    row = op("add_u32", op("mul_u32", builder.input("group_z"), builder.input("grid_y")), builder.input("group_y"))
    workgroup = op("add_u32", op("mul_u32", row, builder.input("grid_x")), builder.input("group_x"))
    return op("add_u32", op("mul_u32", workgroup, builder.const("u32", lanes)), builder.input("local_index"))

"""A program that computes some values of another program, for every workgroup, and nothing else.

It needs pure values (see `workgroup_equivalence`); the other program stays as it is. Since pure values depend on
constants, inputs and memory that the dispatch does not write alone, they are the same as in a run.
"""

from __future__ import annotations

from dataclasses import replace

from ..ir import ir
from ..ir.access import Access
from ..ir.bottom_up import bottom_up
from ..ir.builder import Builder
from ..ir.ir import Region, Value
from ..ir.lowered import Lowered
from ..wgsl import types as t
from ..wgsl.source import Source, Span
from ..wgsl.typed import Variable
from .uses import base

TABLE = Variable("table of values", t.Array(t.U32, None), Span(Source(""), 0, 0), "storage", "read_write")
_NO_SITE = -1


def tabulate(lowered: Lowered, values: list[Value], lanes: int, step: int, room: int) -> Lowered:
    """Return a program that stores pure `values` to TABLE[position, value, lane], one word each.

    The position of a workgroup is its number in the grid // `step`, modulo `room`. A workgroup has `lanes` invocations.
    """
    builder, accesses = Builder(), list(lowered.accesses)
    body = Region(None)
    body.items = _needed(lowered, values)
    first = _position(builder, step, room)
    row = builder.op("mul_u32", first, builder.const("u32", len(values) * lanes))
    address = builder.op("add_u32", row, builder.input("local_index"))
    body.items += builder.root.items
    for number, value in enumerate(values):
        accesses.append(Access(TABLE, "storage", 4, 1, number * lanes, writes=True))
        body.items.append(ir.Store([value], len(accesses) - 1, address, _NO_SITE))
    return replace(lowered, builder=builder, body=body, accesses=accesses)


def _position(builder: Builder, step: int, room: int) -> Value:
    op = builder.op
    row = op("add_u32", builder.input("group_y"), op("mul_u32", builder.input("grid_y"), builder.input("group_z")))
    workgroup = op("add_u32", builder.input("group_x"), op("mul_u32", builder.input("grid_x"), row))
    return op("rem_u32", op("div_u32", workgroup, builder.const("u32", step)), builder.const("u32", room))


def _needed(lowered: Lowered, values: list[Value]) -> list[ir.Item]:
    """Return the items that compute values, in order."""
    loads = {result: item for item in ir.items_of(lowered.body) if isinstance(item, ir.Load) for result in item.results}
    found = dict[Value, ir.Item]()

    def operands(value: Value) -> list[Value]:
        address = loads[value].address if value in loads else None
        return [base(each) for each in ((address,) if address else value.args)]

    for value in values:
        bottom_up(base(value), found, operands, lambda each, _: loads.get(each, each))
    return list({id(item): item for item in found.values()}.values())

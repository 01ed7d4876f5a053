"""Subgroup and quad builtins, by name: reductions, scans, shuffles and queries of the active lanes.

Spec: "Subgroup Built-in Functions" and "Quad Operations". Vectors are lowered component by component. Where the spec
leaves a value indeterminate, a shuffle does as SwiftShader: it reads an inactive lane like any other; for an `id` past
the last lane `subgroupShuffle` reads the last one, and other shuffles return 0. A quad is four consecutive lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan

from ..ir import ir
from ..ir.builder import Builder
from ..ir.ir import Value
from ..ir.sites import SourceSite
from ..wgsl import typed
from .context import Effect, Lowering

Source = Callable[[Builder, Value, Value], Value]

_LARGEST = {"f32": inf, "f16": inf, "i32": 2**31 - 1, "u32": 2**32 - 1}
_SMALLEST = {"f32": -inf, "f16": -inf, "i32": -(2**31), "u32": 0}
_ALIKE = ("f32", "f16", "i32", "u32", "bool")
# The neutral value of each operation, by kind.
_START: dict[str, dict[str, float]] = {
    "add": dict.fromkeys(_ALIKE, 0),
    "mul": dict.fromkeys(_ALIKE, 1),
    "min": _LARGEST,
    "max": _SMALLEST,
    "and": {"i32": -1, "u32": 2**32 - 1, "bool": 1},
    "or": dict.fromkeys(_ALIKE, 0),
    "xor": dict.fromkeys(_ALIKE, 0),
}

_POISON = {"f32": nan, "f16": nan, "i32": 0x7FC07FC0, "u32": 0x7FC07FC0}


def _fold(stem: str, how: str = "reduce") -> Effect:
    """Return a reduction, or a scan: `how` is reduce, inclusive or exclusive."""

    def lower(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
        results: list[Value] = []
        parts = lowering.value(call.args[0])
        site = _site(lowering, call)
        for part in parts:
            start = lowering.builder.const(part.kind, _START[stem][part.kind])
            results += _collective(lowering, site, how, [part.kind], [part, start], f"{stem}_{part.kind}")
        return results

    return lower


def _shuffle(source: Source, how: str = "shuffle") -> Effect:
    """Return a shuffle: each lane reads lane `source(builder, lane, argument)`."""

    def lower(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
        builder = lowering.builder
        parts = lowering.value(call.args[0])
        lane = builder.input("subgroup_lane")
        argument = builder.reinterpret("u32", lowering.value(call.args[1])[0]) if len(call.args) > 1 else lane
        site, asked = _site(lowering, call), source(builder, lane, argument)
        values = _read(lowering, site, parts, asked, how)
        return _poisoned(lowering, site, values, asked) if call.span.start in lowering.poisoned else values

    return lower


def _poisoned(lowering: Lowering, site: int, values: list[Value], asked: Value) -> list[Value]:
    """Return the values, or poison where lane `asked` is not active or not in the subgroup."""
    builder = lowering.builder
    op = builder.op

    def number(value: int) -> Value:
        return builder.const("u32", value)

    active = _collective(lowering, site, "ballot", ["u32"] * 4, [builder.const("bool", 1)])
    word = number(0)
    for place, held in enumerate(active):
        word = op("select_u32", word, held, op("eq_u32", op("shr_u32", asked, number(5)), number(place)))
    bit = op("and_u32", op("shr_u32", word, op("and_u32", asked, number(31))), number(1))
    there = op("eq_u32", bit, number(1))
    return [op(f"select_{v.kind}", builder.const(v.kind, _POISON[v.kind]), v, there) for v in values]


def _read(lowering: Lowering, site: int, parts: list[Value], source: Value, how: str = "shuffle") -> list[Value]:
    return [v for part in parts for v in _collective(lowering, site, how, [part.kind], [part, source])]


def _first(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    parts = lowering.value(call.args[0])
    site = _site(lowering, call)
    return _read(lowering, site, parts, _collective(lowering, site, "first", ["u32"], [])[0])


def _elect(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    first = _collective(lowering, _site(lowering, call), "first", ["u32"], [])[0]
    return [lowering.builder.op("eq_u32", lowering.builder.input("subgroup_lane"), first)]


def _ballot(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    predicate = lowering.value(call.args[0])
    return _collective(lowering, _site(lowering, call), "ballot", ["u32"] * 4, predicate)


def _site(lowering: Lowering, call: typed.BuiltinCall) -> int:
    number = lowering.sites.number(SourceSite("subgroup", call.span, name=call.builtin.name))
    lowering.builder.tally(number)
    return number


def _collective(
    lowering: Lowering, site: int, op: str, kinds: list[str], args: list[Value], scalar: str = ""
) -> list[Value]:
    results = [lowering.builder.result(kind) for kind in kinds]
    lowering.builder.append(ir.Collective(op, results, args, site, scalar))
    return results


def _quad_lane(builder: Builder, lane: Value, argument: Value) -> Value:
    return builder.op("or_u32", builder.op("and_u32", lane, builder.const("u32", ~3)), argument)


def _swapped(mask: int) -> Source:
    return lambda builder, lane, _: builder.op("xor_u32", lane, builder.const("u32", mask))


COLLECTIVES: dict[str, Effect] = {
    "subgroupAdd": _fold("add"),
    "subgroupInclusiveAdd": _fold("add", "inclusive"),
    "subgroupExclusiveAdd": _fold("add", "exclusive"),
    "subgroupMul": _fold("mul"),
    "subgroupInclusiveMul": _fold("mul", "inclusive"),
    "subgroupExclusiveMul": _fold("mul", "exclusive"),
    "subgroupMin": _fold("min"),
    "subgroupMax": _fold("max"),
    "subgroupAnd": _fold("and"),
    "subgroupOr": _fold("or"),
    "subgroupXor": _fold("xor"),
    "subgroupAll": _fold("and"),
    "subgroupAny": _fold("or"),
    "subgroupBallot": _ballot,
    "subgroupElect": _elect,
    "subgroupBroadcastFirst": _first,
    "subgroupBroadcast": _shuffle(lambda builder, lane, argument: argument),
    "subgroupShuffle": _shuffle(lambda builder, lane, argument: argument, "shuffle_last"),
    "subgroupShuffleXor": _shuffle(lambda builder, lane, argument: builder.op("xor_u32", lane, argument)),
    "subgroupShuffleUp": _shuffle(lambda builder, lane, argument: builder.op("sub_u32", lane, argument)),
    "subgroupShuffleDown": _shuffle(lambda builder, lane, argument: builder.op("add_u32", lane, argument)),
    "quadBroadcast": _shuffle(_quad_lane),
    "quadSwapX": _shuffle(_swapped(1)),
    "quadSwapY": _shuffle(_swapped(2)),
    "quadSwapDiagonal": _shuffle(_swapped(3)),
}

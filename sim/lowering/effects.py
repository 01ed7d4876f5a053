"""Builtins with effects, by name: barriers, atomics, array lengths, and those of textures and subgroups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir import ir
from ..ir.builder import Builder
from ..ir.ir import Value
from ..ir.sites import SourceSite
from ..wgsl import typed
from ..wgsl import types as t
from .context import Effect, Lowering
from .sampling import SAMPLING
from .subgroup_builtins import COLLECTIVES
from .textures import TEXTURES


def _barrier(kind: str) -> Effect:
    def lower(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
        barrier(lowering, kind, call)
        return []

    return lower


def barrier(lowering: Lowering, kind: str, call: typed.BuiltinCall) -> None:
    """Append a control barrier that orders memory of `kind`."""
    site = lowering.sites.number(SourceSite("barrier", call.span, space=kind, name=call.builtin.name))
    lowering.builder.tally(site)
    lowering.builder.append(ir.Barrier(kind, site))


def _uniform_load(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    """Barrier, load, barrier, as the spec defines it."""
    barrier(lowering, "workgroup", call)
    view = lowering.view(call.args[0])
    if isinstance(view.type, t.Atomic):
        value = _atomic_on(lowering, "load", call, ())
    else:
        value = lowering.load(view, call.span)
    barrier(lowering, "workgroup", call)
    return value


def _array_length(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    view = lowering.view(call.args[0])
    if isinstance(view.type, t.Array) and isinstance(view.type.count, int):  # a view of a known size
        return [lowering.builder.const("u32", view.type.count)]
    return [lowering.length(view)]


def _buffer_length(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
    view = lowering.view(call.args[0])
    buffer = view.type
    assert isinstance(buffer, t.Buffer)
    if buffer.size is not None:
        return [lowering.builder.const("u32", buffer.size)]
    return [lowering.length(replace(view, tail=(0, 1)))]


def _atomic(op: str) -> Effect:
    def lower(lowering: Lowering, call: typed.BuiltinCall) -> list[Value]:
        return _atomic_on(lowering, op, call, call.args[1:])

    return lower


def _atomic_on(lowering: Lowering, op: str, call: typed.BuiltinCall, operands: Sequence[typed.Expr]) -> list[Value]:
    builder = lowering.builder
    view = lowering.view(call.args[0])
    args = [lowering.value(operand)[0] for operand in operands]  # after the operands of the pointer
    assert isinstance(view.type, t.Atomic)
    kind = t.KIND[view.type.elem]
    name = f"{op}_{kind}" if op in ("max", "min") else f"{op}_u32" if op in _UNSIGNED else op
    access, address = lowering.address(view, view.type.elem, 0, writes=op != "load")
    site = lowering.site("atomic", view, view.type.elem, call.span, 0, call.builtin.name)
    results = [builder.result(kind)]
    if op == "compare":
        results.append(builder.result("bool"))
    words = [builder.reinterpret("u32", a) for a in args]
    builder.append(ir.Atomic(name, results, words, access, address, site))
    if op != "load":
        after = builder.reinterpret(kind, _after(builder, name, results, words))
        lowering.tracer.stored(view.variable, [after], access, address, call.span)
    return [] if op == "store" else results


def _after(builder: Builder, name: str, results: list[Value], words: list[Value]) -> Value:
    """Return what memory holds after an atomic operation."""
    if name in ("store", "exchange"):
        return words[0]
    old = builder.reinterpret("i32" if name.endswith("_i32") else "u32", results[0])
    if name == "compare":
        return builder.op("select_u32", old, words[1], results[1])
    return builder.op(name, old, builder.reinterpret(old.kind, words[0]))


_UNSIGNED = ("add", "sub", "and", "or", "xor")

EFFECTS: dict[str, Effect] = {
    **COLLECTIVES,
    **TEXTURES,
    **SAMPLING,
    "workgroupBarrier": _barrier("workgroup"),
    "storageBarrier": _barrier("storage"),
    "textureBarrier": _barrier("texture"),
    "workgroupUniformLoad": _uniform_load,
    "arrayLength": _array_length,
    "bufferLength": _buffer_length,
    "atomicLoad": _atomic("load"),
    "atomicStore": _atomic("store"),
    "atomicAdd": _atomic("add"),
    "atomicSub": _atomic("sub"),
    "atomicMax": _atomic("max"),
    "atomicMin": _atomic("min"),
    "atomicAnd": _atomic("and"),
    "atomicOr": _atomic("or"),
    "atomicXor": _atomic("xor"),
    "atomicExchange": _atomic("exchange"),
    "atomicCompareExchangeWeak": _atomic("compare"),
}

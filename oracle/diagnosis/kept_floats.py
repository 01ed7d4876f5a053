"""A WGSL text in which drivers cannot rewrite float arithmetic.

Drivers may reassociate, factor and fuse sums and products. Here every result passes through its bits, which are
combined with a zero that the driver cannot know because it comes from a buffer. Only single operations remain.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.text_edits import Edits
from ..comparison.bits import Array

ZERO = "bankshot_zero"  # the added binding
DATA: dict[str, Array] = {ZERO: np.zeros(4, np.uint32)}

_SCALARS = {t.F32: "f32", t.F16: "f16"}
_F32 = "bitcast<{type}>(bitcast<{bits}>(x) ^ {bits}(bankshot_zero[0]))"
_F16 = "f16(unpack2x16float(pack2x16float(vec2<f32>(f32(x), 0.0)) ^ bankshot_zero[0]).x)"  # naga has no bitcast of f16


def kept(pipeline: typed.Pipeline, only: Callable[[typed.BuiltinCall], bool] | None = None) -> str | None:
    """Return the text of a checked module in which each float operation of an entry point keeps its own result.

    The text has one more binding, `ZERO`, whose contents are in `DATA`. `only`: the operations that keep it, instead of
    all. None where there is no such operation.
    """
    text, edits, used = pipeline.module.source.text, Edits(), dict[str, t.Type]()
    keep_floats(pipeline, edits, used, only)
    return f"{edits.apply(text)}\n{declarations(pipeline, used)}" if used else None


def keep_floats(
    pipeline: typed.Pipeline,
    edits: Edits,
    used: dict[str, t.Type],
    only: Callable[[typed.BuiltinCall], bool] | None = None,
) -> None:
    """Add what `kept` changes to `edits`, and the functions that it needs to `used`."""
    text = pipeline.module.source.text
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        for part in typed.every_expression(function):
            if not isinstance(part, typed.BuiltinCall) or (only is not None and not only(part)):
                continue
            if name := keeper(part.type):
                used[name] = part.type
                edits.around(part.span, f"{name}({_spell_out_dot(part, text, edits, used)}", ")")
        if only is None:
            keep_compound(function.body, text, edits, used)


def _spell_out_dot(call: typed.BuiltinCall, text: str, edits: Edits, used: dict[str, t.Type]) -> str:
    """Replace the builtin `dot`, inside which drivers reorder, by a function that keeps each term. Returns the text to
    insert before the call."""
    vector = call.args[0].type if call.args else call.type
    if (
        call.builtin.name != "dot"
        or not isinstance(vector, t.Vec)
        or vector.elem not in _SCALARS
        or not re.match(r"dot\s*\(", text[call.span.start :])
    ):
        return ""
    scalar = _SCALARS[vector.elem]
    used[f"bankshot_dot{vector.size}_{scalar}"] = vector
    edits.at(call.span.start + len("dot"), f"{vector.size}_{scalar}")
    return "bankshot_"


def keep_compound(body: typed.Block, text: str, edits: Edits, used: dict[str, t.Type]) -> None:
    """After `a += b`, store what was kept of `a`."""
    for stmt in typed.statements(body):
        if not isinstance(stmt, typed.CompoundAssign) or not (name := keeper(stmt.result)):
            continue
        target = text[stmt.span.start : stmt.target.span.end]
        effects = any(isinstance(part, typed.Call) for part in typed.expressions(stmt.target))
        if not effects and re.match(r"\s*;", text[stmt.span.end :]):
            used[name] = stmt.result
            edits.after(stmt.span, f"; {target} = {name}({target})")


def keeper(type_: t.Type) -> str | None:
    """Return the name of the function that keeps values of a type; None for those without floats, and matrices."""
    match type_:
        case t.Vec(elem=elem, size=size) if elem in _SCALARS:
            return f"bankshot_kept_vec{size}_{_SCALARS[elem]}"
        case t.Scalar() if type_ in _SCALARS:
            return f"bankshot_kept_{_SCALARS[type_]}"
        case _:
            return None


def declarations(pipeline: typed.Pipeline, used: dict[str, t.Type]) -> str:
    """Return the functions `used`, and the binding of the zero, in a group that the entry point has already."""
    taken = [v.binding for v in pipeline.module.globals if v.binding is not None]
    group = min((v.binding[0] for v in pipeline.globals if v.binding is not None), default=0)
    number = 1 + max((binding for of, binding in taken if of == group), default=-1)
    lines = [f"@group({group}) @binding({number}) var<storage, read> {ZERO}: array<u32>;"]
    for scalar in dict.fromkeys(t.element_of(type_) for type_ in used.values()):
        lines.append(_scalar(_SCALARS[scalar]))
    lines += [_vector(type_) for type_ in dict.fromkeys(type_ for type_ in used.values() if isinstance(type_, t.Vec))]
    lines += [_dot(name, type_) for name, type_ in used.items() if "dot" in name and isinstance(type_, t.Vec)]
    return "\n".join(lines) + "\n"


def _scalar(name: str) -> str:
    how = _F32.format(type="f32", bits="u32") if name == "f32" else _F16
    return f"fn bankshot_kept_{name}(x: {name}) -> {name} {{ return {how}; }}"


def _vector(type_: t.Vec) -> str:
    """Return the function that keeps each component of a vector."""
    name, vector = _SCALARS[type_.elem], f"vec{type_.size}<{_SCALARS[type_.elem]}>"
    parts = ", ".join(f"bankshot_kept_{name}(x.{c})" for c in "xyzw"[: type_.size])
    return f"fn bankshot_kept_vec{type_.size}_{name}(x: {vector}) -> {vector} {{ return {vector}({parts}); }}"


def _dot(name: str, type_: t.Vec) -> str:
    scalar = _SCALARS[type_.elem]
    keep, vector = f"bankshot_kept_{scalar}", f"vec{type_.size}<{scalar}>"
    total, *terms = [f"{keep}(a.{c} * b.{c})" for c in "xyzw"[: type_.size]]
    for term in terms:
        total = f"{keep}({total} + {term})"
    return f"fn {name}(a: {vector}, b: {vector}) -> {scalar} {{ return {total}; }}"

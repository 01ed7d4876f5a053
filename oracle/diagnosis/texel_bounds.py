"""Error bounds of storage textures: the simulator derives those of the values that a shader stores.

A changed text also stores each value into a buffer, of which the simulator derives bounds. To them comes the rounding
of the texel format.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import format_of
from ...sim.wgsl.text_edits import Edits
from ..comparison.bits import Array

if TYPE_CHECKING:
    from ...sim import Run

TEXELS = "bankshot_texels"  # the added buffer
_STEPS = {"unorm": 255.0, "snorm": 127.0}  # of formats with 8 bits
_NOTE = """
@group({group}) @binding({binding}) var<storage, read_write> bankshot_texels: array<vec4<f32>>;
fn bankshot_note(at: vec3<u32>, value: vec4<f32>) {{
    if all(at < vec3<u32>({width}, {height}, {depth})) {{
        bankshot_texels[(at.z * {height} + at.y) * {width} + at.x] = value;
    }}
}}
"""

# Runs a text of the simulated shader with one more binding.
Rerun = Callable[[str, dict[str, Array]], "Run"]


def texel_bounds(
    pipeline: typed.Pipeline, variable: typed.Variable, texels: Array, rerun: Rerun
) -> NDArray[np.float64] | None:
    """Return how far other implementations may be from each channel of `texels`, the contents of a storage texture.

    None for formats and stores that are not followed: those of integers, packed ones, and coordinates or values with
    calls in them.
    """
    type_ = pipeline.store_types[variable]
    assert isinstance(type_, t.Texture)
    format_ = format_of(type_.format or "")
    if format_.packed or type_.format == "bgra8unorm" or format_.number in ("uint", "sint") or texels.ndim < 2:
        return None
    if texels.dtype.kind != "f" and texels.dtype.itemsize != 1:
        return None
    *axes, channels = texels.shape
    width, height, depth = (*reversed(axes), 1, 1)[:3]
    text = _noted(pipeline, variable, (width, height, depth))
    if text is None:
        return None
    run = rerun(text, {TEXELS: np.zeros(4 * width * height * depth, np.float32)})
    bound = run.bounds[TEXELS].reshape(*axes, 4)[..., :channels]
    values = np.abs(np.asarray(run.outputs[TEXELS]).reshape(*axes, 4)[..., :channels]).astype(np.float64)
    return _with_rounding(bound, values, texels.dtype, format_.number)


def _with_rounding(
    bound: NDArray[np.float64], values: NDArray[np.float64], dtype: np.dtype[Any], number: str
) -> NDArray[np.float64]:
    """Return the bounds in units of the texture's array, with a step of the format for rounding either way."""
    if dtype.kind != "f":
        return bound * _STEPS[number] + (values > 0)
    if dtype == np.float16:
        largest = np.minimum(values + np.where(np.isfinite(bound), bound, 0), np.finfo(np.float16).max)
        return bound + np.spacing(largest.astype(np.float16)).astype(np.float64)
    return bound


def _noted(pipeline: typed.Pipeline, variable: typed.Variable, extent: tuple[int, int, int]) -> str | None:
    """Return the text that stores each value into `TEXELS`, too."""
    text, edits = pipeline.module.source.text, Edits()
    for function in typed.reached(pipeline.entry):
        assert function.body is not None
        for stmt in typed.statements(function.body):
            call = stmt.expr if isinstance(stmt, typed.Eval) else None
            if not isinstance(call, typed.BuiltinCall) or call.builtin.name != "textureStore":
                continue
            into, *where, value = call.args
            if not isinstance(into, typed.VarRef):
                return None  # a parameter
            if into.var is not variable:
                continue
            parts = [part for arg in call.args[1:] for part in typed.expressions(arg)]
            if any(isinstance(part, typed.Call) for part in parts):
                return None
            at = ", ".join(_unsigned(arg, text) for arg in where)
            zeros = ", 0u" * (3 - sum(t.components(arg.type) for arg in where))
            edits.after(stmt.span, f"; bankshot_note(vec3<u32>({at}{zeros}), {_source(value, text)})")
    taken = [v.binding for v in pipeline.module.globals if v.binding is not None]
    group = taken[0][0]
    binding = 1 + max(number for of, number in taken if of == group)
    width, height, depth = (f"{size}u" for size in extent)
    note = _NOTE.format(group=group, binding=binding, width=width, height=height, depth=depth)
    return f"{edits.apply(text)}\n{note}"


def _unsigned(arg: typed.Expr, text: str) -> str:
    """Return the text of a coordinate, converted to u32; negative ones become large."""
    size = t.components(arg.type)
    return f"{'u32' if size == 1 else f'vec{size}<u32>'}({_source(arg, text)})"


def _source(expr: typed.Expr, text: str) -> str:
    return text[expr.span.start : expr.span.end]

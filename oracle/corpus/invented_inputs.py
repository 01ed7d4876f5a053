"""Something to run a stranger's shader on: grid, override values and buffer contents made up from its declarations.

`RECIPES` are tried in order until one keeps every access in bounds and every loop short, and gives the shader something
to do: sizes and indices read from buffers have to be small for that, while packed numbers want all their bits. Contents
depend on nothing but the name and type of the binding and the recipe. Arrays are kept below 65,535 elements, for after
so many turns lavapipe leaves a loop (Mesa 22.3.6, measured).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...sim.bindings.texture_arrays import level_shape, stored_dtype
from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import Format, channel_kind, format_of, is_depth, is_external, shape_of
from ...sim.wgsl.typed import Module, Pipeline
from ..errors import UsageError

# Workgroups along the axes by which invocations tell themselves apart: along another one they would all do the same,
# and race for it.
GRIDS = {0: (), 1: (6,), 2: (3, 2), 3: (3, 2, 2)}
LARGEST = 16 << 20  # bytes of one binding

SIDE = 64  # texels
LEVELS = 3
THIRDS = {"layer": 4, "face": 6, "sample": 4}
_SAMPLED = {"f32": "rgba8unorm", "i32": "rgba32sint", "u32": "rgba32uint", "depth": "r16unorm"}  # formats

# What half a word of a buffer belongs to, and what a texel of a normalized format counts in.
PADDING, WHOLE, SINGLE, HALF, COUNTER, STEP = range(6)
_CODES = {t.F32: SINGLE, t.F16: HALF, t.I32: WHOLE, t.U32: WHOLE}

_OVERRIDES = {t.BOOL: True, t.F32: 0.5, t.F16: 0.5}


@frozen
class Recipe:
    """`sizes`: integers in uniform buffers; `whole`: those in storage are below it; `tail`: elements of an array that
    the shader leaves open."""

    name: str
    sizes: tuple[int, ...]
    whole: int
    tail: int


RECIPES = (
    Recipe("any bits, sizes to 256", (64, 128, 256), 1 << 32, 65280),
    Recipe("any bits, sizes to 16", (4, 8, 16), 1 << 32, 4096),
    Recipe("integers to 15, sizes to 8", (4, 8), 16, 8192),
    Recipe("integers to 3, sizes to 4", (2, 4), 4, 32768),
    Recipe("integers to 1, sizes of 1", (1,), 2, 32768),
)


def grid(entry: typed.Function) -> tuple[int, int, int]:
    """Workgroups to dispatch: several along each axis that the entry point looks at."""
    axes = sorted(_axes(entry))
    sizes = dict(zip(axes, GRIDS[len(axes)], strict=True))
    return sizes.get(0, 1), sizes.get(1, 1), sizes.get(2, 1)


# Built-in values that differ between workgroups, with the axes that a use of all of it looks at.
_IDS = {
    "global_invocation_id": {0, 1, 2},
    "workgroup_id": {0, 1, 2},
    "global_invocation_index": {0},
    "workgroup_index": {0},
}


def _axes(entry: typed.Function) -> set[int]:
    found: set[int] = set()
    ids = {id(expr): name for expr in typed.every_expression(entry) if (name := _id_of(expr))}
    narrowed = set()
    for expr in typed.every_expression(entry):
        if isinstance(expr, typed.Swizzle) and id(expr.base) in ids:
            narrowed.add(id(expr.base))
            found.update(expr.components)
    for number, name in ids.items():
        if number not in narrowed:
            found |= _IDS[name]
    return found


def _id_of(expr: typed.Expr) -> str | None:
    """The name of the built-in value of `_IDS` that an expression is: a parameter, or a member of one."""
    name = None
    if isinstance(expr, typed.ValueRef):
        name = expr.var.builtin
    elif isinstance(expr, typed.Member) and isinstance(expr.base, typed.ValueRef):
        struct = expr.base.type
        assert isinstance(struct, t.Struct)
        name = struct.members[expr.index].attrs.get("builtin")
    return name if name in _IDS else None


def override_values(module: Module) -> dict[str, Any]:
    """A value for every override that has none."""
    missing = [o for o in module.overrides if o.init is None]
    return {(o.name if o.id is None else str(o.id)): _OVERRIDES.get(o.type, 4) for o in missing}


def bindings(pipeline: Pipeline, recipe: Recipe) -> dict[str, Any]:
    """What the entry point is given, by name: buffers as bytes, textures as arrays, samplers as mappings. Raises
    `UsageError` for what cannot be made up."""
    made: dict[str, Any] = {}
    for variable in pipeline.globals:
        type_ = pipeline.store_types[variable]
        if isinstance(type_, t.Texture):
            made[variable.name] = _texels(variable.name, type_, recipe)
        elif isinstance(type_, t.Sampler):
            made[variable.name] = {"compare": "less"} if type_.comparison else {}
        elif variable.binding is not None or variable.space == "immediate":
            made[variable.name] = _contents(variable.name, layout(type_, recipe), recipe, variable.space or "")
    return made


def _texels(name: str, type_: t.Texture, recipe: Recipe) -> Any:
    """An array, or one for each of a few levels where there may be several."""
    if is_external(type_):
        raise UsageError(f"{name} is a {type_}")
    shape = shape_of(type_)
    axes = [SIDE // 2 if shape.axes == 3 else SIDE] * shape.axes
    axes = ([THIRDS[shape.third]] if shape.third else []) + axes
    format_ = format_of(type_.format or _SAMPLED["depth" if is_depth(type_) else channel_kind(type_)])
    axes += [] if format_.packed else [len(format_.channels)]
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    if type_.format is not None or shape.axes == 1 or shape.third == "sample":
        return _texel_values(rng, format_, tuple(axes), recipe)
    return [_texel_values(rng, format_, level_shape(type_, tuple(axes), level), recipe) for level in range(LEVELS)]


def _texel_values(rng: np.random.Generator, format_: Format, axes: tuple[int, ...], recipe: Recipe) -> np.ndarray:
    dtype = stored_dtype(format_)
    if dtype.kind == "f":
        return rng.uniform(0.0, 1.0, axes).astype(dtype)
    bits = np.iinfo(dtype)
    if format_.number in ("uint", "sint") and not format_.packed:
        return rng.integers(0, min(recipe.whole, bits.max + 1), axes).astype(dtype)
    least = bits.min + (format_.number == "snorm")  # of which there are two that mean -1
    return rng.integers(least, bits.max, axes, dtype, endpoint=True)


def layout(type_: t.Type, recipe: Recipe) -> np.ndarray:
    """What each two bytes of a binding belong to: `PADDING`, `WHOLE`, `SINGLE`, `HALF` or `COUNTER`."""
    size, tail = _size(type_, recipe.tail)
    if size > LARGEST:
        raise UsageError(f"a {type_} takes {size:,} bytes")
    codes = np.zeros(size // 2, np.uint8)
    _fill(codes, type_, tail)
    return codes


def _size(type_: t.Type, wanted: int) -> tuple[int, int]:
    """Bytes for a binding, and how many elements an array without a size has in them: `wanted`, where that is not too
    much, and what else fits."""
    least = t.round_up(4, t.min_binding_size(type_))
    if t.has_fixed_footprint(type_):
        return least, 0
    array, offset = type_, 0
    if isinstance(type_, t.Struct):
        array, offset = type_.members[-1].type, type_.members[-1].offset
    assert isinstance(array, t.Array)
    stride = t.stride_of(array)
    size = max(least, t.round_up(4, offset + min(wanted, LARGEST // stride) * stride))
    return size, (size - offset) // stride


def _fill(codes: np.ndarray, type_: t.Type, tail: int) -> None:
    """Write the codes of `type_` into the start of `codes`."""
    match type_:
        case t.Scalar():
            codes[: t.size_of(type_) // 2] = _CODES[type_]
        case t.Atomic():
            codes[:2] = COUNTER
        case t.Struct():
            for member in type_.members:
                _fill(codes[member.offset // 2 :], member.type, tail)
        case t.Vec() | t.Mat() | t.Array():
            elem, count = _parts(type_, tail)
            stride, size = t.stride_of(type_) // 2, t.size_of(elem) // 2
            one = np.zeros(stride, np.uint8)
            _fill(one[:size], elem, tail)
            whole = np.tile(one, count)[: len(codes)]
            codes[: len(whole)] = whole


def _parts(type_: t.Vec | t.Mat | t.Array, tail: int) -> tuple[t.Type, int]:
    match type_:
        case t.Vec():
            return type_.elem, type_.size
        case t.Mat():
            return t.Vec(type_.rows, type_.elem), type_.cols
        case _:
            assert not isinstance(type_.count, t.OverrideCount)
            return type_.elem, tail if type_.count is None else type_.count


def _contents(name: str, codes: np.ndarray, recipe: Recipe, space: str) -> np.ndarray:
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    halves, words = len(codes), len(codes) // 2
    low = -1.0 if space == "storage" else 0.0  # a step, a scale or an epsilon is seldom negative
    if space != "storage":
        whole = rng.choice(np.array(recipe.sizes, np.uint32), words)
    else:
        whole = rng.integers(0, recipe.whole, words, np.uint32)
    by_code: Mapping[int, np.ndarray] = {
        WHOLE: whole.view(np.uint16),
        SINGLE: rng.uniform(low, 1.0, words).astype(np.float32).view(np.uint16),
        HALF: rng.uniform(low, 1.0, halves).astype(np.float16).view(np.uint16),
    }
    made = np.zeros(halves, np.uint16)  # padding, and atomics, which count from zero
    for code, values in by_code.items():
        chosen = codes == code
        made[chosen] = values[chosen]
    return made.view(np.uint8)

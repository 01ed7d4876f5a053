"""Inputs for an unknown shader: a grid, override values and contents of bindings, generated from its declarations.

`RECIPES` are tried in order until one keeps every access in bounds, keeps loops short, and makes the shader change an
output: sizes and indices read from buffers must be small for that, while packed numbers need all their bits. Contents
depend only on the recipe and on the name and type of the binding. Arrays stay below 65,535 elements because lavapipe
leaves a loop after that many iterations (measured with Mesa 22.3.6).
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sim.bindings.texture_arrays import level_shape, stored_dtype
from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import Format, channel_kind, format_of, is_depth, is_external, shape_of
from ...sim.wgsl.typed import Module, Pipeline
from ..errors import UsageError
from ..manifests.id_axes import id_axes

# Workgroups along the axes whose ids the shader reads. Along any other axis, all would do the same work and race.
Array = NDArray[Any]

GRIDS = {0: (), 1: (6,), 2: (3, 2), 3: (3, 2, 2)}
LARGEST = 16 << 20  # bytes of one binding

SIDE = 64  # texels along an axis of a texture
LEVELS = 3
THIRDS = {"layer": 4, "face": 6, "sample": 4}
_SAMPLED = {"f32": "rgba8unorm", "i32": "rgba32sint", "u32": "rgba32uint", "depth": "r16unorm"}  # texel formats

# Kinds of elements: the first five for each 16-bit half of a buffer, the last for normalized texels.
PADDING, WHOLE, SINGLE, HALF, COUNTER, STEP = range(6)
_CODES = {t.F32: SINGLE, t.F16: HALF, t.I32: WHOLE, t.U32: WHOLE}

_OVERRIDES = {t.BOOL: True, t.F32: 0.5, t.F16: 0.5}


@frozen
class Recipe:
    """Rules for generating inputs.

    Integers in uniform buffers are chosen from `sizes`; those in storage buffers are below `whole`. Runtime-sized
    arrays have `tail` elements.
    """

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


def grid(entry: typed.Function, grids: Mapping[int, tuple[int, ...]] = GRIDS) -> tuple[int, int, int]:
    """Choose the grid: several workgroups along each axis whose ids the entry point reads.

    `grids`: their numbers along these axes, by how many axes there are.
    """
    axes = sorted(id_axes(entry))
    sizes = dict(zip(axes, grids[len(axes)], strict=True))
    return sizes.get(0, 1), sizes.get(1, 1), sizes.get(2, 1)


def override_values(module: Module, whole: int = 4) -> dict[str, Any]:
    """Choose a value for every override without a default; `whole` for integers."""
    missing = [o for o in module.overrides if o.init is None]
    return {(o.name if o.id is None else str(o.id)): _OVERRIDES.get(o.type, whole) for o in missing}


def bindings(pipeline: Pipeline, recipe: Recipe) -> dict[str, Any]:
    """Generate the bindings of the entry point by name: buffers as bytes, textures as arrays, samplers as mappings.

    Raises `UsageError` for types that cannot be generated.
    """
    made: dict[str, Any] = {}
    for variable in pipeline.globals:
        type_ = pipeline.store_types[variable]
        if isinstance(type_, t.Texture):
            made[variable.name] = texels(variable.name, type_, recipe)
        elif isinstance(type_, t.Sampler):
            made[variable.name] = {"compare": "less"} if type_.comparison else {}
        elif variable.binding is not None or variable.space == "immediate":
            made[variable.name] = contents(variable.name, layout(type_, recipe), recipe, variable.space or "")
    return made


def texels(name: str, type_: t.Texture, recipe: Recipe) -> Array | list[Array]:
    """Generate an array, or a list of `LEVELS` arrays if the texture may have several mip levels."""
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


def _texel_values(rng: np.random.Generator, format_: Format, axes: tuple[int, ...], recipe: Recipe) -> Array:
    dtype = stored_dtype(format_)
    if dtype.kind == "f":
        return rng.uniform(0.0, 1.0, axes).astype(dtype)
    bits = np.iinfo(dtype)
    if format_.number in ("uint", "sint") and not format_.packed:
        return rng.integers(0, min(recipe.whole, bits.max + 1), axes).astype(dtype)
    least = bits.min + (format_.number == "snorm")  # two values mean -1; skip the lower one
    return rng.integers(least, bits.max, axes, dtype, endpoint=True)


def layout(type_: t.Type, recipe: Recipe) -> NDArray[np.uint8]:
    """Return the kind of element for each two bytes of a binding: `PADDING`, `WHOLE`, `SINGLE`, `HALF`, `COUNTER`."""
    size, tail = _size(type_, recipe.tail)
    if size > LARGEST:
        raise UsageError(f"a {type_} takes {size:,} bytes")
    codes = np.zeros(size // 2, np.uint8)
    _fill(codes, type_, tail)
    return codes


def _size(type_: t.Type, wanted: int) -> tuple[int, int]:
    """Return the bytes of a binding and the elements of its runtime-sized array: at least `wanted`, unless that
    exceeds `LARGEST`, and as many more as fit."""
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


def _fill(codes: NDArray[np.uint8], type_: t.Type, tail: int) -> None:
    """Write the codes of `type_` to the start of `codes`."""
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
        case _:
            raise AssertionError(f"a {type_} has no layout")


def _parts(type_: t.Vec | t.Mat | t.Array, tail: int) -> tuple[t.Type, int]:
    match type_:
        case t.Vec():
            return type_.elem, type_.size
        case t.Mat():
            return t.Vec(type_.rows, type_.elem), type_.cols
        case _:
            assert not isinstance(type_.count, t.OverrideCount)
            return type_.elem, tail if type_.count is None else type_.count


def contents(name: str, codes: NDArray[np.uint8], recipe: Recipe, space: str) -> NDArray[np.uint8]:
    """Generate the bytes of a buffer from the kinds of its elements."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    halves, words = len(codes), len(codes) // 2
    low = -1.0 if space == "storage" else 0.0  # uniforms such as steps, scales and epsilons are seldom negative
    if space != "storage":
        whole = rng.choice(np.array(recipe.sizes, np.uint32), words)
    else:
        whole = rng.integers(0, recipe.whole, words, np.uint32)
    by_code: Mapping[int, NDArray[np.uint16]] = {
        WHOLE: whole.view(np.uint16),
        SINGLE: rng.uniform(low, 1.0, words).astype(np.float32).view(np.uint16),
        HALF: rng.uniform(low, 1.0, halves).astype(np.float16).view(np.uint16),
    }
    made = np.zeros(halves, np.uint16)  # padding stays 0, and so do atomics, most of which are counters
    for code, values in by_code.items():
        chosen = codes == code
        made[chosen] = values[chosen]
    return made.view(np.uint8)

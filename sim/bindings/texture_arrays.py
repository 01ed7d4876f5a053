"""Textures as NumPy arrays, before a run and after it.

An array has the axes of its texture, outermost first, and then an axis of channels, which may be left out for a single
channel: `[width]`, `[height, width]`, `[layer, height, width]` (of cubes: six faces each, +x -x +y -y +z -z),
`[depth, height, width]`, `[sample, height, width]`. Its dtype is what the format stores: uint8 for rgba8unorm, float16
for rgba16float; a texel of rgb10a2unorm, rgb10a2uint or rg11b10ufloat is one uint32. The format of a sampled texture
follows from the array. A list of arrays is a chain of mip levels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..ir import texture_handles as at
from ..wgsl import types as t
from ..wgsl.diagnostics import WgslError, fail
from ..wgsl.texel_formats import Format, Shape, channel_kind, format_of, is_depth, is_external, is_written, shape_of
from ..wgsl.typed import Variable
from .binding import DTYPES, Bound, Key, is_array, is_sequence

_LETTERS = {"unorm": "u", "snorm": "i", "uint": "u", "sint": "i", "float": "f"}
# The format of each channel of a sampled texture, by the channel's type in the shader and the dtype of the array.
_SAMPLED = {
    "f32": {"f4": "32float", "f2": "16float", "u1": "8unorm", "i1": "8snorm", "u2": "16unorm", "i2": "16snorm"},
    "i32": {"i4": "32sint", "i2": "16sint", "i1": "8sint"},
    "u32": {"u4": "32uint", "u2": "16uint", "u1": "8uint"},
    "depth": {"f4": "32float", "u2": "16unorm"},
}
_CHANNELS = {1: "r", 2: "rg", 4: "rgba"}
_FACES = 6


# ---- channels ----------------------------------------------------------------------------------------


@frozen
class _Transfer:
    """Converts stored numbers to those that a shader reads, and back; both functions take the width in bits."""

    read: Callable[[NDArray[Any], int], NDArray[Any]]
    write: Callable[[NDArray[Any], int], NDArray[Any]]


def _most(bits: int) -> np.float32:
    return np.float32((1 << bits) - 1)


def _small_float(raw: NDArray[Any], bits: int) -> NDArray[Any]:
    """Decode a float with 5 bits of exponent and no sign: it is the upper part of an f16."""
    return (raw << (15 - bits)).astype(np.uint16).view(np.float16)


def _small_float_bits(values: NDArray[Any], bits: int) -> NDArray[Any]:
    return values.astype(np.float16).view(np.uint16) >> (15 - bits)


def _unclamped(raw: NDArray[Any], bits: int) -> NDArray[Any]:
    return raw.astype(np.float32) / _most(bits - 1)


def _read_unorm(raw: NDArray[Any], bits: int) -> NDArray[Any]:
    return raw.astype(np.float32) / _most(bits)


def _write_unorm(values: NDArray[Any], bits: int) -> NDArray[Any]:
    return np.rint(values * _most(bits))


def _read_snorm(raw: NDArray[Any], bits: int) -> NDArray[Any]:
    return np.maximum(_unclamped(raw, bits), np.float32(-1))


def _write_snorm(values: NDArray[Any], bits: int) -> NDArray[Any]:
    return np.rint(values * _most(bits - 1))


def _same(numbers: NDArray[Any], bits: int) -> NDArray[Any]:
    return numbers


# Spec: WGSL, "Texel Formats", channel transfer functions.
_TRANSFERS = {
    "unorm": _Transfer(_read_unorm, _write_unorm),
    "snorm": _Transfer(_read_snorm, _write_snorm),
    **dict.fromkeys(("uint", "sint", "float"), _Transfer(_same, _same)),
    "ufloat": _Transfer(_small_float, _small_float_bits),
}


def stored_dtype(format_: Format) -> np.dtype[Any]:
    """Return the dtype of an array in this format."""
    return np.dtype(np.uint32 if format_.packed else f"{_LETTERS[format_.number]}{format_.bits[0] // 8}")


def _columns(format_: Format) -> list[int]:
    return ["rgba".index(letter) for letter in format_.channels]


def _to_words(format_: Format, kind: str, array: NDArray[Any], loaded: bool = True) -> NDArray[np.uint8]:
    """Return the bytes of four words for each texel, as the shader reads them; missing channels are 0, 0, 1.

    The lowest snorm reads as -1, like the one above it; where the shader cannot load (`loaded` False), it is kept.
    """
    raw = array.reshape(-1, 1 if format_.packed else len(format_.channels))
    if format_.packed:
        ends = np.cumsum(format_.bits)
        raw = np.stack([raw[:, 0] >> (end - b) & ((1 << b) - 1) for end, b in zip(ends, format_.bits, strict=True)], 1)
    words = np.zeros((len(raw), 4), DTYPES[kind])
    words[:, 3] = 1
    read = _TRANSFERS[format_.number].read if loaded or format_.number != "snorm" else _unclamped
    for channel, (column, bits) in enumerate(zip(_columns(format_), format_.bits, strict=True)):
        words[:, column] = read(raw[:, channel], bits)
    return words.ravel().view(np.uint8)


def _from_words(format_: Format, kind: str, data: NDArray[np.uint8]) -> NDArray[Any]:
    """Return the flat elements of an array in this format: the inverse of `_to_words`."""
    words, write = data.view(DTYPES[kind]).reshape(-1, 4), _TRANSFERS[format_.number].write
    dtype = stored_dtype(format_)
    channels = [write(words[:, c], bits).astype(dtype) for c, bits in zip(_columns(format_), format_.bits, strict=True)]
    if not format_.packed:
        return np.stack(channels, 1).ravel()
    starts = np.cumsum((0, *format_.bits[:-1])).astype(np.uint32)
    return np.bitwise_or.reduce([c << start for c, start in zip(channels, starts, strict=True)])


# ---- bindings ----------------------------------------------------------------------------------------


@frozen
class BoundTexture(Bound):
    """A texture, laid out as in `ir.texture_handles`. `levels`: its arrays, the largest first."""

    format: Format
    levels: tuple[NDArray[Any], ...]

    @property
    def writable(self) -> bool:
        return is_written(self.type)

    def byte_of(self, element: int) -> int:
        per_texel = 1 if self.format.packed else len(self.format.channels)
        return at.TEXELS + element // per_texel * at.TEXEL_BYTES

    def view(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        assert isinstance(self.type, t.Texture)
        texels = data[at.TEXELS : -at.TEXEL_BYTES]
        return _from_words(self.format, channel_kind(self.type), texels).reshape(self.levels[0].shape)


def bind_texture(variable: Variable, type_: t.Texture, key: Key, value: object) -> BoundTexture:
    """Bind an array, or a list of one for each mip level. Raises `WgslError`, which names the binding."""
    format_, levels = read_texture(variable, type_, value)
    shape, kind = shape_of(type_), channel_kind(type_)
    table = np.zeros(at.TEXELS // 4, np.uint32)
    first = 0
    for number, level in enumerate(levels):
        extent = extent_of(shape, level)
        table[number * at.ROW : (number + 1) * at.ROW] = (*extent, first)
        first += int(np.prod(extent))
    table[at.LEVELS] = len(levels)
    border = np.zeros(1 if format_.packed else len(format_.channels), stored_dtype(format_))
    texels = [_to_words(format_, kind, level, type_.access != "write") for level in (*levels, border)]
    data = np.concatenate([table.view(np.uint8), *texels])
    return BoundTexture(variable, type_, key, value, data, format_, levels)


def read_texture(variable: Variable, type_: t.Texture, value: object) -> tuple[Format, tuple[NDArray[Any], ...]]:
    """Return the format of a texture and the arrays of its levels. Raises `WgslError`, which names the binding."""
    if is_external(type_):
        raise fail("unsupported", f"the simulator cannot bind {variable.name} ({type_})", variable.span)
    given = tuple(value) if is_sequence(value) else (value,)
    levels = tuple(level for level in given if is_array(level))
    if not levels or len(levels) < len(given):
        message = (
            f"{variable.name} is a {type(value).__name__}, and a texture is a NumPy array, or a list of one per level"
        )
        raise fail("binding-dtype", message, variable.span)
    shape = shape_of(type_)
    format_ = _format(variable, type_, shape, levels[0])
    if shape.third == "face":
        _check_faces(variable, type_, shape, levels[0])
    _check_levels(variable, type_, shape, levels)
    return format_, tuple(np.ascontiguousarray(level) for level in levels)


def level_shape(type_: t.Texture, largest: tuple[int, ...], level: int) -> tuple[int, ...]:
    """Return the shape of a level: each axis but layers is half that of the level before, rounded down, at least 1."""
    shape = shape_of(type_)
    end = _ranks(shape)
    halved = range(end - shape.axes, end)
    return tuple(max(1, n >> level) if axis in halved else n for axis, n in enumerate(largest))


def _ranks(shape: Shape) -> int:
    """Return the number of axes without that of channels."""
    return shape.axes + (shape.third is not None)


def extent_of(shape: Shape, level: NDArray[Any]) -> tuple[int, int, int]:
    """Return the width, height, and depth (or layers, faces, samples) of an array."""
    x, y, z = (*level.shape[: _ranks(shape)][::-1], 1, 1)[:3]
    return x, y, z


def _format(variable: Variable, type_: t.Texture, shape: Shape, array: NDArray[Any]) -> Format:
    """Return the format of an array. Raises `WgslError` where the texture cannot have it."""
    ranks = _ranks(shape)
    channels = array.shape[ranks] if array.ndim == ranks + 1 else 1
    if array.ndim not in (ranks, ranks + 1) or array.size == 0:
        message = f"{variable.name} has shape {list(array.shape)}, and {type_} needs {_axes(type_, shape)}"
        raise fail("binding-size", message, variable.span)
    if type_.format is not None:
        format_ = format_of(type_.format)
        wanted, count = stored_dtype(format_), 1 if format_.packed else len(format_.channels)
        if (array.dtype, channels) != (wanted, count):
            raise _misfit(variable, type_, array, channels, f"{type_.format} is stored as {count} of {wanted}")
        return format_
    kinds = _SAMPLED["depth" if is_depth(type_) else channel_kind(type_)]
    name = next((kind for dtype, kind in kinds.items() if array.dtype == np.dtype(dtype)), None)
    counts = (1,) if is_depth(type_) else tuple(_CHANNELS)
    if name is None or channels not in counts:
        dtypes = " or ".join(np.dtype(dtype).name for dtype in kinds)
        raise _misfit(variable, type_, array, channels, f"{type_} is {' or '.join(map(str, counts))} of {dtypes}")
    return format_of(_CHANNELS[channels] + name)


def _misfit(variable: Variable, type_: t.Texture, array: NDArray[Any], channels: int, wanted: str) -> WgslError:
    message = f"{variable.name} has {channels} channel{'s'[: channels != 1]} of {array.dtype}, and {wanted}"
    return fail("binding-dtype", message, variable.span)


def _axes(type_: t.Texture, shape: Shape) -> str:
    """Name the axes of an array: `[layers, height, width] and channels`."""
    names = ["depth", "height", "width"][-shape.axes :]
    third = {None: [], "layer": ["layers"], "sample": ["samples"], "face": ["faces"]}[shape.third]
    return f"[{', '.join([*third, *names])}] and channels"


def _check_faces(variable: Variable, type_: t.Texture, shape: Shape, array: NDArray[Any]) -> None:
    width, height, faces = extent_of(shape, array)
    whole = faces % _FACES == 0 if type_.kind.endswith("array") else faces == _FACES
    if width != height or not whole:
        message = f"{variable.name} has shape {list(array.shape)}, and {type_} needs six square faces for each cube"
        raise fail("binding-size", message, variable.span)


def _check_levels(variable: Variable, type_: t.Texture, shape: Shape, levels: tuple[NDArray[Any], ...]) -> None:
    """Check the number of levels, and the shape of each."""
    largest = levels[0]
    most = max(extent_of(shape, largest)[: shape.axes]).bit_length()
    if type_.format is not None or shape.axes == 1 or shape.third == "sample":
        most = 1
    if len(levels) > most:
        message = f"{variable.name} has {len(levels)} levels, and {type_} of shape {list(largest.shape)} at most {most}"
        raise fail("binding-size", message, variable.span)
    for number, level in enumerate(levels):
        wanted = level_shape(type_, largest.shape, number)
        if level.shape != wanted or level.dtype != largest.dtype:
            found, half = f"{level.dtype}{list(level.shape)}", f"{largest.dtype}{list(wanted)}"
            message = f"level {number} of {variable.name} is {found}, and half the one before is {half}"
            raise fail("binding-size", message, variable.span)

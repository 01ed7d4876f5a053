"""Texel formats, and the shapes of textures.

A format is derived from its name: `rgba8unorm` has four channels, in this order, of 8 unsigned normalized bits.
Spec: WGSL, "Texel Formats" and "Texture and Sampler Types".
"""

from __future__ import annotations

import re
from functools import cache

from ..fast_dataclass import frozen
from . import types as t
from .enumerants import TEXEL_FORMATS

_PLAIN = re.compile(r"([rgba]+)(8|16|32)(unorm|snorm|uint|sint|float)")
# Channels of different sizes share one 32-bit word, the first in the lowest bits.
_PACKED = {
    "rgb10a2unorm": ("rgba", (10, 10, 10, 2), "unorm"),
    "rgb10a2uint": ("rgba", (10, 10, 10, 2), "uint"),
    "rg11b10ufloat": ("rgb", (11, 11, 10), "ufloat"),
}
# Coordinates of a texel, without layer and sample, by dimension.
_AXES = {"1d": 1, "2d": 2, "2d_array": 2, "3d": 3, "cube": 2, "cube_array": 2, "multisampled_2d": 2}


@frozen
class Format:
    """A texel format: `channels` in memory order, the `bits` of each; `number` is unorm, snorm, uint, sint, float or
    ufloat."""

    name: str
    channels: str
    bits: tuple[int, ...]
    number: str

    @property
    def packed(self) -> bool:
        return self.name in _PACKED

    @property
    def bytes(self) -> int:
        """The size of one texel, in bytes."""
        return sum(self.bits) // 8


@cache
def format_of(name: str) -> Format:
    """Return the format called `name`: one of `TEXEL_FORMATS`, or any name built like them."""
    if name in _PACKED:
        return Format(name, *_PACKED[name])
    parts = _PLAIN.fullmatch(name)
    assert parts is not None, name
    channels, bits, number = parts.groups()
    return Format(name, channels, (int(bits),) * len(channels), number)


@frozen
class Shape:
    """How a texel is addressed: by `axes` coordinates, and by `third` (layer, face or sample) where it is not None."""

    axes: int
    third: str | None


def dimension_of(type_: t.Texture) -> str:
    """Return the dimension in a texture's type: `2d_array` for a `texture_storage_2d_array`."""
    return type_.kind.removeprefix("texture_").removeprefix("storage_").removeprefix("depth_")


def shape_of(type_: t.Texture) -> Shape:
    """Return the shape of a texture that is not external."""
    name = dimension_of(type_)
    third = "face" if name.startswith("cube") else "layer" if name.endswith("array") else None
    return Shape(_AXES[name], "sample" if name.startswith("multisampled") else third)


def is_depth(type_: t.Texture) -> bool:
    """Whether a texture is a depth texture."""
    return type_.kind.startswith("texture_depth")


def is_external(type_: t.Texture) -> bool:
    """Whether a texture is an external texture."""
    return type_.kind == "texture_external"


def channel_kind(type_: t.Texture) -> str:
    """Return the kind of a channel in the shader: f32, i32 or u32."""
    scalar = TEXEL_FORMATS[type_.format] if type_.format else type_.sampled or t.F32
    return t.KIND[scalar]


def is_written(type_: t.Type) -> bool:
    """Whether a type is a storage texture that a shader may write."""
    return isinstance(type_, t.Texture) and type_.access in ("write", "read_write")

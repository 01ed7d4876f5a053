"""Describe the buffers, textures and samplers of a dispatch to the worker process.

The data are the same objects that the simulator accepts as bindings.
"""

from __future__ import annotations

from pickle import PickleBuffer
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...sim.bindings.samplers import read_sampler
from ...sim.bindings.texture_arrays import extent_of, read_texture
from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import channel_kind, dimension_of, is_depth, is_written, shape_of
from ...sim.wgsl.typed import Variable
from ..errors import TooLarge, UsageError
from ..wgpu_worker.device_resources import Buffer, Content, Resource, Sampler, Texture
from ..wgpu_worker.messages import Abilities, AdapterInfo

Array = NDArray[Any]
Data = Any  # an array, bytes, a list of arrays (levels of a texture), or a sampler

_BUFFER_TYPES = {"uniform": "uniform", "storage-read": "read-only-storage", "storage-write": "storage"}
_SAMPLE_TYPES = {"f32": "float", "i32": "sint", "u32": "uint"}
_STORAGE_ACCESS = {"read": "read-only", "write": "write-only", "read_write": "read-write"}
_DEPTH_FORMATS = {"r16unorm": "depth16unorm"}


@frozen
class Slot:
    """A binding as the shader declares it.

    `kind` is storage-read, storage-write, uniform, or handle: a texture or sampler, which `variable` describes.
    """

    name: str
    group: int
    binding: int
    kind: str
    variable: Variable | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.group, self.binding


def describe(slot: Slot, data: Data, info: AdapterInfo, has: Abilities) -> Resource:
    """Describe the resource for `slot`. Raises `UsageError` or `WgslError` if the data do not fit its type, `TooLarge`
    if they exceed a limit of the device."""
    if slot.kind != "handle":
        return _buffer(slot, data, info, has)
    assert slot.variable is not None
    if isinstance(slot.variable.type, t.Sampler):
        return _sampler(slot, slot.variable, slot.variable.type, data)
    return _texture(slot, slot.variable, data, has)


def as_given(content: Content, data: Data) -> Data:
    """Convert the contents of a buffer to the type, dtype and shape of the data that were bound."""
    if isinstance(data, np.ndarray):
        array = cast(Array, data)
        return np.frombuffer(content, array.dtype).reshape(array.shape).copy()
    return bytes(content)


def as_texels(content: Content, variable: Variable, data: Data) -> Data:
    """Convert the contents of a texture's largest level to the dtype and shape of the data that were bound."""
    assert isinstance(variable.type, t.Texture)
    level = read_texture(variable, variable.type, data)[1][0]
    return np.frombuffer(content, level.dtype).reshape(level.shape).copy()


def _bytes(array: Array) -> PickleBuffer:
    return PickleBuffer(np.ascontiguousarray(array).ravel().view(np.uint8).data)


def _buffer(slot: Slot, data: Data, info: AdapterInfo, has: Abilities) -> Buffer:
    size = data.nbytes if isinstance(data, np.ndarray) else len(data)
    if size == 0 or size % 4:
        raise UsageError(f"binding {slot.name} holds {size} bytes, WebGPU needs a positive multiple of 4")
    most = has.limits[f"max-{slot.kind.partition('-')[0]}-buffer-binding-size"]
    if size > most:
        raise TooLarge(f"binding {slot.name} holds {size:,} bytes, and {info.name} binds at most {most:,}")
    content = _bytes(cast(Array, data)) if isinstance(data, np.ndarray) else data
    return Buffer(slot.group, slot.binding, _BUFFER_TYPES[slot.kind], content)


def _sampler(slot: Slot, variable: Variable, type_: t.Sampler, data: Data) -> Sampler:
    sampler = read_sampler(variable, type_, data)
    modes = zip(("address_mode_u", "address_mode_v", "address_mode_w"), sampler.addresses, strict=True)
    how = {
        "mag_filter": sampler.mag,
        "min_filter": sampler.min,
        "mipmap_filter": sampler.mip,
        "lod_min_clamp": sampler.lod[0],
        "lod_max_clamp": sampler.lod[1],
        "compare": sampler.compare,
        **dict(modes),
    }
    filtering = "linear" in (sampler.mag, sampler.min, sampler.mip)
    kind = "comparison" if sampler.compare else "filtering" if filtering else "non-filtering"
    return Sampler(slot.group, slot.binding, kind, how)


def _texture(slot: Slot, variable: Variable, data: Data, has: Abilities) -> Texture:
    type_ = variable.type
    assert isinstance(type_, t.Texture)
    format_, levels = read_texture(variable, type_, data)
    shape, name = shape_of(type_), _gpu_format(variable, type_, format_.name)
    view = dimension_of(type_).replace("_", "-")

    def described(level: Array) -> tuple[Content, dict[str, int], tuple[int, int, int]]:
        width, height, _ = extent = extent_of(shape, level)
        rows = {"offset": 0, "bytes_per_row": width * format_.bytes, "rows_per_image": height}
        return _bytes(level), rows, extent

    how = {
        "size": extent_of(shape, levels[0]),
        "format": name,
        "dimension": f"{shape.axes}d",
        "mip_level_count": len(levels),
        "usage": f"{'STORAGE_BINDING|COPY_SRC' if type_.format else 'TEXTURE_BINDING'}|COPY_DST",
    }
    layout = _texture_layout(type_, name, view, "float32-filterable" in has.features)
    return Texture(
        slot.group, slot.binding, layout, how, view, [described(level) for level in levels], is_written(type_)
    )


def _gpu_format(variable: Variable, type_: t.Texture, name: str) -> str:
    """Return WebGPU's name of a format. Raises `UsageError` for textures that cannot be uploaded."""
    if shape_of(type_).third == "sample":
        raise UsageError(f"binding {variable.name} is a {type_}, and samples cannot be uploaded to a GPU")
    if not is_depth(type_):
        return name
    if name not in _DEPTH_FORMATS:
        raise UsageError(f"binding {variable.name} is float32, and only uint16 depth can be uploaded to a GPU")
    return _DEPTH_FORMATS[name]


def _texture_layout(type_: t.Texture, format_: str, view: str, filterable: bool) -> dict[str, Any]:
    """Return the texture's part of a bind group layout entry. `filterable`: the device filters 32-bit floats."""
    if type_.format:
        access = _STORAGE_ACCESS[type_.access or "write"]
        return {"storage_texture": {"access": access, "format": format_, "view_dimension": view}}
    kind = "depth" if is_depth(type_) else _SAMPLE_TYPES[channel_kind(type_)]
    if format_.endswith("32float") and not filterable:
        kind = "unfilterable-float"
    return {"texture": {"sample_type": kind, "view_dimension": view}}

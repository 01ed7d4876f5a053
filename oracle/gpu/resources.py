"""What a dispatch binds on a device: buffers, textures and samplers, each made from what the simulator is given too.

Devices and their objects are wgpu's; this module names its enumerants by their WebGPU spelling and imports none of it.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from sim.bindings.samplers import Sampler, read_sampler
from sim.bindings.textures import extent_of, read_texture
from sim.wgsl import types as t
from sim.wgsl.records import frozen
from sim.wgsl.texels import channel_kind, dimension_of, is_depth, is_written, shape_of
from sim.wgsl.typed import Variable

from ..errors import TooLarge, UsageError

Data = Any  # an array, bytes, a list of arrays (levels of a texture), or a sampler

_BUFFER_TYPES = {"uniform": "uniform", "storage-read": "read-only-storage", "storage-write": "storage"}
_SAMPLE_TYPES = {"f32": "float", "i32": "sint", "u32": "uint"}
_STORAGE_ACCESS = {"read": "read-only", "write": "write-only", "read_write": "read-write"}
_DEPTH_FORMATS = {"r16unorm": "depth16unorm"}


@frozen
class Slot:
    """A binding as the shader declares it. `kind` is storage-read, storage-write, uniform, or handle: a texture or
    sampler, of which `variable` says more."""

    name: str
    group: int
    binding: int
    kind: str
    variable: Variable | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.group, self.binding


class Resource(Protocol):
    """`layout`: its part of a bind group layout's entry; `bound`: what a bind group's entry holds."""

    layout: dict[str, Any]
    bound: Any

    def upload(self) -> None:
        """Put the contents there, afresh."""
        ...

    def output(self) -> Data | None:
        """What is there now, as it went in; None of what a shader cannot write."""
        ...

    def destroy(self) -> None: ...


def make(device: Any, slot: Slot, data: Data) -> Resource:
    """What `slot` needs. Raises `UsageError` or `WgslError` on data that does not fit, `TooLarge` beyond the limits."""
    if slot.kind != "handle":
        return _Buffer(device, slot, data)
    assert slot.variable is not None
    if isinstance(slot.variable.type, t.Sampler):
        return _Sampler(device, read_sampler(slot.variable, slot.variable.type, data))
    return _Texture(device, slot.variable, data)


class _Buffer:
    def __init__(self, device: Any, slot: Slot, data: Data) -> None:
        size = data.nbytes if isinstance(data, np.ndarray) else len(data)
        if size == 0 or size % 4:
            raise UsageError(f"binding {slot.name} holds {size} bytes, WebGPU wants a multiple of 4 above 0")
        most = device.limits[f"max-{slot.kind.partition('-')[0]}-buffer-binding-size"]
        if size > most:
            adapter = device.adapter.info["device"]
            raise TooLarge(f"binding {slot.name} holds {size:,} bytes, and {adapter} binds {most:,} at most")
        self._queue, self._data, self._written = device.queue, data, slot.kind == "storage-write"
        use = "UNIFORM" if slot.kind == "uniform" else "STORAGE"
        self._buffer = device.create_buffer(size=size, usage=f"{use}|COPY_DST|COPY_SRC")
        self.layout = {"buffer": {"type": _BUFFER_TYPES[slot.kind]}}
        self.bound = {"buffer": self._buffer, "offset": 0, "size": size}

    def upload(self) -> None:
        data = self._data
        self._queue.write_buffer(self._buffer, 0, np.ascontiguousarray(data) if isinstance(data, np.ndarray) else data)

    def output(self) -> Data | None:
        if not self._written:
            return None
        raw = self._queue.read_buffer(self._buffer)
        if isinstance(self._data, np.ndarray):
            return np.frombuffer(raw, self._data.dtype).reshape(self._data.shape).copy()
        return bytes(raw)

    def destroy(self) -> None:
        self._buffer.destroy()


class _Sampler:
    def __init__(self, device: Any, sampler: Sampler) -> None:
        modes = dict(zip(("address_mode_u", "address_mode_v", "address_mode_w"), sampler.addresses, strict=True))
        self.bound = device.create_sampler(
            mag_filter=sampler.mag,
            min_filter=sampler.min,
            mipmap_filter=sampler.mip,
            lod_min_clamp=sampler.lod[0],
            lod_max_clamp=sampler.lod[1],
            compare=sampler.compare,
            **modes,
        )
        filtering = "linear" in (sampler.mag, sampler.min, sampler.mip)
        kind = "comparison" if sampler.compare else "filtering" if filtering else "non-filtering"
        self.layout = {"sampler": {"type": kind}}

    def upload(self) -> None:
        pass

    def output(self) -> Data | None:
        return None

    def destroy(self) -> None:
        pass


class _Texture:
    def __init__(self, device: Any, variable: Variable, data: Data) -> None:
        type_ = variable.type
        assert isinstance(type_, t.Texture)
        self._format, self._levels = read_texture(variable, type_, data)
        self._queue, self._written = device.queue, is_written(type_)
        self._shape = shape_of(type_)
        format_ = _gpu_format(variable, type_, self._format.name)
        self._texture = device.create_texture(
            size=extent_of(self._shape, self._levels[0]),
            format=format_,
            dimension=f"{self._shape.axes}d",
            mip_level_count=len(self._levels),
            usage=f"{'STORAGE_BINDING|COPY_SRC' if type_.format else 'TEXTURE_BINDING'}|COPY_DST",
        )
        view = dimension_of(type_).replace("_", "-")
        self.bound = self._texture.create_view(dimension=view)
        self.layout = _texture_layout(type_, format_, view, "float32-filterable" in device.features)

    def _rows(self, level: np.ndarray) -> dict[str, int]:
        width, height, _ = extent_of(self._shape, level)
        return {"offset": 0, "bytes_per_row": width * self._format.bytes, "rows_per_image": height}

    def upload(self) -> None:
        for number, level in enumerate(self._levels):
            place = {"texture": self._texture, "mip_level": number}
            self._queue.write_texture(place, level, self._rows(level), extent_of(self._shape, level))

    def output(self) -> Data | None:
        if not self._written:
            return None
        level = self._levels[0]
        source = {"texture": self._texture}
        raw = self._queue.read_texture(source, self._rows(level), extent_of(self._shape, level))
        return np.frombuffer(raw, level.dtype).reshape(level.shape).copy()

    def destroy(self) -> None:
        self._texture.destroy()


def _gpu_format(variable: Variable, type_: t.Texture, name: str) -> str:
    """WebGPU's name of a format. Raises `UsageError` for what no program can upload."""
    if shape_of(type_).third == "sample":
        raise UsageError(f"binding {variable.name} is a {type_}, and a GPU's samples cannot be uploaded")
    if not is_depth(type_):
        return name
    if name not in _DEPTH_FORMATS:
        raise UsageError(f"binding {variable.name} is float32, and only uint16 depth can be uploaded to a GPU")
    return _DEPTH_FORMATS[name]


def _texture_layout(type_: t.Texture, format_: str, view: str, filterable: bool) -> dict[str, Any]:
    """`filterable`: floats of 32 bits can be filtered."""
    if type_.format:
        access = _STORAGE_ACCESS[type_.access or "write"]
        return {"storage_texture": {"access": access, "format": format_, "view_dimension": view}}
    kind = "depth" if is_depth(type_) else _SAMPLE_TYPES[channel_kind(type_)]
    if format_.endswith("32float") and not filterable:
        kind = "unfilterable-float"
    return {"texture": {"sample_type": kind, "view_dimension": view}}

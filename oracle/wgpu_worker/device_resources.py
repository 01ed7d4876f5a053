"""The resources of a dispatch: plain values that cross processes, and become buffers and textures of a device.

`wgpu_client.binding_resources` describes a resource; the worker process calls `make`, then the other methods.
Enumerants are spelled as in WebGPU, so that nothing here imports wgpu.
"""

from __future__ import annotations

from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any, Protocol

from ...sim.fast_dataclass import entity

Content = Any  # anything with the buffer protocol; on the receiving side, bytes or a bytearray


class Resource(Protocol):
    """A resource of a dispatch.

    `layout` is its part of a bind group layout entry. `bound` is the resource of a bind group entry, after `make`.
    """

    group: int
    binding: int

    @property
    def layout(self) -> dict[str, Any]: ...

    @property
    def bound(self) -> Any: ...

    def make(self, device: Any) -> None:
        """Create the resource on a device."""
        ...

    def upload(self) -> None:
        """Write the initial contents."""
        ...

    def keep(self, device: Any) -> None:
        """After `upload`, keep a copy of what a shader can write, for `restore`."""
        ...

    def restore(self, encoder: Any) -> None:
        """Have the device write the initial contents again, from the copy."""
        ...

    def output(self) -> Content | None:
        """Read the contents back; None if a shader cannot write them."""
        ...

    def destroy(self) -> None:
        """Free the resource."""
        ...


@entity
class Buffer:
    """A buffer; `type` is that of its layout."""

    group: int
    binding: int
    type: str
    data: Content

    @property
    def layout(self) -> dict[str, Any]:
        return {"buffer": {"type": self.type}}

    def make(self, device: Any) -> None:
        self._kept: Any = None
        size = len(self.data)
        use = "UNIFORM" if self.type == "uniform" else "STORAGE"
        self._queue = device.queue
        self._buffer = device.create_buffer(size=size, usage=f"{use}|COPY_DST|COPY_SRC")
        self.bound = {"buffer": self._buffer, "offset": 0, "size": size}

    def upload(self) -> None:
        self._queue.write_buffer(self._buffer, 0, self.data)

    def keep(self, device: Any) -> None:
        if self.type == "storage":
            self._kept = device.create_buffer(size=len(self.data), usage="COPY_DST|COPY_SRC")
            self._queue.write_buffer(self._kept, 0, self.data)

    def restore(self, encoder: Any) -> None:
        if self._kept is not None:
            encoder.copy_buffer_to_buffer(self._kept, 0, self._buffer, 0, len(self.data))

    def output(self) -> Content | None:
        return PickleBuffer(self._queue.read_buffer(self._buffer)) if self.type == "storage" else None

    def destroy(self) -> None:
        self._buffer.destroy()
        if self._kept is not None:
            self._kept.destroy()


@entity
class Sampler:
    """A sampler; `type` is that of its layout, `how` are the arguments that create it."""

    group: int
    binding: int
    type: str
    how: dict[str, Any]

    @property
    def layout(self) -> dict[str, Any]:
        return {"sampler": {"type": self.type}}

    def make(self, device: Any) -> None:
        self.bound = device.create_sampler(**self.how)

    def upload(self) -> None:
        pass

    def keep(self, device: Any) -> None:
        pass

    def restore(self, encoder: Any) -> None:
        pass

    def output(self) -> Content | None:
        return None

    def destroy(self) -> None:
        pass


@entity
class Texture:
    """A texture.

    `how` are the arguments that create it, `view` is the dimension of its view. `levels` has the contents, data layout
    and extent of each mip level. `written`: the shader can write it.
    """

    group: int
    binding: int
    layout: dict[str, Any]
    how: dict[str, Any]
    view: str
    levels: Sequence[tuple[Content, dict[str, int], tuple[int, int, int]]]
    written: bool

    def make(self, device: Any) -> None:
        self._queue = device.queue
        self._texture = device.create_texture(**self.how)
        self.bound = self._texture.create_view(dimension=self.view)

    def upload(self) -> None:
        for number, (content, rows, extent) in enumerate(self.levels):
            self._queue.write_texture({"texture": self._texture, "mip_level": number}, content, rows, extent)

    def keep(self, device: Any) -> None:
        pass

    def restore(self, encoder: Any) -> None:
        pass  # shaders that WebGPU accepts read no texel that they write, but for three formats

    def output(self) -> Content | None:
        if not self.written:
            return None
        _, rows, extent = self.levels[0]
        return PickleBuffer(self._queue.read_texture({"texture": self._texture}, rows, extent))

    def destroy(self) -> None:
        self._texture.destroy()

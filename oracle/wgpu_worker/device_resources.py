"""What a dispatch binds: described in plain values, which get from one process to another, and made there on a device.

`wgpu_client.binding_resources` describes; who runs wgpu calls `make`, then the rest. Enumerants are named
by their WebGPU spelling, and nothing of wgpu is imported.
"""

from __future__ import annotations

from collections.abc import Sequence
from pickle import PickleBuffer
from typing import Any, Protocol

from ...sim.fast_dataclass import entity

Content = Any  # bytes, or whatever else has them; in the process that they are sent to, bytes or a bytearray


class Resource(Protocol):
    """`layout`: its part of a bind group layout's entry; `bound`: what a bind group's entry holds, once it is made."""

    group: int
    binding: int

    @property
    def layout(self) -> dict[str, Any]: ...

    @property
    def bound(self) -> Any: ...

    def make(self, device: Any) -> None: ...

    def upload(self) -> None:
        """Put the contents there, afresh."""
        ...

    def output(self) -> Content | None:
        """What is there now; None of what a shader cannot write."""
        ...

    def destroy(self) -> None: ...


@entity
class Buffer:
    """`type`: as a layout has it."""

    group: int
    binding: int
    type: str
    data: Content

    @property
    def layout(self) -> dict[str, Any]:
        return {"buffer": {"type": self.type}}

    def make(self, device: Any) -> None:
        size = len(self.data)
        use = "UNIFORM" if self.type == "uniform" else "STORAGE"
        self._queue = device.queue
        self._buffer = device.create_buffer(size=size, usage=f"{use}|COPY_DST|COPY_SRC")
        self.bound = {"buffer": self._buffer, "offset": 0, "size": size}

    def upload(self) -> None:
        self._queue.write_buffer(self._buffer, 0, self.data)

    def output(self) -> Content | None:
        return PickleBuffer(self._queue.read_buffer(self._buffer)) if self.type == "storage" else None

    def destroy(self) -> None:
        self._buffer.destroy()


@entity
class Sampler:
    """`how` it is created; `type`: as a layout has it."""

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

    def output(self) -> Content | None:
        return None

    def destroy(self) -> None:
        pass


@entity
class Texture:
    """`how` it is created; `view`: its dimension; `levels`: the contents of each, how its rows lie, and its extent;
    `written`: by the shader."""

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

    def output(self) -> Content | None:
        if not self.written:
            return None
        _, rows, extent = self.levels[0]
        return PickleBuffer(self._queue.read_texture({"texture": self._texture}, rows, extent))

    def destroy(self) -> None:
        self._texture.destroy()

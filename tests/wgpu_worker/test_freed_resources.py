"""What a dispatch creates on a device, and that it is freed afterwards, with a device that records its calls."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bankshot.oracle.errors import GpuError
from bankshot.oracle.wgpu_worker import device_clock, device_dispatch, device_times
from bankshot.oracle.wgpu_worker.device_resources import Buffer, Sampler, Texture
from bankshot.oracle.wgpu_worker.messages import TIMESTAMPS, DispatchRequest, TimesRequest


class Made:
    """An object of a device, with the arguments that created it; its other calls are recorded by their names."""

    def __init__(self, device: Device, kind: str, how: dict[str, Any]) -> None:
        self.device, self.kind, self.how, self.freed, self.content = device, kind, how, 0, b""

    def destroy(self) -> None:
        assert not self.freed
        self.freed += 1

    def create_view(self, dimension: str) -> tuple[str, Made]:
        return dimension, self

    def get_bind_group_layout(self, number: int) -> int:
        return number

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **options: Any) -> Made:
            self.device.log.append((name, *args, *options.values()))
            return self

        return call


class Device:
    """A device whose buffers hold what was written last."""

    features = frozenset((TIMESTAMPS,))

    def __init__(self) -> None:
        self.made: list[Made] = []
        self.log: list[tuple[Any, ...]] = []
        self.queue = self

    def __getattr__(self, name: str) -> Any:
        def create(**how: Any) -> Made:
            assert name.startswith("create_"), name
            self.made.append(Made(self, name.removeprefix("create_"), how))
            return self.made[-1]

        return create

    def write_buffer(self, buffer: Made, offset: int, data: bytes) -> None:
        assert offset == 0
        buffer.content = bytes(data)

    def read_buffer(self, buffer: Made) -> bytes:
        return buffer.content or np.arange(buffer.how["size"] // 8 or 1, dtype=np.uint64).tobytes()

    def write_texture(self, to: dict[str, Any], content: bytes, rows: dict[str, int], extent: tuple[int, ...]) -> None:
        self.log.append((to["mip_level"], content, rows, extent))

    def read_texture(self, of: dict[str, Any], rows: dict[str, int], extent: tuple[int, ...]) -> bytes:
        self.log.append((rows, extent))
        return b"texels"

    def submit(self, commands: list[Any]) -> None:
        assert commands

    def alive(self) -> list[str]:
        """What was not freed, of all that takes memory of the device."""
        kinds = ("buffer", "texture", "query_set")
        return [each.kind for each in self.made if each.kind in kinds and not each.freed]


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> Device:
    made = Device()
    usage = SimpleNamespace(COPY_SRC=4, COPY_DST=8)
    library = SimpleNamespace(BufferUsage=usage, GPUError=ZeroDivisionError, __version__="0.32")
    for module in (device_dispatch, device_times):
        monkeypatch.setattr(module, "device_of", lambda number: made)
    monkeypatch.setattr(device_times, "is_software", lambda number: True)
    monkeypatch.setattr(device_dispatch, "library", lambda: library)
    monkeypatch.setattr(device_clock, "tick", lambda device: 1e-9)
    device_dispatch._pipeline.cache_clear()
    device_dispatch._module.cache_clear()
    return made


def resources(*more: Any) -> list[Any]:
    rows = {"bytes_per_row": 4}
    levels = [(b"abcd", rows, (1, 1, 1)), (b"e", rows, (1, 1, 1))]
    return [
        Buffer(0, 0, "storage", b"12345678"),
        Buffer(0, 1, "read-only-storage", b"1234"),
        Buffer(2, 0, "uniform", b"1234"),
        Sampler(2, 3, "filtering", {"mag_filter": "linear"}),
        Texture(2, 5, {"texture": {}}, {"size": (1, 1, 1)}, "2d", levels, True),
        *more,
    ]


def test_a_dispatch_frees_all_that_it_creates(device: Device) -> None:
    request = DispatchRequest(0, "text", "main", (2, 3, 4), resources(), (("A", 1.0),), repeats=3)
    result = device_dispatch.dispatch(request)
    assert [None if each is None else bytes(each) for each in result.contents] == [
        *(b"12345678", None, None, None, b"texels"),
    ]
    assert (len(result.seconds), len(result.kernel_seconds)) == (3, 3)
    assert device.alive() == []
    (stamps,) = (each for each in device.made if each.kind == "query_set")
    (resolved,) = {call for call in device.log if call[0] == "resolve_query_set"}
    assert resolved[:4] == ("resolve_query_set", stamps, 0, 2)
    assert (resolved[4].how["size"], resolved[5]) == (16, 0)


def test_what_a_dispatch_creates(device: Device) -> None:
    request = DispatchRequest(0, "text", "main", (2, 3, 4), resources(), (("A", 1.0),))
    with device_dispatch.made(device, request) as ready:
        assert ready.grid == (2, 3, 4)
        buffers = [each.how for each in device.made if each.kind == "buffer"]
        assert buffers == [
            {"size": 8, "usage": "STORAGE|COPY_DST|COPY_SRC"},
            {"size": 4, "usage": "STORAGE|COPY_DST|COPY_SRC"},
            {"size": 4, "usage": "UNIFORM|COPY_DST|COPY_SRC"},
        ]
        layouts = [each.how["entries"] for each in device.made if each.kind == "bind_group_layout"]
        shown = {"visibility": "COMPUTE"}
        assert layouts == [
            [{"binding": 0, **shown, "buffer": {"type": "storage"}},
             {"binding": 1, **shown, "buffer": {"type": "read-only-storage"}}],
            [],
            [{"binding": 0, **shown, "buffer": {"type": "uniform"}},
             {"binding": 3, **shown, "sampler": {"type": "filtering"}}, {"binding": 5, **shown, "texture": {}}],
        ]  # fmt: skip
        groups = [each.how["entries"] for each in device.made if each.kind == "bind_group"]
        assert [[entry["binding"] for entry in group] for group in groups] == [[0, 1], [], [0, 3, 5]]
        bound = groups[0][0]["resource"]
        assert (bound["offset"], bound["size"]) == (0, 8)
        (pipeline,) = (each.how["compute"] for each in device.made if each.kind == "compute_pipeline")
        assert (pipeline["entry_point"], pipeline["constants"]) == ("main", {"A": 1.0})
        assert device.alive() == ["buffer", "buffer", "buffer", "texture"]
    assert device.alive() == []


def test_a_resource_that_cannot_be_created_leaves_none_of_the_others(device: Device) -> None:
    refused = SimpleNamespace(group=0, binding=9, make=lambda device: 1 // 0)
    request = DispatchRequest(0, "text", "main", (1, 1, 1), resources(refused))
    with pytest.raises(GpuError, match=r"^wgpu 0\.32 refused the shader or its dispatch: integer division"):
        device_dispatch.dispatch(request)
    assert device.alive() == []
    assert any(each.kind == "texture" for each in device.made)


@pytest.mark.parametrize("cold", [False, True])
def test_timing_frees_all_that_it_creates(device: Device, cold: bool) -> None:
    requests = [DispatchRequest(0, "text", "main", (1, 1, 1), resources()) for _ in range(2)]
    result = device_times.times(TimesRequest(requests, 2, cold, 1e-9))
    assert [len(each) for each in result.seconds] == [2 * device_times.PASSES] * 2
    assert device.alive() == []
    cleared = [each for each in device.made if each.kind == "buffer" and each.how["size"] == 256 << 20]
    assert len(cleared) == cold


def test_only_storage_buffers_are_kept_and_restored(device: Device) -> None:
    for type_ in ("storage", "read-only-storage", "uniform"):
        buffer = Buffer(0, 0, type_, b"12345678")
        buffer.make(device)
        buffer.upload()
        buffer.restore(device)  # nothing was kept
        buffer.keep(device)
        buffer.upload()
        device.log.clear()
        encoder = Made(device, "encoder", {})
        buffer.restore(encoder)
        if type_ == "storage":
            original, kept = device.made[-2:]
            assert device.log == [("copy_buffer_to_buffer", kept, 0, original, 0, 8)]
            assert kept.content == b"12345678"
            assert kept.how == {"size": 8, "usage": "COPY_DST|COPY_SRC"}
        else:
            assert device.log == []
            assert buffer.output() is None
        buffer.destroy()
        assert device.alive() == []


@pytest.mark.parametrize("written", [False, True])
def test_a_texture_is_written_level_by_level_and_its_first_level_is_read(device: Device, written: bool) -> None:
    levels = [(b"abcd", {"bytes_per_row": 8}, (2, 2, 1)), (b"e", {"bytes_per_row": 4}, (1, 1, 1))]
    texture = Texture(0, 0, {}, {"size": (2, 2, 1)}, "2d-array", levels, written)
    texture.make(device)
    texture.upload()
    texture.keep(device)
    texture.restore(None)
    assert texture.bound == ("2d-array", device.made[0])
    assert device.log == [(number, *level) for number, level in enumerate(levels)]
    device.log.clear()
    assert (texture.output() is not None) == written
    assert device.log == ([({"bytes_per_row": 8}, (2, 2, 1))] if written else [])
    texture.destroy()
    assert device.alive() == []

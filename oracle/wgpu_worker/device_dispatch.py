"""One dispatch through wgpu, in the process that has it. What wgpu refuses becomes a `GpuError` in naga's words."""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..errors import GpuError
from .device_resources import Content, Resource
from .messages import TIMESTAMPS, Done, Order
from .wgpu_library import device_of, library, modest_device, tick

_KEPT = 8  # pipelines, of those used last


def dispatch(order: Order) -> Done:
    """Raises `GpuError` where wgpu refuses."""
    start = time.perf_counter()
    device = device_of(order.adapter)
    try:
        contents, seconds, own = _dispatched(device, order)
    except library().GPUError as error:
        raise GpuError(f"wgpu {library().__version__} refused the shader or its dispatch: {_plain(error)}") from None
    return Done(contents, tuple(seconds), tuple(own), time.perf_counter() - start)


def refusal(number: int, wgsl: str, pipeline: bool, limits: tuple[tuple[str, int], ...] | None) -> str | None:
    """What wgpu has against the text of a module, as it stands; None where it takes it. `pipeline`: against that of its
    only entry point, too. `limits`: on a device that has these, and no features."""
    device = device_of(number) if limits is None else modest_device(number, limits)
    try:
        module = device.create_shader_module(code=wgsl)
        if pipeline:
            device.create_compute_pipeline(layout="auto", compute={"module": module})
    except library().GPUError as error:
        return _plain(error)
    return None


def _dispatched(device: Any, order: Order) -> tuple[list[Content | None], list[float], list[float]]:
    _module(device, order.wgsl)
    made: list[Resource] = []
    try:
        for resource in order.resources:
            resource.make(device)
            made.append(resource)
        entries = _entries(made)
        layouts = json.dumps([layout for layout, _ in entries])
        pipeline, groups = _pipeline(device, order.wgsl, order.entry, layouts, order.constants)
        bound = [
            device.create_bind_group(layout=layout, entries=entries)
            for layout, (_, entries) in zip(groups, entries, strict=True)
        ]
        clock = _Clock(device) if TIMESTAMPS in device.features else None
        seconds, own = [], []
        for _ in range(order.repeats):
            for resource in made:
                resource.upload()
            seconds.append(_run(device, pipeline, bound, order.grid, clock))
            own += [clock.seconds()] if clock else []
        return [resource.output() for resource in made], seconds, own
    finally:
        for resource in made:
            resource.destroy()


class _Clock:
    """The adapter's own: two timestamps, at the beginning and the end of a pass. Spec: WebGPU, "Timestamp Query"."""

    def __init__(self, device: Any) -> None:
        self._queue, self._tick = device.queue, tick(device)
        self._pair = device.create_query_set(type="timestamp", count=2)
        self._buffer = device.create_buffer(size=16, usage="QUERY_RESOLVE|COPY_SRC")
        self.writes = {
            "query_set": self._pair,
            "beginning_of_pass_write_index": 0,
            "end_of_pass_write_index": 1,
        }

    def resolve(self, encoder: Any) -> None:
        encoder.resolve_query_set(self._pair, 0, 2, self._buffer, 0)

    def seconds(self) -> float:
        begin, end = struct.unpack("QQ", self._queue.read_buffer(self._buffer))
        return (end - begin) * self._tick


def _entries(resources: Sequence[Resource]) -> list[tuple[list[Any], list[Any]]]:
    """Of groups 0 to the largest one used (empty ones in between), the entries of layout and of bind group."""
    entries: list[tuple[list[Any], list[Any]]] = [
        ([], []) for _ in range(max((each.group + 1 for each in resources), default=0))
    ]
    for each in resources:
        layout, bound = entries[each.group]
        layout.append({"binding": each.binding, "visibility": "COMPUTE", **each.layout})
        bound.append({"binding": each.binding, "resource": each.bound})
    return entries


@lru_cache(maxsize=_KEPT)
def _module(device: Any, wgsl: str) -> Any:
    return device.create_shader_module(code=wgsl)


@lru_cache(maxsize=_KEPT)
def _pipeline(
    device: Any, wgsl: str, entry: str | None, layouts: str, constants: tuple[tuple[str, float], ...]
) -> tuple[Any, list[Any]]:
    """A pipeline, and the layouts of its groups, of which `layouts` is the JSON: so that they can be looked up."""
    groups = [device.create_bind_group_layout(entries=entries) for entries in json.loads(layouts)]
    stage = {"module": _module(device, wgsl), "entry_point": entry, "constants": dict(constants)}
    layout = device.create_pipeline_layout(bind_group_layouts=groups)
    return device.create_compute_pipeline(layout=layout, compute=stage), groups


def _run(device: Any, pipeline: Any, groups: list[Any], grid: Sequence[int], clock: _Clock | None) -> float:
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass(timestamp_writes=clock.writes if clock else None)
    compute.set_pipeline(pipeline)
    for index, group in enumerate(groups):
        compute.set_bind_group(index, group)
    compute.dispatch_workgroups(*grid)
    compute.end()
    if clock:
        clock.resolve(encoder)
    commands = encoder.finish()
    _wait(device)  # the uploads are not part of the time
    start = time.perf_counter()
    device.queue.submit([commands])
    _wait(device)
    return time.perf_counter() - start


def _wait(device: Any) -> None:
    """Until the queue is empty. Reading four bytes back does it; wgpu-py 0.32's own call for this raises TypeError."""
    usage = library().BufferUsage
    marker = device.create_buffer(size=4, usage=usage.COPY_SRC | usage.COPY_DST)
    device.queue.read_buffer(marker)
    marker.destroy()


def _plain(error: Exception) -> str:
    """A wgpu error without its preamble about which of wgpu's own functions noticed."""
    lines = [line for line in str(error).splitlines() if line.strip() not in ("Validation Error", "Caused by:", "")]
    return "\n".join(line for line in lines if not re.match(r"\s*In wgpu\w+", line)).strip()

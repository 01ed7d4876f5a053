"""One dispatch through wgpu, in the worker process. If wgpu refuses it, `GpuError` carries naga's message."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ...sim.fast_dataclass import frozen
from ..errors import GpuError
from .device_clock import Clock
from .device_resources import Content, Resource
from .messages import TIMESTAMPS, DispatchRequest, DispatchResult
from .wgpu_library import device_of, library, limited_device

_KEPT = 8  # the pipelines that stay cached


@frozen
class Made:
    """A dispatch whose pipeline and resources exist on a device."""

    pipeline: Any
    groups: Sequence[Any]  # bind groups
    grid: tuple[int, ...]
    resources: Sequence[Resource]

    def encode(self, encoder: Any, timestamps: dict[str, Any] | None = None) -> None:
        """Add a compute pass with this dispatch alone. `timestamps`: what the pass writes, see `Clock`."""
        compute = encoder.begin_compute_pass(timestamp_writes=timestamps)
        compute.set_pipeline(self.pipeline)
        for index, group in enumerate(self.groups):
            compute.set_bind_group(index, group)
        compute.dispatch_workgroups(*self.grid)
        compute.end()


def dispatch(request: DispatchRequest) -> DispatchResult:
    """Run a dispatch. Raises `GpuError` if wgpu refuses it."""
    start = time.perf_counter()
    device = device_of(request.adapter)
    with refusals(), made(device, request) as ready:
        contents, seconds, kernel_seconds = _dispatched(device, ready, request.repeats)
    return DispatchResult(contents, tuple(seconds), tuple(kernel_seconds), time.perf_counter() - start)


@contextmanager
def refusals() -> Generator[None]:
    """Raise wgpu's errors as `GpuError`."""
    try:
        yield
    except library().GPUError as error:
        raise GpuError(f"wgpu {library().__version__} refused the shader or its dispatch: {_plain(error)}") from None


@contextmanager
def made(device: Any, request: DispatchRequest) -> Generator[Made]:
    """Make the pipeline and the resources of a dispatch, and destroy the resources at the end."""
    resources: list[Resource] = []
    try:
        for resource in request.resources:
            resource.make(device)
            resources.append(resource)
        entries = _entries(resources)
        layouts = json.dumps([layout for layout, _ in entries])
        pipeline, groups = _pipeline(device, request.wgsl, request.entry, layouts, request.constants)
        bound = [
            device.create_bind_group(layout=layout, entries=entries)
            for layout, (_, entries) in zip(groups, entries, strict=True)
        ]
        yield Made(pipeline, bound, request.grid, resources)
    finally:
        for resource in resources:
            resource.destroy()


def refusal(number: int, wgsl: str, pipeline: bool, limits: tuple[tuple[str, int], ...] | None) -> str | None:
    """Return wgpu's error for the text of a module, None if wgpu accepts it.

    With `pipeline`, also create the pipeline of its only entry point. With `limits`, use a device that has these limits
    and no features.
    """
    device = device_of(number) if limits is None else limited_device(number, limits)
    try:
        module = device.create_shader_module(code=wgsl)
        if pipeline:
            device.create_compute_pipeline(layout="auto", compute={"module": module})
    except library().GPUError as error:
        return _plain(error)
    return None


def _dispatched(device: Any, ready: Made, repeats: int) -> tuple[list[Content | None], list[float], list[float]]:
    """Return the contents of the resources afterwards, and the times that `DispatchResult` has."""
    clock = Clock(device, 1) if TIMESTAMPS in device.features else None
    seconds: list[float] = []
    kernel_seconds: list[float] = []
    try:
        for _ in range(repeats):
            for resource in ready.resources:
                resource.upload()
            seconds.append(_run(device, ready, clock))
            kernel_seconds += clock.seconds() if clock else []
    finally:
        if clock:
            clock.destroy()
    return [resource.output() for resource in ready.resources], seconds, kernel_seconds


def _entries(resources: Sequence[Resource]) -> list[tuple[list[Any], list[Any]]]:
    """Return the entries of the layout and of the bind group, for each group from 0 to the largest one used."""
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
    """Create a pipeline and the layouts of its bind groups. `layouts` is JSON, which the cache can hash."""
    groups = [device.create_bind_group_layout(entries=entries) for entries in json.loads(layouts)]
    stage = {"module": _module(device, wgsl), "entry_point": entry, "constants": dict(constants)}
    layout = device.create_pipeline_layout(bind_group_layouts=groups)
    return device.create_compute_pipeline(layout=layout, compute=stage), groups


def _run(device: Any, ready: Made, clock: Clock | None) -> float:
    encoder = device.create_command_encoder()
    ready.encode(encoder, clock.writes(0) if clock else None)
    if clock:
        clock.resolve(encoder)
    commands = encoder.finish()
    wait(device)  # uploads do not count
    start = time.perf_counter()
    device.queue.submit([commands])
    wait(device)
    return time.perf_counter() - start


def wait(device: Any) -> None:
    """Wait until the queue is empty, by reading four bytes back: in wgpu-py 0.32 the call for this raises TypeError."""
    usage = library().BufferUsage
    marker = device.create_buffer(size=4, usage=usage.COPY_SRC | usage.COPY_DST)
    device.queue.read_buffer(marker)
    marker.destroy()


def _plain(error: Exception) -> str:
    """Return the message of a wgpu error, without the lines that name functions inside wgpu."""
    lines = [line for line in str(error).splitlines() if line.strip() not in ("Validation Error", "Caused by:", "")]
    return "\n".join(line for line in lines if not re.match(r"\s*In wgpu\w+", line)).strip()

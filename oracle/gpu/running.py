"""The same WGSL on a real WebGPU implementation: `run` takes text, an entry point, a grid and the contents of the
bindings, and gives back what the bindings hold afterwards. Whatever wgpu refuses becomes a `GpuError` in naga's words.
"""

from __future__ import annotations

import json
import re
import struct
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from threading import RLock, Thread
from typing import Any

from sim.models import DEFAULT_LIMITS, check_dispatch
from sim.wgsl import types as t
from sim.wgsl.diagnostics import WgslError
from sim.wgsl.pipeline import GRANTED
from sim.wgsl.portability import FATAL, notes
from sim.wgsl.records import frozen
from sim.wgsl.typed import Module, Pipeline

from ..directives import without_directives
from ..errors import GpuError, Lacking, TooLarge, UsageError
from ..kernels.reflect import entry_point
from .library import TIMESTAMPS, AdapterInfo, dashed, device_of, library, modest_device, parse_adapters, tick
from .resources import Data, Resource, Slot, make

Key = str | tuple[int, int]

# What a device has to have for what a shader enables.
NEEDS = {"f16": "shader-f16", "subgroups": "subgroup"}

_TURN = RLock()  # one thread compiles and dispatches at a time
_KEPT = 8  # pipelines, of those used last


@frozen
class GpuRun:
    """`outputs` has the keys, dtypes and shapes of the bindings that the shader can write, as they went in.

    `seconds` are the times from submission to completion, one per repetition; `kernel_seconds` those of the dispatch
    alone, by the adapter's own clock, where it has one.
    """

    outputs: dict[Any, Any]
    adapter: AdapterInfo
    seconds: tuple[float, ...]
    kernel_seconds: tuple[float, ...] = ()

    @property
    def clocked(self) -> dict[str, float]:
        """The shortest dispatch, in words and seconds; nothing where the adapter has no clock."""
        return {f"kernel on {self.adapter.name}": min(self.kernel_seconds)} if self.kernel_seconds else {}


def run(
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    bindings: Mapping[Any, Data],
    *,
    slots: Sequence[Slot] | None = None,
    overrides: Mapping[str, Any] | None = None,
    adapter: str | None = None,
    repeats: int = 1,
    module: Module | None = None,
) -> GpuRun:
    """Dispatch `grid` workgroups of `entry`, `repeats` times over, each time on fresh contents of the bindings.

    `slots` are the shader's declarations, `module` the checked text; what is left out, the simulator's front end makes.
    Raises `GpuError` where wgpu refuses, `Lacking` where the adapter lacks what the shader enables, `TooLarge` where a
    binding or workgroup is, `NoAdapter` where there is nothing to run on, `UsageError` on data that does not fit.
    """
    if slots is None:
        slots = read_slots(wgsl, entry) if module is None else slots_of(entry_point(module, entry))
    contents = _match(slots, bindings)
    with _TURN:
        info, device = device_of(adapter)
        wgpu = library()
        _refuse(wgsl, module, info, device)
        if module is not None:
            with suppress(WgslError):  # wgpu has its own words for it
                fixed: dict[str | int, Any] = {**overrides} if overrides else {}
                _refuse_size(module.pipeline(entry, fixed, GRANTED), grid, info, device)
        try:
            return _run(device, info, for_wgpu(wgsl), entry, grid, contents, overrides, repeats)
        except wgpu.GPUError as error:
            raise GpuError(f"wgpu {info.wgpu} refused the shader or its dispatch: {_plain(str(error))}") from None


def prepare(module: Module, entry: str, *, overrides: Mapping[str, Any] | None, adapter: str | None) -> Thread:
    """Have devices made, and drivers compile, while the caller does other things. `adapter`: see `parse_adapters`. Who
    calls `run` waits for it, and is told what is wrong; here nobody is."""

    def work() -> None:
        slots = slots_of(entry_point(module, entry))
        with suppress(Exception):
            for name in parse_adapters(adapter):
                device_of(name)
                if all(slot.kind != "handle" for slot in slots):  # drivers compile at a dispatch, of no workgroups too
                    least = {slot.name: bytes(_least(slot)) for slot in slots}
                    options = {"slots": slots, "overrides": overrides, "adapter": name, "module": module}
                    run(module.source.text, entry, (0, 0, 0), least, **options)

    thread = Thread(target=work, name="bankshot-prepare")
    thread.start()
    return thread


def _least(slot: Slot) -> int:
    """Bytes that a buffer has at least."""
    assert slot.variable is not None
    return t.round_up(4, t.min_binding_size(slot.variable.type))


def refusal(
    wgsl: str, adapter: str | None = None, *, pipeline: bool = False, default_limits: bool = False
) -> str | None:
    """What wgpu has against the text of a module, as it stands; None where it takes it. Raises `NoAdapter`.

    `pipeline`: against that of its only entry point, too. `default_limits`: on a device that was asked for nothing,
    neither features nor limits.
    """
    device = modest_device(adapter) if default_limits else device_of(adapter)[1]
    try:
        module = device.create_shader_module(code=wgsl)
        if pipeline:
            device.create_compute_pipeline(layout="auto", compute={"module": module})
    except library().GPUError as error:
        return _plain(str(error))
    return None


def read_slots(wgsl: str, entry: str | None) -> list[Slot]:
    """The bindings that entry point `entry` (None: the only one) uses, as the simulator's front end sees them."""
    import sim

    return slots_of(entry_point(sim.check(wgsl), entry))


def slots_of(function: Any) -> list[Slot]:
    """The bindings of a checked entry point (`sim.wgsl.typed.Function`)."""
    return [
        Slot(v.name, *v.binding, kind=_kind(v.space, v.access), variable=v)
        for v in function.globals
        if v.binding is not None
    ]


def _kind(space: str | None, access: str | None) -> str:
    if space == "storage":
        return "storage-read" if access == "read" else "storage-write"
    return space or "uniform"


def for_wgpu(wgsl: str) -> str:
    """The text without the directives that this wgpu refuses although it offers what they name; lines stay in place."""
    return without_directives(wgsl, lambda kind, name: not _takes(f"{kind} {name};"))


@cache
def _takes(wgsl: str) -> bool:
    try:
        device_of(None)[1].create_shader_module(code=wgsl)
    except library().GPUError:
        return False
    return True


def _refuse(wgsl: str, module: Module | None, info: AdapterInfo, device: Any) -> None:
    """What the adapter cannot run is not tried; nor is what wgpu would abort the whole process on."""
    import sim

    try:
        module = module or sim.check(wgsl, uniformity="off")
        fatal = notes(module, DEFAULT_LIMITS, FATAL)
    except sim.WgslError:
        return  # wgpu has its own words for it
    for enabled in sorted(module.enables & NEEDS.keys()):
        if NEEDS[enabled] not in device.features:
            raise Lacking(f"the shader enables {enabled}, and {info.name} has no {NEEDS[enabled]}")
    for note in fatal:
        raise GpuError(f"wgpu {info.wgpu} would not survive this shader:\n{note.render()}")


def _refuse_size(pipeline: Pipeline, grid: Sequence[int], info: AdapterInfo, device: Any) -> None:
    """Nor is a workgroup larger than the adapter has them."""
    limits = {name: device.limits.get(dashed(name), least) for name, least in DEFAULT_LIMITS.items()}
    for beyond in check_dispatch(grid, pipeline.workgroup_size, pipeline.workgroup_bytes, limits=limits):
        raise TooLarge(f"{beyond} on {info.name}")


def _match(slots: Sequence[Slot], bindings: Mapping[Any, Data]) -> list[tuple[Slot, Key, Data]]:
    """Each slot with the key it was given under, and its data."""
    found = []
    for slot in slots:
        key = next((k for k in (slot.name, slot.key) if k in bindings), None)
        if key is None:
            raise UsageError(f"binding {slot.name} (group {slot.group}, binding {slot.binding}) is not given")
        found.append((slot, key, bindings[key]))
    return found


# ---- wgpu --------------------------------------------------------------------------------------------


def _run(
    device: Any,
    info: AdapterInfo,
    wgsl: str,
    entry: str | None,
    grid: Sequence[int],
    contents: list[tuple[Slot, Key, Data]],
    overrides: Mapping[str, Any] | None,
    repeats: int,
) -> GpuRun:
    _module(device, wgsl)
    resources: list[Resource] = []
    try:
        for slot, _, data in contents:
            resources.append(make(device, slot, data))
        entries = _entries([slot for slot, _, _ in contents], resources)
        constants = tuple((str(name), float(value)) for name, value in (overrides or {}).items())
        pipeline, layouts = _pipeline(device, wgsl, entry, json.dumps([layout for layout, _ in entries]), constants)
        groups = [
            device.create_bind_group(layout=layout, entries=bound)
            for layout, (_, bound) in zip(layouts, entries, strict=True)
        ]
        clock = _Clock(device) if TIMESTAMPS in device.features else None
        seconds, own = [], []
        for _ in range(repeats):
            for resource in resources:
                resource.upload()
            seconds.append(_dispatch(device, pipeline, groups, grid, clock))
            own += [clock.seconds()] if clock else []
        outputs = {key: each.output() for each, (_, key, _) in zip(resources, contents, strict=True)}
    finally:
        for resource in resources:
            resource.destroy()
    written = {key: data for key, data in outputs.items() if data is not None}
    return GpuRun(written, info, tuple(seconds), tuple(own))


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


def _entries(slots: list[Slot], resources: list[Resource]) -> list[tuple[list[Any], list[Any]]]:
    """Of groups 0 to the largest one used (empty ones in between), the entries of layout and of bind group."""
    entries: list[tuple[list[Any], list[Any]]] = [([], []) for _ in range(max((s.group + 1 for s in slots), default=0))]
    for slot, each in zip(slots, resources, strict=True):
        layout, bound = entries[slot.group]
        layout.append({"binding": slot.binding, "visibility": "COMPUTE", **each.layout})
        bound.append({"binding": slot.binding, "resource": each.bound})
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


def _dispatch(device: Any, pipeline: Any, groups: list[Any], grid: Sequence[int], clock: _Clock | None) -> float:
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


def _plain(message: str) -> str:
    """A wgpu error without its preamble about which of wgpu's own functions noticed."""
    lines = [line for line in message.splitlines() if line.strip() not in ("Validation Error", "Caused by:", "")]
    return "\n".join(line for line in lines if not re.match(r"\s*In wgpu\w+", line)).strip()

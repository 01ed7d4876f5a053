"""The same WGSL on a real WebGPU implementation. This is the only module that imports wgpu, and it does so late.

`run` takes WGSL text, an entry point, a grid and the contents of the bindings, and gives back what the bindings hold
afterwards, with the name and version of what ran it. Whatever wgpu refuses becomes a `GpuError` in naga's words.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from sim.models.limits import DEFAULT_LIMITS
from sim.wgsl.portability import FATAL

from .directives import without_directives
from .errors import GpuError, NoAdapter, UsageError
from .gpu_resources import Data, Resource, Slot, make
from .kernels.reflect import entry_point

Key = str | tuple[int, int]

HOW_TO_INSTALL = "on Debian and Ubuntu: apt-get install mesa-vulkan-drivers libvulkan1"

# What a kernel may ask of a device; limits are requested as large as the adapter has them.
FEATURES = (
    *("shader-f16", "subgroup", "subgroup-barrier"),
    *(
        "float32-filterable",
        "bgra8unorm-storage",
        "texture-format16bit-norm",
        "texture-adapter-specific-format-features",
    ),
)

# The device profile whose rounding is that of an adapter, by a part of the adapter's name.
PROFILES = {"llvmpipe": "lavapipe", "nvidia": "nvidia", "geforce": "nvidia", "tesla": "nvidia"}

# A hardware adapter comes before a software one, whichever the driver lists first.
KIND_ORDER = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU", "Unknown")


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """One adapter, in its driver's words. `profile` names the simulator's device that rounds as it does, if known."""

    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, VirtualGPU, CPU, Unknown
    backend: str  # Vulkan, Metal, D3D12
    driver: str
    version: str
    wgpu: str  # version of wgpu-py

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, {self.backend}), driver {self.driver} {self.version}, wgpu {self.wgpu}"

    @property
    def profile(self) -> str | None:
        name = f"{self.name} {self.driver}".lower()
        return next((profile for part, profile in PROFILES.items() if part in name), None)

    def matches(self, wanted: str) -> bool:
        """Whether `wanted` (any case) is part of the name, kind, backend or driver, or is the profile's name."""
        facts = (self.name, self.kind, self.backend, self.driver, self.profile or "")
        return any(wanted.lower() in fact.lower() for fact in facts)


@dataclass(frozen=True, slots=True)
class GpuRun:
    """`outputs` has the keys, dtypes and shapes of the bindings that the shader can write, as they went in.

    `seconds` are the times from submission to completion, one per repetition.
    """

    outputs: dict[Any, Any]
    adapter: AdapterInfo
    seconds: tuple[float, ...]


def adapters() -> list[AdapterInfo]:
    """Every adapter of this machine, hardware first. Empty where there is none, or where wgpu is not installed."""
    try:
        return [info for info, _ in _adapters()]
    except NoAdapter:
        return []


def require_adapter(wanted: str | None = None) -> AdapterInfo:
    """The first adapter (or the first that matches `wanted`). Raises `NoAdapter`, with what to install."""
    return _choose(wanted)[0]


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
) -> GpuRun:
    """Dispatch `grid` workgroups of `entry`, `repeats` times over, each time on fresh contents of the bindings.

    `slots` are the shader's declarations; left out, the simulator's front end reads them from the text.
    Raises `GpuError` where wgpu refuses, `TooLarge` where a binding is, `NoAdapter` where there is nothing to run on,
    `UsageError` on data that does not fit the slots.
    """
    slots = read_slots(wgsl, entry) if slots is None else slots
    contents = _match(slots, bindings)
    info, device = _device(adapter)
    wgpu = _wgpu()
    _refuse_fatal(wgsl, info.wgpu)
    try:
        return _run(device, info, for_wgpu(wgsl), entry, grid, contents, overrides, repeats)
    except wgpu.GPUError as error:
        raise GpuError(f"wgpu {info.wgpu} refused the shader or its dispatch: {_plain(str(error))}") from None


def refusal(
    wgsl: str, adapter: str | None = None, *, pipeline: bool = False, default_limits: bool = False
) -> str | None:
    """What wgpu has against the text of a module, as it stands; None where it takes it. Raises `NoAdapter`.

    `pipeline`: against that of its only entry point, too. `default_limits`: on a device that was asked for nothing,
    neither features nor limits.
    """
    device = _modest_device(adapter) if default_limits else _device(adapter)[1]
    try:
        module = device.create_shader_module(code=wgsl)
        if pipeline:
            device.create_compute_pipeline(layout="auto", compute={"module": module})
    except _wgpu().GPUError as error:
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
        _device(None)[1].create_shader_module(code=wgsl)
    except _wgpu().GPUError:
        return False
    return True


def _refuse_fatal(wgsl: str, version: str) -> None:
    """What wgpu would abort the whole process on, and everything with it, it is not given."""
    import sim

    try:
        notes = sim.portability(sim.check(wgsl, uniformity="off"))
    except sim.WgslError:
        return  # wgpu has its own words for it
    for note in notes:
        if note.code in FATAL:
            raise GpuError(f"wgpu {version} would not survive this shader:\n{note.render()}")


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


@cache
def _wgpu() -> Any:
    # Mesa's window system code complains on stderr where this is not set, although nobody asked for a window.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    try:
        import wgpu
        from wgpu.backends.wgpu_native import extras
    except (ImportError, OSError, RuntimeError) as error:
        raise NoAdapter(f"wgpu cannot be imported ({error}); install it with: pip install 'bankshot[gpu]'") from None
    # OpenGL would show every adapter a second time, with fewer features.
    extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])
    return wgpu


@cache
def _adapters() -> list[tuple[AdapterInfo, Any]]:
    wgpu = _wgpu()
    found = [(_info(a.info, wgpu.__version__), a) for a in wgpu.gpu.enumerate_adapters_sync()]
    return sorted(found, key=lambda pair: KIND_ORDER.index(pair[0].kind))


def _info(info: Mapping[str, Any], version: str) -> AdapterInfo:
    kind = info["adapter_type"] if info["adapter_type"] in KIND_ORDER else "Unknown"
    return AdapterInfo(info["device"], kind, info["backend_type"], info["vendor"], info["description"], version)


def _choose(wanted: str | None) -> tuple[AdapterInfo, Any]:
    found = _adapters()
    if not found:
        raise NoAdapter(f"wgpu finds no adapter; {HOW_TO_INSTALL}")
    fitting = [pair for pair in found if wanted is None or pair[0].matches(wanted)]
    if not fitting:
        raise NoAdapter(f"no adapter matches {wanted!r}; there are: {'; '.join(str(info) for info, _ in found)}")
    return fitting[0]


@cache
def _device(wanted: str | None) -> tuple[AdapterInfo, Any]:
    info, adapter = _choose(wanted)
    features = [name for name in FEATURES if name in adapter.features]
    return info, adapter.request_device_sync(required_features=features, required_limits=adapter.limits)


@cache
def _modest_device(wanted: str | None) -> Any:
    """A device with no features and WebGPU's default limits."""
    adapter = _choose(wanted)[1]
    limits = {re.sub("[A-Z]", lambda c: f"-{c[0].lower()}", name): most for name, most in DEFAULT_LIMITS.items()}
    return adapter.request_device_sync(required_limits={n: most for n, most in limits.items() if n in adapter.limits})


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
    module = device.create_shader_module(code=wgsl)
    resources: list[Resource] = []
    try:
        for slot, _, data in contents:
            resources.append(make(device, slot, data))
        groups, layout = _bind(device, [slot for slot, _, _ in contents], resources)
        constants = {str(name): float(value) for name, value in (overrides or {}).items()}
        stage = {"module": module, "entry_point": entry, "constants": constants}
        pipeline = device.create_compute_pipeline(layout=layout, compute=stage)
        seconds = []
        for _ in range(repeats):
            for resource in resources:
                resource.upload()
            seconds.append(_dispatch(device, pipeline, groups, grid))
        outputs = {key: each.output() for each, (_, key, _) in zip(resources, contents, strict=True)}
    finally:
        for resource in resources:
            resource.destroy()
    return GpuRun({key: data for key, data in outputs.items() if data is not None}, info, tuple(seconds))


def _bind(device: Any, slots: list[Slot], resources: list[Resource]) -> tuple[list[Any], Any]:
    """Bind groups 0 to the largest one used (empty ones in between), and the pipeline layout."""
    layouts, groups = [], []
    for group in range(max((slot.group for slot in slots), default=-1) + 1):
        here = [(slot, each) for slot, each in zip(slots, resources, strict=True) if slot.group == group]
        entries = [{"binding": s.binding, "visibility": "COMPUTE", **each.layout} for s, each in here]
        layouts.append(device.create_bind_group_layout(entries=entries))
        bound = [{"binding": s.binding, "resource": each.bound} for s, each in here]
        groups.append(device.create_bind_group(layout=layouts[-1], entries=bound))
    return groups, device.create_pipeline_layout(bind_group_layouts=layouts)


def _dispatch(device: Any, pipeline: Any, groups: list[Any], grid: Sequence[int]) -> float:
    encoder = device.create_command_encoder()
    compute = encoder.begin_compute_pass()
    compute.set_pipeline(pipeline)
    for index, group in enumerate(groups):
        compute.set_bind_group(index, group)
    compute.dispatch_workgroups(*grid)
    compute.end()
    commands = encoder.finish()
    _wait(device)  # the uploads are not part of the time
    start = time.perf_counter()
    device.queue.submit([commands])
    _wait(device)
    return time.perf_counter() - start


def _wait(device: Any) -> None:
    """Until the queue is empty. Reading four bytes back does it; wgpu-py 0.32's own call for this raises TypeError."""
    usage = _wgpu().BufferUsage
    marker = device.create_buffer(size=4, usage=usage.COPY_SRC | usage.COPY_DST)
    device.queue.read_buffer(marker)
    marker.destroy()


def _plain(message: str) -> str:
    """A wgpu error without its preamble about which of wgpu's own functions noticed."""
    lines = [line for line in message.splitlines() if line.strip() not in ("Validation Error", "Caused by:", "")]
    return "\n".join(line for line in lines if not re.match(r"\s*In wgpu\w+", line)).strip()

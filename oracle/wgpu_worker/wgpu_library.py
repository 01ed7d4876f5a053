"""wgpu itself: the adapters that it finds, and devices of them. Only this imports it, and does so late."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import NoAdapter
from . import vulkan_drivers
from .messages import TIMESTAMPS, Abilities, AdapterInfo, Offer
from .wgpu_declarations import read_once

OLDEST = (0, 31)  # of wgpu: those before crash, or lack what timestamps need
_INSTALL = "install it with: pip install 'bankshot[gpu]'"

# What a kernel may ask of a device, beside what tells how long it takes; limits are as large as the adapter has them.
FEATURES = (
    *("shader-f16", "subgroup", "subgroup-barrier"),
    *(
        "float32-filterable",
        "bgra8unorm-storage",
        "texture-format16bit-norm",
        "texture-adapter-specific-format-features",
    ),
)

# A hardware adapter comes before a software one, whichever the driver lists first.
KIND_ORDER = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU", "Unknown")


def offers() -> list[Offer]:
    """What every adapter of this machine has, hardware first: in this order they are numbered. Empty where there is
    none. Raises `NoAdapter` where wgpu is not installed."""
    return [_offer(info, adapter) for info, adapter in _adapters()]


def _offer(info: AdapterInfo, adapter: Any) -> Offer:
    sizes = (adapter.info["stackgroup_min_size"], adapter.info["stackgroup_max_size"])  # as wgpu-py spells it
    return Offer(info, tuple(_features(adapter)), sizes, dict(adapter.limits))


@cache
def library() -> Any:
    """The module wgpu. Raises `NoAdapter` where there is none."""
    # Mesa's window system code complains on stderr where this is not set, although nobody asked for a window.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    vulkan_drivers.offer()
    try:
        with read_once():
            import wgpu
            from wgpu.backends.wgpu_native import extras
    except (ImportError, OSError, RuntimeError) as error:
        raise NoAdapter(f"wgpu cannot be imported ({error}); {_INSTALL}") from None
    if wgpu.version_info < OLDEST:
        raise NoAdapter(f"wgpu {wgpu.__version__} is too old, {'.'.join(map(str, OLDEST))} is needed; {_INSTALL}")
    # OpenGL would show every adapter a second time, with fewer features.
    extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])
    return wgpu


def tick(device: Any) -> float:
    """Seconds from one number of a device's timestamps to the next."""
    from wgpu.backends import wgpu_native

    lib: Any = wgpu_native.lib  # wgpu-py has no name of its own for this
    return lib.wgpuQueueGetTimestampPeriod(device.queue._internal) * 1e-9


@cache
def _adapters() -> list[tuple[AdapterInfo, Any]]:
    """Of one kind, those first that have the most of what kernels may ask for."""
    wgpu = library()
    found = [(_info(a.info, wgpu.__version__), a) for a in wgpu.gpu.enumerate_adapters_sync()]
    return sorted(found, key=lambda pair: (KIND_ORDER.index(pair[0].kind), -len(_features(pair[1]))))


def _info(info: Mapping[str, Any], version: str) -> AdapterInfo:
    kind = info["adapter_type"] if info["adapter_type"] in KIND_ORDER else "Unknown"
    return AdapterInfo(info["device"], kind, info["backend_type"], info["vendor"], info["description"], version)


def _features(adapter: Any) -> list[str]:
    return [name for name in (*FEATURES, TIMESTAMPS) if name in adapter.features]


@cache
def device_of(number: int) -> Any:
    """A device of that adapter, with all of its features and limits that kernels may ask for."""
    adapter = _adapters()[number][1]
    return adapter.request_device_sync(required_features=_features(adapter), required_limits=adapter.limits)


def abilities(number: int) -> Abilities:
    """What the device of that adapter has."""
    device = device_of(number)
    return Abilities(frozenset(device.features), dict(device.limits))


def modest_device(number: int, limits: tuple[tuple[str, int], ...]) -> Any:
    """A device with no features and these limits, of those that wgpu knows."""
    adapter = _adapters()[number][1]
    return _modest(adapter, tuple((name, most) for name, most in limits if name in adapter.limits))


@cache
def _modest(adapter: Any, limits: tuple[tuple[str, int], ...]) -> Any:
    return adapter.request_device_sync(required_limits=dict(limits))

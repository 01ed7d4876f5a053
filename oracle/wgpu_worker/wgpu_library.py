"""The adapters that wgpu finds, and their devices. No other module imports wgpu, and this one does so lazily."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..errors import NoAdapter, printable
from . import vulkan_drivers
from .messages import TIMESTAMPS, Abilities, AdapterInfo, Offer
from .wgpu_declarations import read_once

OLDEST = (0, 31)  # earlier versions of wgpu crash, or lack the call that timestamps need
_INSTALL = "install it with: pip install 'bankshot[gpu]'"

# The features that kernels can use. `TIMESTAMPS` is requested as well, and every limit at the adapter's maximum.
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
    """Describe every adapter of this machine, hardware first; an adapter's number is its index here.

    Raises `NoAdapter` if wgpu is not installed.
    """
    return [_offer(info, adapter) for info, adapter in _adapters()]


def _offer(info: AdapterInfo, adapter: Any) -> Offer:
    sizes = _subgroup_size(adapter.info, "min"), _subgroup_size(adapter.info, "max")
    return Offer(info, tuple(_features(adapter)), sizes, dict(adapter.limits))


def _subgroup_size(info: Mapping[str, Any], end: str) -> int:
    """Return the "min" or "max" size as WebGPU names it, or as wgpu-py 0.31 misspells it; 0 if unknown."""
    return int(info.get(f"subgroup_{end}_size", info.get(f"stackgroup_{end}_size", 0)))


@cache
def library() -> Any:
    """Import and return the module wgpu. Raises `NoAdapter` if it is missing or too old."""
    # If this is not set, Mesa's window system code complains on stderr, although there is no window.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    vulkan_drivers.offer()
    try:
        with read_once():
            import wgpu as untyped  # pyright: ignore[reportMissingTypeStubs]
            from wgpu.backends.wgpu_native import extras as untyped_extras  # pyright: ignore[reportMissingTypeStubs]
    except (ImportError, OSError, RuntimeError) as error:
        raise NoAdapter(f"wgpu cannot be imported ({error}); {_INSTALL}") from None
    wgpu: Any = untyped
    extras: Any = untyped_extras
    if wgpu.version_info < OLDEST:
        raise NoAdapter(f"wgpu {wgpu.__version__} is too old, {'.'.join(map(str, OLDEST))} is needed; {_INSTALL}")
    # OpenGL would list every adapter a second time, with fewer features.
    extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])
    return wgpu


def tick(device: Any) -> float:
    """Return the unit of a device's timestamps, in seconds."""
    from wgpu.backends import wgpu_native  # pyright: ignore[reportMissingTypeStubs]

    untyped: Any = wgpu_native  # wgpu-py does not wrap this call
    return untyped.lib.wgpuQueueGetTimestampPeriod(device.queue._internal) * 1e-9


@cache
def _adapters() -> list[tuple[AdapterInfo, Any]]:
    """Return every adapter, by kind; within a kind, those with the most features come first."""
    wgpu = library()
    found = [(_info(a.info, wgpu.__version__), a) for a in wgpu.gpu.enumerate_adapters_sync()]
    return sorted(found, key=lambda pair: (KIND_ORDER.index(pair[0].kind), -len(_features(pair[1]))))


def _info(info: Mapping[str, Any], version: str) -> AdapterInfo:
    kind = info["adapter_type"] if info["adapter_type"] in KIND_ORDER else "Unknown"
    words = (printable(info[name]) for name in ("device", "backend_type", "vendor", "description"))
    device, backend, driver, about = words
    return AdapterInfo(device, kind, backend, driver, about, version)


def _features(adapter: Any) -> list[str]:
    return [name for name in (*FEATURES, TIMESTAMPS) if name in adapter.features]


@cache
def device_of(number: int) -> Any:
    """Return a device of an adapter, with all of its features that kernels can use and its largest limits."""
    adapter = _adapters()[number][1]
    return adapter.request_device_sync(required_features=_features(adapter), required_limits=adapter.limits)


def is_software(number: int) -> bool:
    """Whether an adapter is a program on a processor."""
    return _adapters()[number][0].kind == "CPU"


def abilities(number: int) -> Abilities:
    """Return the features and limits of an adapter's device."""
    device = device_of(number)
    return Abilities(frozenset(device.features), dict(device.limits))


def limited_device(number: int, limits: tuple[tuple[str, int], ...]) -> Any:
    """Return a device without features and with those of these limits that wgpu knows."""
    adapter = _adapters()[number][1]
    return _limited(adapter, tuple((name, most) for name, most in limits if name in adapter.limits))


@cache
def _limited(adapter: Any, limits: tuple[tuple[str, int], ...]) -> Any:
    return adapter.request_device_sync(required_limits=dict(limits))

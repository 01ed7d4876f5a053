"""wgpu itself: the adapters that it finds, chosen by name or kind, and devices. Only this imports it, and does so late.

An adapter is asked for by a part of its name, kind, backend or driver, or by the device profile that rounds as it does;
several with commas between, and `all` for every one.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Mapping
from functools import cache, wraps
from threading import RLock
from typing import Any

from sim.models.limits import DEFAULT_LIMITS
from sim.wgsl.records import frozen

from ..errors import NoAdapter, UsageError
from . import drivers
from .declarations import read_once

HOW_TO_INSTALL = "on Debian and Ubuntu: apt-get install mesa-vulkan-drivers libvulkan1"

HINTS = {"swiftshader": drivers.HOW_TO_INSTALL, "lavapipe": HOW_TO_INSTALL, "llvmpipe": HOW_TO_INSTALL}

OLDEST = (0, 31)  # of wgpu: those before crash, or lack what timestamps need
_INSTALL = "install it with: pip install 'bankshot[gpu]'"

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
TIMESTAMPS = "timestamp-query"  # ours: how long a kernel takes

# The device profile whose rounding is that of an adapter, by a part of the adapter's name.
PROFILES = {
    "llvmpipe": "lavapipe",
    "swiftshader": "swiftshader",
    "nvidia": "nvidia",
    "geforce": "nvidia",
    "tesla": "nvidia",
}
FALLBACK = "lavapipe"  # the profile for adapters whose rounding nobody has measured

# A hardware adapter comes before a software one, whichever the driver lists first.
KIND_ORDER = ("DiscreteGPU", "IntegratedGPU", "VirtualGPU", "CPU", "Unknown")


@frozen
class AdapterInfo:
    """One adapter, in its driver's words. `profile` names the simulator's device that rounds as it does, if known."""

    name: str
    kind: str  # DiscreteGPU, IntegratedGPU, VirtualGPU, CPU, Unknown
    backend: str  # Vulkan, Metal, D3D12
    driver: str
    version: str  # empty where the driver tells none
    wgpu: str  # version of wgpu-py

    def __str__(self) -> str:
        driver = f"{self.driver} {self.version or '(tells no version)'}"
        return f"{self.name} ({self.kind}, {self.backend}), driver {driver}, wgpu {self.wgpu}"

    @property
    def profile(self) -> str | None:
        name = f"{self.name} {self.driver}".lower()
        return next((profile for part, profile in PROFILES.items() if part in name), None)

    def matches(self, wanted: str) -> bool:
        """Whether `wanted` (any case) is part of the name, kind, backend or driver, or is the profile's name."""
        facts = (self.name, self.kind, self.backend, self.driver, self.profile or "")
        return any(wanted.lower() in fact.lower() for fact in facts)


@frozen
class Offer:
    """What an adapter has. `features`: of those that kernels and Bankshot use; `limits` by WebGPU's names;
    `subgroup_sizes`: the smallest and the largest that it tells of."""

    info: AdapterInfo
    features: tuple[str, ...]
    subgroup_sizes: tuple[int, int]
    limits: Mapping[str, int]


def adapters() -> list[AdapterInfo]:
    """Every adapter of this machine, hardware first. Empty where there is none, or where wgpu is not installed."""
    try:
        return [info for info, _ in _adapters()]
    except NoAdapter:
        return []


def require_adapter(wanted: str | None = None) -> AdapterInfo:
    """The first adapter (or the first that matches `wanted`). Raises `NoAdapter`, with what to install."""
    return _choose(wanted)[0]


def parse_adapters(text: str | None) -> tuple[str | None, ...]:
    """What `llvmpipe,swiftshader` or `all` asks for, as names for `require_adapter`, each of another adapter; the first
    adapter there is (None) where nothing is asked for. Raises `NoAdapter` and `UsageError`."""
    if text is None:
        return (None,)
    if text.strip().lower() == "all":
        require_adapter()
        return tuple(dict.fromkeys(info.name for info in adapters()))
    names: list[str | None] = []
    for each in map(str.strip, re.split(r",(?![^()]*\))", text)):  # names may have commas, in parentheses
        if not each:
            raise UsageError(f"--adapter {text}: a name is empty")
        name = require_adapter(each).name
        if name in names:
            raise UsageError(f"--adapter {text}: {name} is named twice")
        names.append(name)
    return tuple(names)


def offers() -> list[Offer]:
    """What every adapter of this machine has. Raises `NoAdapter` where there is none."""
    _choose(None)
    return [_offer(info, adapter) for info, adapter in _adapters()]


def _offer(info: AdapterInfo, adapter: Any) -> Offer:
    limits = {n: adapter.limits[dashed(n)] for n in DEFAULT_LIMITS if dashed(n) in adapter.limits}
    sizes = (adapter.info["stackgroup_min_size"], adapter.info["stackgroup_max_size"])  # as wgpu-py spells it
    return Offer(info, tuple(_features(adapter)), sizes, limits)


# ---- wgpu --------------------------------------------------------------------------------------------

_ASKING = RLock()


def _once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Keep what a function gives. Of several threads that ask, one finds it out, and the others wait."""
    kept = cache(function)

    @wraps(function)
    def asked(*arguments: Any) -> Any:
        with _ASKING:
            return kept(*arguments)

    return asked


@_once
def library() -> Any:
    """The module wgpu. Raises `NoAdapter` where there is none."""
    # Mesa's window system code complains on stderr where this is not set, although nobody asked for a window.
    os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.gettempdir())
    drivers.offer()
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


@_once
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


def _choose(wanted: str | None) -> tuple[AdapterInfo, Any]:
    found = _adapters()
    if not found:
        raise NoAdapter(f"wgpu finds no adapter; {HOW_TO_INSTALL}")
    fitting = [pair for pair in found if wanted is None or pair[0].matches(wanted)]
    if not fitting:
        there = "; ".join(str(info) for info, _ in found)
        hint = f"; {HINTS[wanted.lower()]}" if wanted and wanted.lower() in HINTS else ""
        raise NoAdapter(f"no adapter matches {wanted!r}; there are: {there}{hint}")
    return fitting[0]


@_once
def device_of(wanted: str | None) -> tuple[AdapterInfo, Any]:
    """The adapter that is asked for, and a device with all of its features and limits that kernels may ask for."""
    info, adapter = _choose(wanted)
    return info, adapter.request_device_sync(required_features=_features(adapter), required_limits=adapter.limits)


@_once
def modest_device(wanted: str | None) -> Any:
    """A device with no features and WebGPU's default limits."""
    adapter = _choose(wanted)[1]
    limits = {dashed(name): most for name, most in DEFAULT_LIMITS.items()}
    return adapter.request_device_sync(required_limits={n: most for n, most in limits.items() if n in adapter.limits})


def dashed(name: str) -> str:
    """wgpu-py's name of a limit."""
    return re.sub("[A-Z]", lambda c: f"-{c[0].lower()}", name)

"""Select adapters by name or kind.

A selector is part of an adapter's name, kind, backend or driver, or the device profile that rounds as it does. Commas
separate several selectors; `all` selects every adapter.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from ...sim.models.limits import DEFAULT_LIMITS
from ..errors import NoAdapter, UsageError
from ..wgpu_worker import vulkan_drivers, worker_process
from ..wgpu_worker.messages import Abilities, AdapterInfo, Offer

HOW_TO_INSTALL = "on Debian and Ubuntu: apt-get install mesa-vulkan-drivers libvulkan1"
HINTS = {"swiftshader": vulkan_drivers.HOW_TO_INSTALL, "lavapipe": HOW_TO_INSTALL, "llvmpipe": HOW_TO_INSTALL}

FALLBACK = "lavapipe"  # the profile for adapters whose rounding has not been measured


REQUIRE = "BANKSHOT_REQUIRE_GPU"
_WORDS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off", ""), False)}


def gpu_required() -> bool:
    """Whether the environment makes it an error if nothing is compared with wgpu. Raises `UsageError`."""
    value = os.environ.get(REQUIRE, "")
    if value.strip().lower() not in _WORDS:
        raise UsageError(f"{REQUIRE} must be 1, true, yes or on, or 0, false, no or off, not {value!r}")
    return _WORDS[value.strip().lower()]


def check_no_gpu() -> None:
    """Raise `UsageError` where the environment requires the comparison with wgpu that --no-gpu leaves out."""
    if gpu_required():
        raise UsageError(f"--no-gpu: {REQUIRE} is set, which requires a comparison with wgpu; unset it, or set it to 0")


def adapters() -> list[AdapterInfo]:
    """List the adapters of this machine, hardware first. Empty if there are none or wgpu is not installed."""
    try:
        return [offer.info for offer in _offers()]
    except NoAdapter:
        return []


def require_adapter(wanted: str | None = None) -> AdapterInfo:
    """Return the first adapter, or the first that matches `wanted`. Raises `NoAdapter`, which says what to install."""
    return _offers()[number_of(wanted)].info


def parse_adapters(text: str | None) -> tuple[str | None, ...]:
    """Split selectors, such as `llvmpipe,swiftshader` or `all`, into names for `require_adapter`.

    Every name is that of a different adapter. Without `text`, the result is `(None,)`: the default adapter. Raises
    `NoAdapter` and `UsageError`.
    """
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
    """Describe every adapter of this machine, with limits by WebGPU's names. Raises `NoAdapter` if there is none."""
    number_of(None)
    return [replace(offer, limits=_by_webgpu(offer.limits)) for offer in _offers()]


def number_of(wanted: str | None) -> int:
    """Return the number by which the worker process knows an adapter. Raises `NoAdapter`."""
    found = [offer.info for offer in _offers()]
    if not found:
        raise NoAdapter(f"wgpu finds no adapter; {HOW_TO_INSTALL}")
    fitting = [number for number, info in enumerate(found) if wanted is None or info.matches(wanted)]
    if not fitting:
        there = "; ".join(map(str, found))
        hint = f"; {HINTS[wanted.lower()]}" if wanted and wanted.lower() in HINTS else ""
        raise NoAdapter(f"no adapter matches {wanted!r}; there are: {there}{hint}")
    return fitting[0]


@cache
def abilities(number: int) -> Abilities:
    """Return the features and limits of the device that runs shaders on an adapter."""
    return worker_process.ask("abilities", number)


@cache
def _offers() -> list[Offer]:
    return worker_process.ask("offers")


def _by_webgpu(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: limits[dashed(name)] for name in DEFAULT_LIMITS if dashed(name) in limits}


def dashed(name: str) -> str:
    """Return wgpu-py's name of a limit: `maxBufferSize` is `max-buffer-size`."""
    return re.sub("[A-Z]", lambda c: f"-{c[0].lower()}", name)

"""The adapters that wgpu finds, chosen by name or kind.

An adapter is asked for by a part of its name, kind, backend or driver, or by the device profile that rounds as it does;
several with commas between, and `all` for every one.
"""

from __future__ import annotations

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

FALLBACK = "lavapipe"  # the profile for adapters whose rounding nobody has measured


def adapters() -> list[AdapterInfo]:
    """Every adapter of this machine, hardware first. Empty where there is none, or where wgpu is not installed."""
    try:
        return [offer.info for offer in _offers()]
    except NoAdapter:
        return []


def require_adapter(wanted: str | None = None) -> AdapterInfo:
    """The first adapter (or the first that matches `wanted`). Raises `NoAdapter`, with what to install."""
    return _offers()[number_of(wanted)].info


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
    """What every adapter of this machine has, with limits by WebGPU's names. Raises `NoAdapter` where there is none."""
    number_of(None)
    return [replace(offer, limits=_by_webgpu(offer.limits)) for offer in _offers()]


def number_of(wanted: str | None) -> int:
    """Which of the adapters is meant, as the driver's process numbers them."""
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
    """What the device has that shaders run on."""
    return worker_process.ask("abilities", number)


@cache
def _offers() -> list[Offer]:
    return worker_process.ask("offers")


def _by_webgpu(limits: Mapping[str, int]) -> dict[str, int]:
    return {name: limits[dashed(name)] for name in DEFAULT_LIMITS if dashed(name) in limits}


def dashed(name: str) -> str:
    """wgpu-py's name of a limit."""
    return re.sub("[A-Z]", lambda c: f"-{c[0].lower()}", name)

"""The profile of a name, of a file, or of itself."""

from __future__ import annotations

import os
from dataclasses import fields
from functools import cache, lru_cache
from pathlib import Path
from typing import TypeAlias

from ..models import Device, get
from ..models.devices import MERGED, merged
from .reader import profile_of
from .toml_text import load

DeviceChoice: TypeAlias = str | Path | Device
"""A profile by its name (`nvidia`), its file (`mine.toml`), or itself; a name or a file may end in `+merged`."""

_SUFFIX = ".toml"
_OF_ONE_DEVICE = ("name", "cores", "peak_flops", "peak_bandwidth", "costs", "sources", "webgpu_limits")
_SHIPPED = Path(__file__).parent / "profiles"


def find(device: DeviceChoice) -> Device:
    """Return a profile. Raises ValueError for an unknown name, and `WgslError` for an invalid file."""
    if isinstance(device, Device):
        return device
    if isinstance(device, str) and device.endswith(MERGED):
        return merged(find(device[: -len(MERGED)]))
    return _read(device) if isinstance(device, Path) or is_file(device) else find_shipped(device)


def is_file(device: str) -> bool:
    """Whether a text stands for a device file, rather than for a name."""
    name = device.removesuffix(MERGED)
    return name.endswith(_SUFFIX) or os.sep in name


def read_profile(path: str | Path) -> Device:
    """Read a device file. Raises `WgslError`."""
    return profile_of(load(Path(path)), find_shipped)


@cache
def shipped() -> tuple[str, ...]:
    """List the names of the profiles that are shipped as files."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob(f"*{_SUFFIX}")))


def find_shipped(name: str) -> Device:
    """Look up a shipped profile by name, in any case. Raises ValueError, which lists the known names."""
    files = shipped()
    wanted = name.lower().replace("_", "-")
    if wanted in files:
        return _read(_SHIPPED / f"{wanted}{_SUFFIX}")
    if wanted.endswith(MERGED):
        return merged(find_shipped(name[: -len(MERGED)]))
    return get(name, files)


def with_times(device: Device) -> Device | None:
    """Return a profile that predicts times for what a device counts: the device itself, if its costs are known, else a
    calibrated shipped profile with the same memory and residency; None where there is none."""
    if device.costs is not None:
        return device if device.cores is not None else None
    alike = (find_shipped(name) for name in shipped())
    return next((each for each in alike if each.calibrated and each.cores and _facts(each) == _facts(device)), None)


def _facts(device: Device) -> list[object]:
    return [getattr(device, each.name) for each in fields(device) if each.name not in _OF_ONE_DEVICE]


def _read(path: str | Path) -> Device:
    """Read a file once for each change of it."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return read_profile(path)  # which says why there is none
    return _read_version(str(path), (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(16)
def _read_version(path: str, _: tuple[int, int, int]) -> Device:
    return read_profile(path)

"""Vulkan drivers that the loader does not find by itself, such as the SwiftShader that browsers ship.

A driver is identified by its manifest, a JSON file that names its library. `found` lists those to add to the installed
drivers: the manifests, or folders of manifests, in the environment variable BANKSHOT_VULKAN_DRIVERS (separated by `:`;
empty for none), or else the first SwiftShader in a folder where a browser installs it. If VK_DRIVER_FILES already
chooses the drivers, none are added.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import UsageError

ASKED = "BANKSHOT_VULKAN_DRIVERS"
CHOSEN = ("VK_DRIVER_FILES", "VK_ICD_FILENAMES")  # with these, the loader searches nowhere else
ADDED = "VK_ADD_DRIVER_FILES"

MANIFEST = "vk_swiftshader_icd.json"
PLACES = (
    f"{sys.prefix}/share/swiftshader",  # tools/setup.sh puts it here
    "/usr/lib/chromium",  # Debian's package chromium
    "/usr/lib/chromium-browser",  # Raspberry Pi OS, and Ubuntu before it was a snap
    "/usr/lib64/chromium-browser",  # Fedora
    "/snap/chromium/current/usr/lib/chromium-browser",  # Ubuntu
    "/opt/google/chrome",  # Google's own packages
    "~/.cache/ms-playwright/chromium-*/chrome-linux*",
    "~/.cache/puppeteer/chrome/linux-*/chrome-linux*",
)
HOW_TO_INSTALL = (
    "SwiftShader comes with Chromium and Chrome (on Debian: apt-get install chromium-common); "
    f"elsewhere set {ASKED} to its {MANIFEST}"
)


def found() -> list[Path]:
    """List the manifests to add. Raises `UsageError` if a requested one does not exist."""
    if any(os.environ.get(name) for name in CHOSEN):
        return []
    asked = os.environ.get(ASKED)
    if asked is not None:
        return [manifest for place in asked.split(os.pathsep) if place for manifest in _asked(Path(place))]
    first = next((folder / MANIFEST for folder in _folders() if (folder / MANIFEST).is_file()), None)
    return [] if first is None else [first]


def _asked(place: Path) -> list[Path]:
    manifests = sorted(place.glob("*.json")) if place.is_dir() else [place] if place.is_file() else []
    if not manifests:
        raise UsageError(f"{ASKED} names {place}, which is neither a driver's manifest nor a folder with one")
    return manifests


def _folders() -> Iterator[Path]:
    """Expand `PLACES` to folders, the latest of several versions first."""
    for place in PLACES:
        path = Path(place).expanduser()
        yield from sorted(Path(path.anchor).glob(str(path.relative_to(path.anchor))), reverse=True)


def offer() -> None:
    """Append the manifests found to VK_ADD_DRIVER_FILES, which the Vulkan loader of this process reads."""
    known = os.environ.get(ADDED, "").split(os.pathsep)
    more = [str(manifest) for manifest in found()]
    os.environ[ADDED] = os.pathsep.join(dict.fromkeys(name for name in (*known, *more) if name))

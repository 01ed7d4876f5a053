"""`bankshot adapters`: the adapters of this machine, their features, and the device profile that matches each."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...sim.fast_dataclass import frozen
from ..wgpu_worker import vulkan_drivers
from ..wgpu_worker.messages import TIMESTAMPS, Offer
from .adapter_choice import FALLBACK, offers
from .binding_resources import Slot
from .gpu_run import run

# Columns of the table, and the WebGPU feature behind each.
ABILITIES = {"f16": "shader-f16", "subgroups": "subgroup", "timestamps": TIMESTAMPS}

_ONE_SUBGROUP = """\
@group(0) @binding(0) var<storage, read_write> size: u32;
@compute @workgroup_size(1) fn main(@builtin(subgroup_size) lanes: u32) { size = lanes; }
"""


@frozen
class Adapter:
    """An adapter and what was measured on it.

    `subgroup_size` is the value of the built-in in a kernel, None without subgroups. `profile` names the device that
    the simulator uses for this adapter; `known` says whether the two round alike.
    """

    offer: Offer
    subgroup_size: int | None
    profile: str
    known: bool

    def has(self, ability: str) -> bool:
        return ABILITIES[ability] in self.offer.features

    @property
    def abilities(self) -> dict[str, bool]:
        """Whether the adapter has each of `ABILITIES`."""
        return {name: self.has(name) for name in ABILITIES}


def survey() -> list[Adapter]:
    """Measure every adapter, the default one first. Raises `NoAdapter` if there is none."""
    return [_measured(offer) for offer in offers()]


def _measured(offer: Offer) -> Adapter:
    info, size = offer.info, None
    if ABILITIES["subgroups"] in offer.features:
        slots = [Slot("size", 0, 0, "storage-write")]
        done = run(_ONE_SUBGROUP, "main", (1, 1, 1), {"size": np.zeros(1, "u4")}, slots=slots, adapter=info.name)
        size = int(done.outputs["size"][0])
    return Adapter(offer, size, info.profile or FALLBACK, info.profile is not None)


def added() -> tuple[list[Path], str | None]:
    """Return the manifests of drivers added to the installed ones and, if there are none, how to install one."""
    found = vulkan_drivers.found()
    return found, None if found else vulkan_drivers.HOW_TO_INSTALL

"""`bankshot adapters`: what wgpu can run kernels on here, what each has, and the device profile that goes with it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ...sim.fast_dataclass import frozen
from ..wgpu_worker import vulkan_drivers
from ..wgpu_worker.messages import TIMESTAMPS, Offer
from .adapter_choice import FALLBACK, offers
from .binding_resources import Slot
from .gpu_run import run

# What people ask of an adapter, and the feature that it goes by.
ABILITIES = {"f16": "shader-f16", "subgroups": "subgroup", "timestamps": TIMESTAMPS}

_ONE_SUBGROUP = """\
@group(0) @binding(0) var<storage, read_write> size: u32;
@compute @workgroup_size(1) fn main(@builtin(subgroup_size) lanes: u32) { size = lanes; }
"""


@frozen
class Adapter:
    """`subgroup_size` is what a kernel was told, where there are subgroups; `profile` the device that kernels are
    simulated as for it, and `known` whether that rounds as it does."""

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
    """Every adapter, the one that is taken by default first. Raises `NoAdapter` where there is none."""
    return [_measured(offer) for offer in offers()]


def _measured(offer: Offer) -> Adapter:
    info, size = offer.info, None
    if ABILITIES["subgroups"] in offer.features:
        slots = [Slot("size", 0, 0, "storage-write")]
        done = run(_ONE_SUBGROUP, "main", (1, 1, 1), {"size": np.zeros(1, "u4")}, slots=slots, adapter=info.name)
        size = int(done.outputs["size"][0])
    return Adapter(offer, size, info.profile or FALLBACK, info.profile is not None)


def added() -> tuple[list[Path], str | None]:
    """The manifests of drivers that were added to those that are installed, and how to come by more where none was."""
    found = vulkan_drivers.found()
    return found, None if found else vulkan_drivers.HOW_TO_INSTALL

"""The cost of one recorded access of one subgroup on a device, by counter name."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...sim.ir.sites import SourceSite
from ...sim.models import Device


def banks(device: Device, site: SourceSite, at: NDArray[np.int64], on: NDArray[np.bool_]) -> dict[str, int]:
    """Return the cost of an access to workgroup memory. `at`: byte addresses, `[lanes]`; `on`: which are active."""
    if site.takes_turns:
        ideal = device.ideal_shared_atomic_wavefronts(at, on)
        charged, turns = device.shared_atomic_wavefronts(at, on), device.atomic_turns(at, on)
        return {"shared_wavefronts": charged, "shared_ideal_wavefronts": ideal, "atomic_turns": turns}
    how = (at, site.bytes_per_lane, on, site.kind != "load")
    ideal = device.ideal_shared_wavefronts(*how)
    return {"shared_wavefronts": device.shared_wavefronts(*how), "shared_ideal_wavefronts": ideal}


def sectors(device: Device, site: SourceSite, at: NDArray[np.int64], on: NDArray[np.bool_]) -> dict[str, int]:
    """Return the cost of an access to storage. `at`: byte addresses, `[lanes]`; `on`: which lanes are active."""
    how = (at, site.bytes_per_lane, on)
    costs = {
        "global_sectors": device.global_sectors(*how),
        "global_ideal_sectors": device.ideal_global_sectors(*how),
        "global_lines": device.global_lines(*how),
    }
    if site.takes_turns:
        costs |= {"global_sectors": device.global_atomic_sectors(at, on), "atomic_turns": device.atomic_turns(at, on)}
    return costs

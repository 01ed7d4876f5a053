"""Sectors and lines of storage that one access of one subgroup touches, and the turns that its atomics take."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .hardware import Hardware

Addresses = NDArray[np.int64]
Active = NDArray[np.bool_]


def _touched(addresses: Addresses, active: Active, width: int) -> NDArray[np.int64]:
    """Return the number of every byte that active lanes access, each once."""
    return np.unique(addresses[active][:, None] + np.arange(width))


def sectors(hardware: Hardware, addresses: Addresses, active: Active, width: int) -> int:
    """Count the sectors that a load or store of `width` bytes a lane touches."""
    return len(np.unique(_touched(addresses, active, width) // hardware.sector_bytes))


def lines(hardware: Hardware, addresses: Addresses, active: Active, width: int) -> int:
    """Count the lines of the cache that it touches."""
    return len(np.unique(_touched(addresses, active, width) // hardware.line_bytes))


def ideal_sectors(hardware: Hardware, addresses: Addresses, active: Active, width: int) -> int:
    """Count the fewest sectors that hold as many bytes as it touches."""
    return -(-len(_touched(addresses, active, width)) // hardware.sector_bytes)


def atomic_sectors(hardware: Hardware, addresses: Addresses, active: Active) -> int:
    """Count the sectors of an atomic read-modify-write: each passes once for each lane on its busiest word."""
    words, lanes = np.unique(addresses[active] // 4, return_counts=True)
    _, starts = np.unique(4 * words // hardware.sector_bytes, return_index=True)
    return int(np.maximum.reduceat(lanes, starts).sum())


def turns(addresses: Addresses, active: Active) -> int:
    """Count the active lanes on the busiest word of an atomic read-modify-write, in either memory."""
    _, lanes = np.unique(addresses[active] // 4, return_counts=True)
    return int(lanes.max(initial=0))

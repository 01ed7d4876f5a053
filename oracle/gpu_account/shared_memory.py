"""Wavefronts: the passes that the banks of workgroup memory take to serve one access of one subgroup."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .hardware import Hardware

Addresses = NDArray[np.int64]
Active = NDArray[np.bool_]

ALIGNED = {1: 4, 2: 4, 4: 4, 6: 8, 8: 8, 12: 16, 16: 16}  # bytes of an access -> bytes that the memory serves it as


def access(hardware: Hardware, addresses: Addresses, active: Active, width: int, is_load: bool) -> tuple[int, int]:
    """Return the wavefronts of a load or store, and the fewest that the same lanes could take.

    `addresses` are in bytes, one for each lane of a subgroup; `width`: bytes that each lane accesses.
    """
    served = ALIGNED[width]
    groups = _groups(hardware, served, is_load, len(addresses))
    counted = [_busiest_column(hardware, addresses, active, served, group) for group in groups]
    merges = hardware.pair_merge and is_load and served > 4
    if merges and (_pairs_agree(addresses, active, 1) or _pairs_agree(addresses, active, 2)):
        together = [[*a, *b] for a, b in zip(groups[::2], [*groups[1::2], []], strict=False)]
        counted = [_busiest_column(hardware, addresses, active, served, group) for group in together]
    wavefronts = [count for count in counted if count > 0]
    return sum(wavefronts), len(wavefronts)


def _groups(hardware: Hardware, served: int, is_load: bool, lanes: int) -> list[list[int]]:
    """Divide the lanes into groups that together ask for as many bytes as all banks deliver at once."""
    order: Sequence[int] = range(lanes)
    if is_load and served in hardware.lane_order:
        order = [lane for lane in hardware.lane_order[served] if lane < lanes]
    together = hardware.banks * hardware.bank_width // max(served, hardware.bank_width)
    return [list(order[start : start + together]) for start in range(0, lanes, together)]


def _busiest_column(hardware: Hardware, addresses: Addresses, active: Active, served: int, group: list[int]) -> int:
    """Count the distinct places that the lanes of a group ask of one column of banks, where they ask for most.

    A column is as wide as the access: adjacent banks, or one bank where that is wider. Lanes that ask for the same
    place are served together.
    """
    wide = max(served, hardware.bank_width)
    columns = hardware.banks * hardware.bank_width // wide
    asked: dict[int, set[int]] = {}
    for lane in group:
        if active[lane]:
            place = int(addresses[lane]) // wide
            asked.setdefault(place % columns, set()).add(place)
    return max((len(places) for places in asked.values()), default=0)


def _pairs_agree(addresses: Addresses, active: Active, distance: int) -> bool:
    """Return whether active lanes l and l ^ distance ask for one address, for every such pair."""
    lanes = range(len(addresses))
    pairs = [(lane, lane ^ distance) for lane in lanes if lane ^ distance in lanes]
    return all(addresses[a] == addresses[b] for a, b in pairs if active[a] and active[b])


def atomic(hardware: Hardware, addresses: Addresses, active: Active) -> tuple[int, int]:
    """Return the wavefronts of an atomic read-modify-write, and the fewest. Lanes collide in a bank even on a word."""
    wide = max(4, hardware.bank_width)
    together = hardware.banks * hardware.bank_width // wide
    wavefronts: list[int] = []
    for start in range(0, len(addresses), together):
        on = active[start : start + together]
        columns = addresses[start : start + together][on] // wide % together
        if len(columns):
            wavefronts.append(int(np.bincount(columns).max()))
    return sum(wavefronts), len(wavefronts)

"""The figures of a device that the charges depend on, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from ...sim.fast_dataclass import frozen


@frozen
class Hardware:
    """Sizes are in bytes. `lane_order`: bytes per lane of a load -> lanes in the order in which they are served, where
    that is not lane order. `pair_merge`: wide loads serve two groups as one where lanes pair up. `fused`: fma() is one
    instruction."""

    subgroup_size: int = 32
    banks: int = 32
    bank_width: int = 4
    pair_merge: bool = True
    lane_order: Mapping[int, tuple[int, ...]] = field(default_factory=dict[int, tuple[int, ...]], hash=False)
    sector_bytes: int = 32
    line_bytes: int = 128
    fused: bool = True

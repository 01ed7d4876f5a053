"""The rounding of a device, where devices may differ and the program depends on it."""

from __future__ import annotations

from ..fast_dataclass import frozen


@frozen
class Rounding:
    """How a device rounds.

    `fused`: `fma` rounds once. `contracts`: a product and the only sum that uses it round once as well. `cuts_f16`: a
    store to an f16 texel rounds toward zero instead of to nearest.
    """

    fused: bool
    contracts: bool
    cuts_f16: bool

"""Where devices may round differently, and a program has to know how."""

from __future__ import annotations

from ..fast_dataclass import frozen


@frozen
class Rounding:
    """`fused`: fma rounds once. `contracts`: so does a product that only one sum uses. `cuts_f16`: a store to a texel
    of f16 rounds toward zero, not to nearest.
    """

    fused: bool
    contracts: bool
    cuts_f16: bool

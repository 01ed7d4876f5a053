"""The float formats, as bounds see them."""

from __future__ import annotations

from ...fast_dataclass import frozen

INFLATED = 1 + 2.0**-20  # covers the up to 15 roundings of computing one bound


@frozen
class Format:
    """A float format: the ULP of 1, the least normal number, the largest number, and the largest whole number up to
    which every whole number is representable."""

    ulp: float
    least: float
    largest: float
    whole: float


FORMATS = {
    "f32": Format(2.0**-23, 2.0**-126, (2 - 2.0**-23) * 2.0**127, 2.0**24),
    "f16": Format(2.0**-10, 2.0**-14, 65504.0, 2.0**11),
}

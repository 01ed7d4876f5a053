"""Where a kernel stands under the roofline of a device (Williams, Waterman, Patterson 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Place:
    """`intensity` and `ridge` are in operations per byte, `attainable` in operations per second."""

    intensity: float  # of the kernel
    ridge: float  # the intensity from which on the device computes at its peak
    bound: str  # "compute" or "memory"
    attainable: float  # the roof above the kernel


def place(flops: float, bytes: float, peak_flops: float, peak_bandwidth: float) -> Place:
    """The place of a kernel that does `flops` operations and moves `bytes` bytes of storage.

    Peaks are per second and positive. A kernel that moves nothing is bound by compute. Raises ValueError for negative
    counts, and for a kernel that does nothing at all: it has no place.
    """
    if peak_flops <= 0 or peak_bandwidth <= 0:
        raise ValueError("a roofline needs positive peaks")
    if flops < 0 or bytes < 0 or (flops == 0 and bytes == 0):
        raise ValueError(f"{flops} operations on {bytes} bytes have no place under a roofline")
    intensity = flops / bytes if bytes else inf
    ridge = peak_flops / peak_bandwidth
    if intensity >= ridge:
        return Place(intensity, ridge, "compute", peak_flops)
    return Place(intensity, ridge, "memory", intensity * peak_bandwidth)

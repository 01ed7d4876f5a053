"""The roofline model: what bounds a kernel on a device (Williams, Waterman, Patterson 2009), and its form with a roof
for each level of memory (Yang et al., "Hierarchical Roofline Analysis for GPUs", 2020)."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from ..fast_dataclass import sealed


@sealed
class Place:
    """A point of the model: `intensity` and `ridge` in operations per byte, `attainable` in operations per second."""

    intensity: float  # of the kernel
    ridge: float  # the intensity from which the device computes at its peak
    bound: str  # "compute" or "memory"
    attainable: float  # the roof at this intensity


def place(flops: float, bytes: float, peak_flops: float, peak_bandwidth: float) -> Place:
    """Place a kernel that does `flops` operations and moves `bytes` bytes of storage.

    Peaks are per second and positive. A kernel that moves nothing is bound by compute. Raises ValueError for peaks that
    are not positive, for negative counts, and where both counts are 0.
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


@sealed
class Level:
    """A level of memory: the bytes that it moves for a kernel, and the microseconds that it takes for them alone."""

    name: str
    bytes: float
    us: float


@sealed
class Roof:
    """What one level allows: `intensity` in operations per byte of it, infinite for arithmetic; `attainable` in
    operations per second."""

    name: str
    intensity: float
    attainable: float


def roofs(flops: float, levels: Iterable[Level], peak_flops: float | None) -> list[Roof]:
    """Return the roofs over a kernel, the lowest first, with that of arithmetic if its peak is known.

    A level that moves nothing has no roof. Raises ValueError for a kernel without operations.
    """
    if flops <= 0:
        raise ValueError("a kernel without operations has no place under a roofline")
    found = [Roof(each.name, flops / each.bytes, 1e6 * flops / each.us) for each in levels if each.bytes and each.us]
    if peak_flops:
        found.append(Roof("arithmetic", inf, peak_flops))
    return sorted(found, key=lambda roof: roof.attainable)

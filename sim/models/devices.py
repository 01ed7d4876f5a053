"""Device profiles as data, one row a fact: its value, how sure we are of it, and where it comes from.

`DEVICES` holds them by name and `get` looks one up.

    >>> NVIDIA.shared_wavefronts([4 * 2 * lane for lane in range(32)], bytes_per_lane=4)
    2
"""

from __future__ import annotations

from typing import Any, NamedTuple

from .device import Device, Source, near_miss
from .limits import DEFAULT_LIMITS


class Fact(NamedTuple):
    """A figure with its source: how profiles are written down."""

    value: Any
    source: Source


def measured(value: Any, where: str) -> Fact:
    return Fact(value, Source("measured", where))


def documented(value: Any, where: str) -> Fact:
    return Fact(value, Source("documented", where))


def assumed(value: Any, why: str) -> Fact:
    return Fact(value, Source("assumed", why))


def profile(name: str, **facts: Fact) -> Device:
    """A device from its facts, with the facts that hold anywhere where it gives none."""
    facts = {"name": documented(name, "Bankshot"), **ANYWHERE, **facts}
    sources = {field: fact.source for field, fact in facts.items()}
    sources["sources"] = Source("documented", "this table")
    return Device(**{field: fact.value for field, fact in facts.items()}, sources=sources)


_NO_FIGURE = "no figure is claimed"
_AS_NVIDIA = "as on NVIDIA: nothing better is known"

ANYWHERE = {
    "banks": assumed(32, _AS_NVIDIA),
    "bank_width": assumed(4, _AS_NVIDIA),
    "pair_merge": assumed(False, "seen on NVIDIA only"),
    "lane_order": assumed({}, "lane order"),
    "sector_bytes": assumed(32, _AS_NVIDIA),
    "line_bytes": assumed(128, _AS_NVIDIA),
    "merge_adjacent": assumed(False, "accesses are charged as written"),
    "fma": assumed("fused", "the hardware has the instruction; not measured"),
    "workgroup_bytes_unit": assumed(256, "of the order of what vendors document"),
    "register_unit": assumed(8, _AS_NVIDIA),
    "registers_per_lane_max": assumed(255, _AS_NVIDIA),
    "workgroups_per_core": assumed(32, _AS_NVIDIA),
    "peak_flops": assumed(None, _NO_FIGURE),
    "peak_bandwidth": assumed(None, _NO_FIGURE),
    "webgpu_limits": documented(DEFAULT_LIMITS, "WebGPU, limits: the default column"),
}

_H200_COUNTERS = "profiler counters of an H200, one warp, one instruction"
_CUDA_9_0 = "CUDA C++ Programming Guide, technical specifications, compute capability 9.0"
_H200_SHEET = "NVIDIA H200 SXM data sheet"

NVIDIA = profile(
    "nvidia",
    subgroup_size=documented(32, _CUDA_9_0),
    subgroup_sizes=documented((32,), _CUDA_9_0),
    banks=measured(32, _H200_COUNTERS),
    bank_width=measured(4, _H200_COUNTERS),
    pair_merge=measured(True, _H200_COUNTERS),
    lane_order=measured({}, _H200_COUNTERS),
    sector_bytes=measured(32, _H200_COUNTERS),
    line_bytes=measured(128, _H200_COUNTERS),
    fma=measured("fused", "64x64-tile matmul on an H200, bit for bit"),
    workgroup_bytes_per_core=documented(228 * 1024, _CUDA_9_0),
    workgroup_bytes_max=documented(48 * 1024, "Vulkan maxComputeSharedMemorySize of NVIDIA's driver"),
    workgroup_bytes_unit=documented(128, "CUDA occupancy calculator, compute capability 9.0"),
    registers_per_core=documented(64 * 1024, _CUDA_9_0),
    register_unit=documented(8, "CUDA occupancy calculator: 256 registers per warp"),
    registers_per_lane_max=documented(255, _CUDA_9_0),
    threads_per_core=documented(2048, _CUDA_9_0),
    subgroups_per_core=documented(64, _CUDA_9_0),
    workgroups_per_core=documented(32, _CUDA_9_0),
    peak_flops=documented(67e12, _H200_SHEET),
    peak_bandwidth=documented(4.8e12, _H200_SHEET),
)

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
    "workgroup_bytes_reserved": assumed(0, "none is documented"),
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
    workgroup_bytes_reserved=documented(1024, _CUDA_9_0),
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


def _cdna_order(first_phase: tuple[int, ...]) -> tuple[int, ...]:
    """Lanes of a 64-lane wavefront as `ds_read_b128` serves them: each phase is the first with lane bits flipped."""
    seen: list[int] = []
    for flip in range(64):
        phase = [lane ^ flip for lane in first_phase]
        if not set(phase) & set(seen):
            seen += phase
    return tuple(seen)


_TRITON_11365 = "triton-lang/triton pull request 11365: phases of ds_read_b128 on MI300"
_CDNA3 = "AMD Instinct MI300 CDNA3 instruction set architecture"
_MI300_SHEET = "AMD Instinct MI300X data sheet"

AMD_CDNA = profile(
    "amd-cdna",
    subgroup_size=documented(64, _CDNA3),
    subgroup_sizes=documented((64,), _CDNA3),
    banks=documented(32, "ROCm documentation, Composable Kernel: LDS bank conflicts"),
    bank_width=documented(4, "ROCm documentation, Composable Kernel: LDS bank conflicts"),
    lane_order=documented({16: _cdna_order((0, 1, 2, 3, 20, 21, 22, 23))}, _TRITON_11365),
    sector_bytes=assumed(64, "half a cache line, the request size of the memory"),
    line_bytes=documented(128, "AMD CDNA 3 architecture white paper"),
    workgroup_bytes_per_core=documented(64 * 1024, _CDNA3),
    workgroup_bytes_max=documented(64 * 1024, _CDNA3),
    workgroup_bytes_unit=documented(512, _CDNA3),
    registers_per_core=documented(128 * 1024, _CDNA3),
    registers_per_lane_max=documented(512, _CDNA3),
    threads_per_core=documented(2048, _CDNA3),
    subgroups_per_core=documented(32, _CDNA3),
    peak_flops=documented(163.4e12, _MI300_SHEET),
    peak_bandwidth=documented(5.3e12, _MI300_SHEET),
)

_RDNA3 = "AMD RDNA3 instruction set architecture"

AMD_RDNA = profile(
    "amd-rdna",
    subgroup_size=documented(32, _RDNA3),
    subgroup_sizes=documented((32, 64), _RDNA3),
    banks=documented(32, _RDNA3 + ": 64 banks per work-group processor, 32 beside each compute unit"),
    bank_width=documented(4, _RDNA3),
    sector_bytes=assumed(64, "half a cache line, the request size of the memory"),
    line_bytes=documented(128, "RDNA architecture white paper"),
    workgroup_bytes_per_core=documented(64 * 1024, _RDNA3 + ": 128 KiB per work-group processor"),
    workgroup_bytes_max=documented(64 * 1024, _RDNA3),
    workgroup_bytes_unit=documented(1024, _RDNA3),
    registers_per_core=documented(96 * 1024, "philipturner/metal-benchmarks: 384 KB of registers per core of RDNA 3"),
    register_unit=assumed(24, "allocation of a part with 1536 registers per SIMD, wave32"),
    registers_per_lane_max=documented(256, _RDNA3),
    threads_per_core=documented(1024, "GPUOpen: 16 wavefronts per SIMD, two SIMDs per compute unit"),
    subgroups_per_core=documented(32, "GPUOpen: 16 wavefronts per SIMD, two SIMDs per compute unit"),
)

_METAL = "Metal feature set tables"
_APPLE_BENCHMARKS = "philipturner/metal-benchmarks, Apple 7 and 8"

APPLE = profile(
    "apple",
    subgroup_size=documented(32, _METAL),
    subgroup_sizes=documented((32,), _METAL),
    workgroup_bytes_per_core=documented(64 * 1024, _APPLE_BENCHMARKS),
    workgroup_bytes_max=documented(32 * 1024, _METAL),
    registers_per_core=documented(96 * 1024, _APPLE_BENCHMARKS + ": 384 KB"),
    threads_per_core=documented(3072, _APPLE_BENCHMARKS),
    subgroups_per_core=documented(96, _APPLE_BENCHMARKS + ": 3072 threads"),
)

_XE = "Intel oneAPI GPU optimization guide, Xe-HPG"

INTEL = profile(
    "intel",
    subgroup_size=assumed(16, "drivers choose 8, 16 or 32 by kernel"),
    subgroup_sizes=documented((8, 16, 32), _XE),
    banks=assumed(16, "64 bytes of shared local memory per clock; not checked"),
    sector_bytes=assumed(64, "one cache line"),
    line_bytes=documented(64, _XE),
    workgroup_bytes_per_core=documented(128 * 1024, _XE),
    workgroup_bytes_max=documented(64 * 1024, _XE),
    workgroup_bytes_unit=assumed(1024, "the order of the sizes that the driver offers"),
    registers_per_core=documented(128 * 1024, _XE + ": 128 threads of 128 registers of 32 bytes"),
    registers_per_lane_max=assumed(64, "128 registers of 32 bytes over 16 lanes"),
    threads_per_core=assumed(2048, "128 hardware threads of 16 lanes"),
    subgroups_per_core=documented(128, _XE + ": 16 vector engines of 8 threads"),
)

ADRENO = profile(
    "adreno",
    subgroup_size=documented(64, "Qualcomm Snapdragon OpenCL guide: half and full waves"),
    subgroup_sizes=documented((64, 128), "Qualcomm Snapdragon OpenCL guide: half and full waves"),
    sector_bytes=assumed(64, "one cache line"),
    line_bytes=assumed(64, "not documented"),
    workgroup_bytes_per_core=documented(32 * 1024, "Qualcomm Snapdragon OpenCL guide: local memory"),
    workgroup_bytes_max=documented(32 * 1024, "Qualcomm Snapdragon OpenCL guide: local memory"),
    registers_per_core=assumed(64 * 1024, "not documented"),
    threads_per_core=assumed(2048, "not documented"),
    subgroups_per_core=assumed(32, "not documented"),
    workgroups_per_core=assumed(16, "not documented"),
)

_NO_CORES = "an adapter in software has no such thing: charged as on NVIDIA"
_IN_SOFTWARE = {
    "banks": assumed(32, _NO_CORES),
    "bank_width": assumed(4, _NO_CORES),
    "fma": assumed("separate", "like the software adapter that was measured"),
    "workgroup_bytes_per_core": assumed(228 * 1024, _NO_CORES),
    "workgroup_bytes_max": assumed(32 * 1024, "what Mesa's software adapter reports"),
    "registers_per_core": assumed(64 * 1024, _NO_CORES),
    "threads_per_core": assumed(2048, _NO_CORES),
    "subgroups_per_core": assumed(64, _NO_CORES),
}

LAVAPIPE = profile(
    "lavapipe",
    **_IN_SOFTWARE
    | {
        "subgroup_size": measured(8, "Mesa 22.3.6 on a processor with AVX2"),
        "subgroup_sizes": measured((8,), "Mesa 22.3.6 on a processor with AVX2"),
        "fma": measured("separate", "64x64-tile matmul on Mesa 22.3.6, bit for bit"),
    },
)

SWIFTSHADER = profile(
    "swiftshader",
    **_IN_SOFTWARE
    | {
        "subgroup_size": measured(4, "SwiftShader under wgpu 29"),
        "subgroup_sizes": measured((4,), "SwiftShader under wgpu 29"),
    },
)

DEVICES: dict[str, Device] = {
    device.name: device for device in (NVIDIA, AMD_RDNA, AMD_CDNA, APPLE, INTEL, ADRENO, LAVAPIPE, SWIFTSHADER)
}


def get(name: str) -> Device:
    """The profile of this name, in any case, with `_` or `-`. Raises ValueError that lists the names there are."""
    device = DEVICES.get(name.lower().replace("_", "-"))
    if device is None:
        hint = near_miss(name.lower(), list(DEVICES))
        raise ValueError(f"there is no device {name!r}{hint}; the devices are {', '.join(DEVICES)}")
    return device

"""Device profiles as data, one fact a row: its value, how certain it is, and where it comes from.

`DEVICES` has them by name and `get` looks one up.

    >>> NVIDIA.shared_wavefronts([4 * 2 * lane for lane in range(32)], bytes_per_lane=4)
    2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..fast_dataclass import frozen
from .device import Device, Source, near_miss
from .limits import DEFAULT_LIMITS


@frozen
class Fact:
    """A figure with its source: the form in which profiles are written."""

    value: Any
    source: Source


def measured(value: Any, where: str) -> Fact:
    return Fact(value, Source("measured", where))


def documented(value: Any, where: str) -> Fact:
    return Fact(value, Source("documented", where))


def assumed(value: Any, why: str) -> Fact:
    return Fact(value, Source("assumed", why))


def profile(name: str, **facts: Fact) -> Device:
    """Make a device of its facts, with the defaults of `ANYWHERE` for the others."""
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
    "out_of_bounds": assumed("clamp", "what naga and Tint write into shaders; buffers may load zeros instead"),
    "texel_outside": assumed("zero", "robust image access, which wgpu asks drivers for; Dawn loads the nearest"),
    "texel_f16": assumed("nearest", "as arithmetic rounds"),
    "loop_turns": documented(None, "WGSL: loops run until they end"),
    "workgroup_bytes_unit": assumed(256, "of the order of what vendors document"),
    "workgroup_bytes_reserved": assumed(0, "none is documented"),
    "register_unit": assumed(8, _AS_NVIDIA),
    "registers_per_lane_max": assumed(255, _AS_NVIDIA),
    "workgroups_per_core": assumed(32, _AS_NVIDIA),
    "cores": assumed(None, _NO_FIGURE),
    "peak_flops": assumed(None, _NO_FIGURE),
    "peak_bandwidth": assumed(None, _NO_FIGURE),
    "costs": assumed(None, "measured costs come from a device file"),
    "webgpu_limits": documented(DEFAULT_LIMITS, "WebGPU, limits: the default column"),
}

_H200_COUNTERS = "profiler counters of an H200, one warp, one instruction"
_H200_ATTRIBUTES = "device attributes that an H200 reports"
_H200_RESIDENCY = "times of workgroups that wait, by their memory, on an H200 through Vulkan; CUDA gives 228 KiB"
_H200_SHEET = "NVIDIA H200 SXM data sheet"

NVIDIA = profile(
    "nvidia",
    subgroup_size=measured(32, _H200_ATTRIBUTES),
    subgroup_sizes=measured((32,), _H200_ATTRIBUTES),
    banks=measured(32, _H200_COUNTERS),
    bank_width=measured(4, _H200_COUNTERS),
    pair_merge=measured(True, _H200_COUNTERS),
    lane_order=measured({}, _H200_COUNTERS),
    sector_bytes=measured(32, _H200_COUNTERS),
    line_bytes=measured(128, _H200_COUNTERS),
    fma=measured("contracted", "matmuls with fma() and with products and sums, on an H200, bit for bit"),
    texel_f16=measured("zero", "stores of random numbers on an H200 under wgpu 0.32"),
    workgroup_bytes_per_core=measured(48 * 1024, _H200_RESIDENCY),
    workgroup_bytes_max=measured(48 * 1024, _H200_ATTRIBUTES + ": without opting in to more"),
    workgroup_bytes_reserved=measured(0, _H200_RESIDENCY),
    workgroup_bytes_unit=assumed(128, "as in the CUDA occupancy calculator; not checked"),
    registers_per_core=measured(64 * 1024, _H200_ATTRIBUTES),
    register_unit=assumed(8, "256 registers per warp, as in the CUDA occupancy calculator; not checked"),
    registers_per_lane_max=measured(255, _H200_ATTRIBUTES),
    threads_per_core=measured(2048, _H200_ATTRIBUTES),
    subgroups_per_core=measured(64, _H200_ATTRIBUTES),
    workgroups_per_core=measured(32, _H200_ATTRIBUTES),
    cores=documented(132, "NVIDIA H100 architecture white paper: SXM5, whose chip the H200 has"),
    peak_flops=documented(67e12, _H200_SHEET),
    peak_bandwidth=documented(4.8e12, _H200_SHEET),
)


def _cdna_order(first_phase: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order in which `ds_read_b128` serves 64 lanes: each phase is the first with lane bits flipped."""
    seen: list[int] = []
    for flip in range(64):
        phase = [lane ^ flip for lane in first_phase]
        if not set(phase) & set(seen):
            seen += phase
    return tuple(seen)


_TRITON_11365 = "triton-lang/triton pull request 11365: phases of ds_read_b128 on MI300"
_ROCM = "ROCm documentation: AMD GPU specifications"
_UNCHECKED = "from the vendor's documents, from memory; not checked"

AMD_CDNA = profile(
    "amd-cdna",
    subgroup_size=documented(64, _ROCM),
    subgroup_sizes=documented((64,), _ROCM),
    banks=documented(32, "ROCm documentation, Composable Kernel: LDS bank conflicts"),
    bank_width=documented(4, "ROCm documentation, Composable Kernel: LDS bank conflicts"),
    lane_order=documented({16: _cdna_order((0, 1, 2, 3, 20, 21, 22, 23))}, _TRITON_11365),
    sector_bytes=assumed(64, "half a cache line, the request size of the memory"),
    line_bytes=assumed(128, _UNCHECKED),
    workgroup_bytes_per_core=documented(64 * 1024, _ROCM),
    workgroup_bytes_max=documented(64 * 1024, _ROCM),
    workgroup_bytes_unit=assumed(512, _UNCHECKED),
    registers_per_core=documented(128 * 1024, _ROCM),
    registers_per_lane_max=assumed(512, _UNCHECKED),
    threads_per_core=assumed(2048, _UNCHECKED),
    subgroups_per_core=assumed(32, _UNCHECKED),
    cores=assumed(304, _UNCHECKED),
    peak_flops=assumed(163.4e12, _UNCHECKED),
    peak_bandwidth=assumed(5.3e12, _UNCHECKED),
)

AMD_RDNA = profile(
    "amd-rdna",
    subgroup_size=assumed(32, _UNCHECKED),
    subgroup_sizes=assumed((32, 64), _UNCHECKED),
    banks=assumed(32, "64 per work-group processor, 32 beside each compute unit; not checked"),
    bank_width=assumed(4, _UNCHECKED),
    sector_bytes=assumed(64, "half a cache line, the request size of the memory"),
    line_bytes=assumed(128, _UNCHECKED),
    workgroup_bytes_per_core=assumed(64 * 1024, _UNCHECKED),
    workgroup_bytes_max=assumed(64 * 1024, _UNCHECKED),
    workgroup_bytes_unit=assumed(1024, _UNCHECKED),
    registers_per_core=documented(96 * 1024, "philipturner/metal-benchmarks: 384 KB on RDNA 3"),
    register_unit=assumed(24, "allocation of a part with 1536 registers per SIMD, wave32"),
    registers_per_lane_max=assumed(256, _UNCHECKED),
    threads_per_core=assumed(1024, _UNCHECKED),
    subgroups_per_core=assumed(32, _UNCHECKED),
)

_APPLE_BENCHMARKS = "philipturner/metal-benchmarks, Apple 7 and 8"

APPLE = profile(
    "apple",
    subgroup_size=assumed(32, _UNCHECKED),
    subgroup_sizes=assumed((32,), _UNCHECKED),
    workgroup_bytes_per_core=documented(64 * 1024, _APPLE_BENCHMARKS),
    workgroup_bytes_max=assumed(32 * 1024, _UNCHECKED),
    registers_per_core=documented(96 * 1024, _APPLE_BENCHMARKS + ": 384 KB"),
    threads_per_core=documented(3072, _APPLE_BENCHMARKS),
    subgroups_per_core=documented(96, _APPLE_BENCHMARKS + ": 3072 threads"),
)

INTEL = profile(
    "intel",
    subgroup_size=assumed(16, "drivers choose 8, 16 or 32 by kernel"),
    subgroup_sizes=assumed((8, 16, 32), _UNCHECKED),
    banks=assumed(16, "64 bytes of shared local memory per clock; not checked"),
    sector_bytes=assumed(64, "one cache line"),
    line_bytes=assumed(64, _UNCHECKED),
    workgroup_bytes_per_core=assumed(128 * 1024, _UNCHECKED),
    workgroup_bytes_max=assumed(64 * 1024, _UNCHECKED),
    workgroup_bytes_unit=assumed(1024, "the order of the sizes that the driver offers"),
    registers_per_core=assumed(128 * 1024, _UNCHECKED),
    registers_per_lane_max=assumed(64, "128 registers of 32 bytes over 16 lanes"),
    threads_per_core=assumed(2048, "128 hardware threads of 16 lanes"),
    subgroups_per_core=assumed(128, _UNCHECKED),
)

ADRENO = profile(
    "adreno",
    subgroup_size=assumed(64, _UNCHECKED),
    subgroup_sizes=assumed((64, 128), _UNCHECKED),
    sector_bytes=assumed(64, "one cache line"),
    line_bytes=assumed(64, "not documented"),
    workgroup_bytes_per_core=assumed(32 * 1024, _UNCHECKED),
    workgroup_bytes_max=assumed(32 * 1024, _UNCHECKED),
    registers_per_core=assumed(64 * 1024, "not documented"),
    threads_per_core=assumed(2048, "not documented"),
    subgroups_per_core=assumed(32, "not documented"),
    workgroups_per_core=assumed(16, "not documented"),
)

_NO_CORES = "does not apply to a software adapter: charged as on NVIDIA"
_IN_SOFTWARE = {
    "banks": assumed(32, _NO_CORES),
    "bank_width": assumed(4, _NO_CORES),
    "fma": assumed("separate", "like the software adapter that was measured"),
    "workgroup_bytes_per_core": assumed(48 * 1024, _NO_CORES),
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
        "texel_outside": measured("zero", "loads around textures of all shapes on Mesa 22.3.6 under wgpu 0.32"),
        "texel_f16": measured("zero", "stores of random numbers on Mesa 22.3.6"),
        "out_of_bounds": measured(
            "zero-buffers", "loads and stores past the end of arrays and vectors in each space, Mesa 22.3.6, wgpu 0.32"
        ),
        "loop_turns": measured(65535, "counts of single, nested and consecutive loops on Mesa 22.3.6"),
    },
)

SWIFTSHADER = profile(
    "swiftshader",
    **_IN_SOFTWARE
    | {
        "subgroup_size": measured(4, "SwiftShader under wgpu 29"),
        "subgroup_sizes": measured((4,), "SwiftShader under wgpu 29"),
        "out_of_bounds": measured(
            "clamp", "loads and stores past the end of arrays and vectors in each space, wgpu 0.32"
        ),
    },
)

DEVICES: dict[str, Device] = {
    device.name: device for device in (NVIDIA, AMD_RDNA, AMD_CDNA, APPLE, INTEL, ADRENO, LAVAPIPE, SWIFTSHADER)
}

MERGED = "+merged"  # suffix of a profile's name


def merged(device: Device) -> Device:
    """Return the profile with a compiler that merges adjacent accesses."""
    return device.with_(name=device.name + MERGED, merge_adjacent=True)


def get(name: str, files: Sequence[str] = ()) -> Device:
    """Look up a profile by name, in any case, with `_` or `-`; `amd`, a vendor with several, means the first.

    `nvidia+merged` is `nvidia` with a compiler that merges adjacent accesses (`Device.merge_adjacent`). Raises
    ValueError, which lists the known names, with those of profiles in `files`.
    """
    wanted = name.lower().replace("_", "-")
    if wanted.endswith(MERGED):
        return merged(get(name[: -len(MERGED)]))
    device = DEVICES.get(wanted) or next((d for known, d in DEVICES.items() if known.startswith(f"{wanted}-")), None)
    if device is None:
        known = (*DEVICES, *files)
        hint = near_miss(name.lower(), known)
        raise ValueError(f"there is no device {name!r}{hint}; the devices are {', '.join(known)}")
    return device

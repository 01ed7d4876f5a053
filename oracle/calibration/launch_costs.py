"""What a launch, a workgroup and a barrier cost, and how many workgroups share a core.

Residency shows as steps: each workgroup waits for one load after the other, and the time grows with the number of
workgroups that a core runs one after another. Workgroup memory of 8 to 48 KiB needs a device that grants more than
WebGPU's default of 16 KiB.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel_text import (
    L2_WORDS,
    LINE_WORDS,
    SUBGROUP,
    WORD_BYTES,
    Launch,
    MicroBenchmark,
    benchmark,
    per_core,
    shrunk,
    successors,
)

_SIZES = (32, 64, 128, 256, 512, 1024)
_MEMORY = (4096, 6144, 8192, 8704, 9728, 10240, 12288, 12800, 16384, 16896, 20480, 24576, 25088, 32768, 40960, 49152)
_CHASED = 16
_BARRIERS = 8
_TABLE_WORDS = 1024  # of workgroup memory, at its start, that residency benchmarks use
_RESIDENT_INVOCATIONS = 2048  # of a full core


def launch_costs(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of launches, workgroups, barriers and residency."""
    for workgroups in sorted({1, cores}):
        launch = Launch(cores, scale, SUBGROUP, workgroups)
        yield _empty("launch", {"workgroups": workgroups}, launch, (workgroups, 1, 1))
    for size in _SIZES:
        rows = max(1, round(8 * scale))
        columns = cores * _RESIDENT_INVOCATIONS // size
        yield _empty("workgroup_start", {"size": size}, Launch(cores, scale, size, rows * columns), (columns, rows, 1))
    for size in _SIZES:
        yield barriers("barrier", {"size": size}, per_core(cores, scale, size, _RESIDENT_INVOCATIONS // size), 512)
    for memory in _MEMORY:
        yield _by_memory(memory, per_core(cores, scale, 64, max(1, round(24 * min(1.0, scale * 16)))))
    for size in _SIZES:
        yield _by_size(per_core(cores, scale, size, 4 * _RESIDENT_INVOCATIONS // size))


def _empty(constant: str, parameters: dict[str, float], launch: Launch, grid: tuple[int, int, int]) -> MicroBenchmark:
    """Make a benchmark without work."""
    work = {"operations": 0, "chain": 0, "global_requests": 0, "shared_requests": 0, "flops": 0}
    return benchmark(constant, parameters, launch, trips=0, body=[], result="params.zero", work=work, grid=grid)


def barriers(constant: str, parameters: dict[str, float], launch: Launch, trips: int) -> MicroBenchmark:
    """Make a benchmark of barriers; a store before each keeps it. `trips`: iterations at full scale."""
    trips = launch.shortened(trips)
    passed = trips * _BARRIERS
    return benchmark(
        constant,
        parameters,
        launch,
        trips=trips,
        declarations=f"var<workgroup> mine: array<u32, {launch.size}>;",
        body=[line for n in range(_BARRIERS) for line in (f"mine[lane] = trip + {n}u;", "workgroupBarrier();")],
        finish=["let last = mine[lane ^ 1u];"],
        result="last",
        work={
            "barriers": launch.workgroups * passed,
            "shared_requests": launch.subgroups * (passed + 1),
            "shared_wavefronts": launch.subgroups * (passed + 1),
            "operations": launch.workgroups * passed,
            "chain": passed,
        },
    )


def _by_memory(memory: int, launch: Launch) -> MicroBenchmark:
    """Chase indices in workgroup memory, of which a workgroup declares `memory` bytes."""
    trips = launch.shortened(128)
    chain = trips * _CHASED
    filling = launch.workgroups * _TABLE_WORDS // SUBGROUP
    requests = filling + launch.subgroups * chain
    return benchmark(
        "residency_by_workgroup_memory",
        {"bytes": memory},
        launch,
        trips=trips,
        declarations=f"var<workgroup> table: array<u32, {memory // WORD_BYTES}>;",
        setup=[
            f"for (var e = lane; e < {_TABLE_WORDS}u; e += {launch.size}u) {{",
            f"  table[e] = (e + params.step) & {_TABLE_WORDS - 1}u;",
            "}",
            "workgroupBarrier();",
            "var at = lane;",
        ],
        body=["at = table[at];"] * _CHASED,
        result="at",
        values={"step": 33},
        work={
            "workgroup_memory_bytes": memory,
            "shared_requests": requests,
            "shared_wavefronts": requests,
            "barriers": launch.workgroups,
            "operations": launch.subgroups * chain * SUBGROUP,
            "chain": chain,
        },
    )


def _by_size(launch: Launch) -> MicroBenchmark:
    """Chase indices in a buffer that fits in the L2 cache only; all lanes of a subgroup load one word."""
    trips = launch.shortened(8)
    chain = trips * _CHASED
    words = shrunk(L2_WORDS, 1 << 15, launch.scale)
    lines = words // LINE_WORDS
    step = LINE_WORDS * (lines * 5 // 8 | 1)
    requests = launch.subgroups * chain
    return benchmark(
        "residency_by_size",
        {"size": launch.size},
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read> first: array<u32>;",
        setup=[
            f"let subgroup = workgroup.x * {launch.size // SUBGROUP}u + (lane >> 5u);",
            "var at = (subgroup * params.advance) & params.mask;",
        ],
        body=["at = first[at];"] * _CHASED,
        result="at",
        values={"mask": words - 1, "advance": (chain | 1) * step % words},
        arrays={"first": successors(words, step)},
        work={
            "global_requests": requests,
            "global_sectors": requests,
            "global_lines": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "operations": requests * SUBGROUP,
            "chain": chain,
        },
    )

"""What a subgroup waits for, with one workgroup for each core: barriers, loads, and results of atomic operations.

A barrier follows an access that keeps it: a store to workgroup memory, or, where it orders `storage`, a load or with
`stores` a store of words of storage that no other workgroup has. An atomic operation takes its index from the result of
the one before: each word holds the index of the next, and every operation leaves or stores that number. Each lane has a
ring of words. Loads are independent, each of a line that only the L2 cache holds.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .kernel_text import L2_WORDS, SUBGROUP, WORD_BYTES, Launch, MicroBenchmark, benchmark, per_core, successors, zeros
from .launch_costs import barriers

_SIZES = (64, 256, 1024)
_BARRIERS = 8
_UNROLLED = 8
_WORDS = 256  # of a workgroup that executes atomic operations
_LOADS = ((1, 1), (1, 4), (1, 16), (1, 32), (4, 1), (4, 4), (4, 8), (4, 16))  # words of each, and how many
_CALLS = {
    "load": "atomicLoad(&words[{at}])",
    "add": "atomicAdd(&words[{at}], params.zero)",
    "exchange": "atomicExchange(&words[{at}], {following})",
    "compare_exchange": "atomicCompareExchangeWeak(&words[{at}], params.never, 0u).old_value",
}


def waits(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of barriers and of atomic operations that are waited for."""
    for size in _SIZES:
        launch = per_core(cores, scale, size, 1)
        yield barriers("barrier_latency", {"size": size, "storage": 0, "stores": 1}, launch, 128)
        for stores in (0, 1):
            yield _storage_barriers(stores, launch)
    launch = per_core(cores, scale, SUBGROUP, 1)
    for kind, call in _CALLS.items():
        yield _storage_atomics(kind, call, launch)
        yield _workgroup_atomics(kind, call, launch)
    for width, loads in _LOADS:
        yield _independent_loads(width, loads, launch)


def _storage_barriers(stores: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(32)
    passed = trips * _BARRIERS
    requests = launch.subgroups * (passed + 1)
    return benchmark(
        "barrier_latency",
        {"size": launch.size, "storage": 1, "stores": stores},
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read_write> words: array<u32>;",
        setup=["let at = workgroup.x * params.stride + lane;", "var last = params.zero;"],
        body=[
            line
            for n in range(_BARRIERS)
            for line in (
                f"words[at] = trip + {n}u;" if stores else f"last += words[at ^ {n + 1}u];",
                "storageBarrier();",
            )
        ],
        finish=["last += words[at ^ 1u];"],
        result="last",
        values={"stride": launch.size},
        arrays={"words": np.zeros(launch.workgroups * launch.size, np.uint32)},
        work={
            "barriers": launch.workgroups * passed,
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "operations": launch.workgroups * passed,
            "chain": passed,
        },
    )


def _independent_loads(width: int, loads: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of iterations with so many loads, each of so many words, through the buffer once."""
    kind = "u32" if width == 1 else f"vec{width}u"
    elements = L2_WORDS // width
    trips = launch.shortened(elements // (loads * launch.invocations))
    requests = launch.subgroups * trips * loads
    return benchmark(
        "loads_in_flight",
        {"width": width, "loads": loads},
        launch,
        trips=trips,
        declarations=f"@group(0) @binding(2) var<storage, read> words: array<{kind}>;",
        setup=[f"var at = workgroup.x * {launch.size}u + lane;", f"var total = {kind}();"],
        body=[
            *(f"total += words[(at + {n}u * params.stride) & params.mask];" for n in range(loads)),
            f"at += {loads}u * params.stride;",
        ],
        result="total" if width == 1 else "dot(total, vec4u(1))",
        values={"mask": elements - 1, "stride": launch.invocations},
        arrays={"words": zeros(L2_WORDS).reshape(-1, width) if width > 1 else zeros(L2_WORDS)},
        work={
            "operations": requests * SUBGROUP,
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * width * WORD_BYTES,
            "chain": 0,
        },
    )


def _chain(call: str) -> list[str]:
    """Return operations of which each needs the result of the one before."""
    return [f"at = {call.format(at='at', following=f'(at + params.step) & {_WORDS - 1}u')};"] * _UNROLLED


def _storage_atomics(kind: str, call: str, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(32)
    requests = launch.subgroups * trips * _UNROLLED
    call = call.replace("{at}", "base + {at}")
    return benchmark(
        "storage_atomic_latency",
        {kind: 1},
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read_write> words: array<atomic<u32>>;",
        setup=["let base = workgroup.x * params.stride;", "var at = lane;"],
        body=_chain(call),
        result="at",
        values={"step": SUBGROUP, "stride": _WORDS},
        arrays={"words": np.tile(successors(_WORDS, SUBGROUP), launch.workgroups)},
        work={
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "atomics": requests * SUBGROUP,
            "operations": requests * SUBGROUP,
            "chain": trips * _UNROLLED,
        },
    )


def _workgroup_atomics(kind: str, call: str, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(128)
    requests = launch.subgroups * trips * _UNROLLED
    filling = launch.subgroups * _WORDS // SUBGROUP
    return benchmark(
        "workgroup_atomic_latency",
        {kind: 1},
        launch,
        trips=trips,
        declarations=f"var<workgroup> words: array<atomic<u32>, {_WORDS}>;",
        setup=[
            f"for (var e = lane; e < {_WORDS}u; e += {launch.size}u) {{",
            f"  atomicStore(&words[e], (e + params.step) & {_WORDS - 1}u);",
            "}",
            "workgroupBarrier();",
            "var at = lane;",
        ],
        body=_chain(call),
        result="at",
        values={"step": SUBGROUP},
        work={
            "shared_requests": filling + requests,
            "atomics": (filling + requests) * SUBGROUP,
            "barriers": launch.workgroups,
            "operations": requests * SUBGROUP,
            "chain": trips * _UNROLLED,
        },
    )

"""What software adapters charge besides: processors that run subgroups as vectors, and workgroups in threads.

Atomic operations wait for another core where workgroups change one line of memory. `words` are those that the lanes of
a workgroup change, and `shared` is 1 where all workgroups change the same ones. A loop has conditions with little
behind them, chains of dependent sums of floats, or independent ones: a processor starts one each cycle or more, but
waits some cycles for each result.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .kernel_text import SUBGROUP, WORD_BYTES, Launch, MicroBenchmark, benchmark, per_core

_SIZE = 256
_UNROLLED = 8
_CALLS = {
    "add": "atomicAdd(&words[at], mine + {n}u);",
    "exchange": "sum += atomicExchange(&words[at], mine + {n}u);",
}


def software_adapters(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks for software adapters."""
    for size in (32, 256):
        yield _starts(per_core(cores, scale, size, max(1, round(1e6 * scale / size))))
    full = per_core(cores, scale, _SIZE, 32)
    for kind in _CALLS:
        for words in (1, 32, 256):
            for shared in (0, 1):
                yield _crossing(kind, words, shared, full)
    for conditions in (1, 4, 16):
        yield _conditions(conditions, full)
    for chains in (1, 2, 4, 8):
        for type_ in ("f32", "u32"):
            yield _sums(type_, chains, full)


def _starts(launch: Launch) -> MicroBenchmark:
    """Start many workgroups without work: the time of a few is lost in that of a launch."""
    work = {"operations": 0, "chain": 0, "global_requests": 0, "shared_requests": 0, "flops": 0}
    return benchmark("software_start", {"size": launch.size}, launch, trips=0, body=[], result="params.zero", work=work)


def _crossing(kind: str, words: int, shared: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(16)
    requests = launch.subgroups * trips * _UNROLLED
    stride = 0 if shared else max(words, 16)
    return benchmark(
        f"software_atomic_{kind}",
        {"words": words, "shared": shared},
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read_write> words: array<atomic<u32>>;",
        setup=["let at = workgroup.x * params.stride + (lane & params.mask);", "var mine = lane;", "var sum = 0u;"],
        body=["mine += params.step;", *(_CALLS[kind].format(n=n) for n in range(_UNROLLED))],
        result="sum",
        values={"step": 7, "stride": stride, "mask": words - 1},
        arrays={"words": np.zeros((1 if shared else launch.workgroups) * max(words, 16), np.uint32)},
        work={
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "atomics": requests * SUBGROUP,
            "operations": requests * SUBGROUP,
            "chain": 0,
        },
    )


def _conditions(conditions: int, launch: Launch) -> MicroBenchmark:
    """Add to a number where a bit of it is set, `conditions` times in an iteration."""
    trips = launch.shortened(2048 / conditions)
    bits = [f"if ((x & {1 << number}u) != 0u) {{ x += params.step; }}" for number in range(conditions)]
    return benchmark(
        "software_conditions",
        {"conditions": conditions},
        launch,
        trips=trips,
        setup=["var x = lane;"],
        body=bits,
        result="x",
        values={"step": 7},
        work={"operations": launch.invocations * trips * conditions, "chain": 0},
    )


def _sums(type_: str, chains: int, launch: Launch) -> MicroBenchmark:
    """Add a constant to each of `chains` numbers in turn, 32 sums in an iteration; products keep sums from folding."""
    trips = launch.shortened(512)
    names = "abcdefgh"[:chains]
    turns = 32 // chains
    body = [f"{x} = {x} * s + t;" for _ in range(turns) for x in names]
    steps = trips * turns * chains
    return benchmark(
        "software_sums",
        {"chains": chains, "float": int(type_ == "f32")},
        launch,
        trips=trips,
        setup=[
            f"let s = {type_}(params.step);",
            f"let t = {type_}(params.one);",
            *(f"var {x} = {type_}(lane + {n}u);" for n, x in enumerate(names)),
        ],
        body=body,
        result=" ^ ".join(f"bitcast<u32>({x})" for x in names),
        values={"step": 1},
        work={
            "operations": 2 * launch.invocations * steps,
            "flops": 2 * launch.invocations * steps if type_ == "f32" else 0,
            "chain": 2 * steps // chains,
        },
    )

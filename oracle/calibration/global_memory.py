"""Storage buffers: loads by stride, offset and footprint, and at random places, their latency, and stores.

Footprints fit in the L1 cache (64 KiB, which every workgroup reads), in the L2 cache (16 MiB), or in neither (two
buffers of 128 MiB, the most that WebGPU grants by default). In a chase each element holds the index of the next, so
that a load takes few instructions or one chain has one load after the other. In a stream each invocation adds a
constant to its index, and all addresses of an iteration are known before its loads. `footprint` is the size of the
buffers in bytes; with a stride above 8 words, some of their sectors are never touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

import numpy as np

from .kernel_text import (
    L2_WORDS,
    LINE_WORDS,
    SECTOR_WORDS,
    SUBGROUP,
    WORD_BYTES,
    Launch,
    MicroBenchmark,
    benchmark,
    per_core,
    shrunk,
    successors,
    zeros,
)

_L1_WORDS = 1 << 14
_BINDING_WORDS = 1 << 25
_STRIDES = (1, 2, 4, 8, 16, 32, 64)
_CHASED = 16  # loads of a chain in one iteration
_STREAMED = 8  # accesses of a stream in one iteration
_READ = "@group(0) @binding(2) var<storage, read> first: array<u32>;"
_READ_TWO = f"{_READ}\n@group(0) @binding(3) var<storage, read> second: array<u32>;"


def global_memory(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of storage buffers."""
    cached, large = shrunk(L2_WORDS, 1 << 15, scale), shrunk(_BINDING_WORDS, 1 << 16, scale)
    full, one = per_core(cores, scale, 256, 8), per_core(cores, scale, SUBGROUP, 1)
    for stride in _STRIDES:
        yield _chase("global_load_throughput", stride, _L1_WORDS, full, 512 // _lines(stride))
    for stride in _STRIDES:
        yield _stream_loads(stride, 0, cached, 1, full, full.shortened(512 // _sectors(stride)))
    for offset in (1, 4, 8, 16):
        yield _stream_loads(1, offset, cached, 1, full, full.shortened(128))
    for stride in _STRIDES[:-1]:
        yield _stream_loads(stride, 0, large, 2, full, _passes(full, stride, large))
    for stride, words, launch in (
        (1, _L1_WORDS, one),
        (32, _L1_WORDS, one),
        (1, cached, one),
        (8, cached, one),
        (8, large, per_core(cores, scale, SUBGROUP, 2)),
    ):
        yield _chase("global_load_latency", stride, words, launch, 128 if words == _L1_WORDS else 32)
    for width in (2, 4):
        yield from (_wide_loads(width, words, full) for words in (_L1_WORDS, cached))
    for words in (L2_WORDS // 4, L2_WORDS, 4 * L2_WORDS):
        yield _scattered_loads(shrunk(words, words >> 8, scale), full)
    half = per_core(cores, scale, 256, 4)
    for stride in (1, 2, 4, 8, 16, 32):
        yield _stores(stride, half, cached, again=True)
    for stride in (1, 2, 4, 8, 16, 32):
        yield _stores(stride, half, shrunk(_BINDING_WORDS, 1 << 15, scale), again=False)


def _sectors(stride: int) -> int:
    """Return the sectors of a load by a subgroup whose lanes are `stride` words apart, the first of them aligned."""
    return min(SUBGROUP, SUBGROUP * stride // SECTOR_WORDS)


def _lines(stride: int) -> int:
    """Return the lines of such a load."""
    return min(SUBGROUP, SUBGROUP * stride // LINE_WORDS)


def _charged(requests: int, stride: int) -> dict[str, float]:
    return {
        "global_requests": requests,
        "global_sectors": requests * _sectors(stride),
        "global_lines": requests * _lines(stride),
        "global_bytes": requests * SUBGROUP * WORD_BYTES,
        "operations": requests * SUBGROUP,
    }


def _chase(constant: str, stride: int, words: int, launch: Launch, trips: int) -> MicroBenchmark:
    """Load the index of the next load; the windows of the subgroups lie apart, and cover the buffer in turn."""
    trips = launch.shortened(trips)
    window = SUBGROUP * stride
    step = window * (words // window * 5 // 8 | 1)  # an odd number of windows: the chain visits each of them
    chain = trips * _CHASED
    return benchmark(
        constant,
        {"stride": stride, "footprint": words * WORD_BYTES},
        launch,
        trips=trips,
        declarations=_READ,
        setup=[
            f"let subgroup = workgroup.x * {launch.size // SUBGROUP}u + (lane >> 5u);",
            "var at = (subgroup * params.advance + (lane & 31u) * params.stride) & params.mask;",
        ],
        body=["at = first[at];"] * _CHASED,
        result="at",
        values={"mask": words - 1, "stride": stride, "advance": (chain | 1) * step % words},
        arrays={"first": successors(words, step % words)},
        work={**_charged(launch.subgroups * chain, stride), "chain": chain},
    )


def _passes(launch: Launch, stride: int, words: int) -> int:
    """Return the iterations in which a stream over two buffers of `words` reads each of its addresses once."""
    return ceil(words / (launch.invocations * stride * _STREAMED // 2))


def _stream_loads(stride: int, offset: int, words: int, buffers: int, launch: Launch, trips: int) -> MicroBenchmark:
    """Load and add; loads alternate between the buffers, and those of each buffer advance by the whole grid."""
    body: list[str] = []
    for number in range(_STREAMED):
        body.append(f"sum += {('first', 'second')[number % buffers]}[at];")
        if number % buffers == buffers - 1:
            body.append("at = (at + params.advance) & params.mask;")
    requests = launch.subgroups * trips * _STREAMED
    work = _charged(requests, stride)
    if offset:  # of stride 1: a window of 4 sectors and one line begins `offset` words late
        work["global_sectors"] += requests if offset % SECTOR_WORDS else 0
        work["global_lines"] += requests
        # The last window of the buffer goes on at its start: another sector of the same number, and another line.
    return benchmark(
        "global_load_offset" if offset else "global_load_throughput",
        {"stride": stride, "footprint": words * WORD_BYTES * buffers} | ({"offset": offset} if offset else {}),
        launch,
        trips=trips,
        declarations=_READ if buffers == 1 else _READ_TWO,
        setup=[
            f"var at = ((workgroup.x * {launch.size}u + lane) * params.stride + params.zero) & params.mask;",
            "var sum = 0u;",
        ],
        body=body,
        result="sum",
        values={
            "mask": words - 1,
            "stride": stride,
            "zero": offset,
            "advance": launch.invocations * stride % words or SUBGROUP * stride,
        },
        arrays={name: zeros(words) for name in ("first", "second")[:buffers]},
        work={**work, "chain": 0},
    )


def _wide_loads(width: int, words: int, launch: Launch) -> MicroBenchmark:
    """Load vectors of consecutive elements, and use all components."""
    trips = launch.shortened(256 // width)
    elements = words // width
    requests = launch.subgroups * trips * _STREAMED
    body = [
        "{ let v = first[at]; sum += v.x + v.y" + (" + v.z + v.w; }" if width == 4 else "; }"),
        "at = (at + params.advance) & params.mask;",
    ]
    return benchmark(
        "global_load_wide",
        {"width": width, "footprint": words * WORD_BYTES},
        launch,
        trips=trips,
        declarations=_READ.replace("array<u32>", f"array<vec{width}u>"),
        setup=[f"var at = (workgroup.x * {launch.size}u + lane) & params.mask;", "var sum = 0u;"],
        body=body * _STREAMED,
        result="sum",
        values={"mask": elements - 1, "advance": launch.invocations % elements or launch.size},
        arrays={"first": zeros(words).reshape(elements, width)},
        work={
            "global_requests": requests,
            "global_sectors": requests * 4 * width,
            "global_lines": requests * width,
            "global_bytes": requests * SUBGROUP * WORD_BYTES * width,
            "operations": requests * SUBGROUP,
            "chain": 0,
        },
    )


def _scattered_loads(words: int, launch: Launch) -> MicroBenchmark:
    """Load words at random places of a buffer, a different one for each invocation."""
    trips = launch.shortened(2)
    requests = launch.subgroups * trips * _STREAMED
    body = ["state = state * 747796405u + 2891336453u;", "sum += first[(state ^ (state >> 15u)) & params.mask];"]
    return benchmark(
        "global_load_scattered",
        {"footprint": words * WORD_BYTES},
        launch,
        trips=trips,
        declarations=_READ,
        setup=[f"var state = (workgroup.x * {launch.size}u + lane + params.zero) * 2654435769u;", "var sum = 0u;"],
        body=body * _STREAMED,
        result="sum",
        values={"mask": words - 1},
        arrays={"first": zeros(words)},
        work={
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "operations": requests * SUBGROUP,
            "chain": 0,
        },
    )


def _stores(stride: int, launch: Launch, most: int, *, again: bool) -> MicroBenchmark:
    """Store to words of the invocation's own, at most `most` words in all; `again`: over and over.

    The first word is `stride` words from that of the next invocation, and each store advances by the whole grid.
    """
    apart = launch.invocations * stride
    rounds = max(1, most // apart)
    rounds = max(2, 1 << rounds.bit_length() - 1) if again else rounds
    trips = launch.shortened(8192 / _sectors(stride)) if again else rounds
    unrolled = 2 if again else 1
    words = apart * rounds
    requests = launch.subgroups * trips * unrolled
    # Consecutive stores go to different words, so that none is dead.
    turn = ["round = (round + 1u) & params.mask;", "out[base + round * params.advance] = round;"]
    return benchmark(
        "global_store_throughput" if again else "global_store_once",
        {"stride": stride, "footprint": words * WORD_BYTES},
        launch,
        trips=trips,
        declarations="@group(0) @binding(2) var<storage, read_write> out: array<u32>;",
        setup=[
            f"let base = (workgroup.x * {launch.size}u + lane) * params.stride;",
            "var round = params.zero;",
        ],
        body=turn * unrolled if again else ["out[base + trip * params.advance] = trip;"],
        result="params.zero",
        values={"mask": rounds - 1, "stride": stride, "advance": apart},
        arrays={"out": np.zeros(words, np.uint32)},
        work={**_charged(requests, stride), "chain": 0},
    )

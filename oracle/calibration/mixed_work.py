"""Accesses among arithmetic, loops over rows, and loads that wait for the L2 cache or memory.

A unit that is busy hides what an access costs elsewhere: one line a cycle leaves room for four instructions. Here each
access has enough arithmetic beside it that issue decides. Loops over rows are those of many kernels: the index begins
at the lane, and the compiler checks each access. Chases go through lines in an order that no prefetch follows, over
buffers that the L2 cache holds, holds in part, or does not hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from .kernel_text import LINE_WORDS, SUBGROUP, WORD_BYTES, Launch, MicroBenchmark, benchmark, per_core, zeros

_ARITHMETIC = (8, 24)  # instructions beside an access
_ACCESSES = 8  # in an iteration
_MIB = 1 << 18  # words
_CHASED = 16  # loads of a chain in one iteration
_READ = "@group(0) @binding(2) var<storage, read> first: array<u32>;"
_WRITE = "@group(0) @binding(2) var<storage, read_write> first: array<u32>;"
_TILE = "var<workgroup> tile: array<u32, 256>;"


def mixed_work(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of accesses among other work."""
    full = per_core(cores, scale, 256, 8)
    for beside in _ARITHMETIC:
        for kind in ("storage_load", "storage_store", "workgroup_load", "workgroup_store"):
            yield _among_arithmetic(kind, beside, full)
    for size, workgroups, columns in ((64, 8, 4096), (64, 32, 1024), (256, 8, 4096), (256, 32, 1024)):
        yield _rows(columns, per_core(cores, scale, size, workgroups))
    for mib in (8, 24, 32, 40, 64, 128):
        yield _chase(_words(mib, scale), per_core(cores, scale, SUBGROUP, 1))
    for workgroups in (1, 4, 8):
        for mib in (16, 128):
            yield _chase(_words(mib, scale), per_core(cores, scale, 256, workgroups))


def _words(mib: int, scale: float) -> int:
    """Return the words of a buffer that has some MiB at scale 1, and never less than a hundredth of that."""
    return int(mib * _MIB * min(1.0, max(0.01, scale))) // LINE_WORDS * LINE_WORDS


def _among_arithmetic(kind: str, beside: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of accesses to one line, each with `beside` additions of four independent values."""
    place, _, access = kind.partition("_")
    array = "tile" if place == "workgroup" else "first"
    values = "abcd"
    body: list[str] = []
    for number in range(_ACCESSES):
        index = f"(at + {number}u) & 255u"
        body.append(f"a ^= {array}[{index}];" if access == "load" else f"{array}[{index}] = a;")
        body += [f"{values[i % 4]} = {values[i % 4]} + {values[(i + 3) % 4]};" for i in range(beside)]
    declarations = _TILE if place == "workgroup" else _READ if access == "load" else _WRITE
    trips = launch.shortened(1600 / beside)
    requests = launch.subgroups * trips * _ACCESSES
    return benchmark(
        f"{kind}_among_arithmetic",
        {"beside": beside},
        launch,
        trips=trips,
        declarations=declarations,
        setup=["let at = lane + params.zero;", *(f"var {x} = lane + {i}u;" for i, x in enumerate(values))],
        body=body,
        result="a ^ b ^ c ^ d",
        arrays={} if place == "workgroup" else {"first": np.zeros(512, np.uint32)},
        work={"operations": requests * SUBGROUP * beside, "chain": 0},
    )


def _rows(columns: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark in which each workgroup adds up a row, again and again."""
    trips = launch.shortened(6)
    loop = [
        f"for (var i = lane; i < params.mask; i += {launch.size}u) {{",
        "  sum += first[(workgroup.x & 1u) * params.mask + i];",
        "}",
    ]
    return benchmark(
        "loop_over_a_row",
        {"columns": columns, "size": launch.size},
        launch,
        trips=trips,
        declarations=_READ,
        setup=["var sum = 0u;"],
        body=loop,
        result="sum",
        values={"mask": columns},
        arrays={"first": zeros(2 * columns)},
        work={"operations": launch.invocations * trips * columns // launch.size, "chain": 0},
    )


def _chase(words: int, launch: Launch) -> MicroBenchmark:
    """Load the index of the next load. The chains of all subgroups together visit each line about once."""
    following, order = _cycle(words)
    trips = launch.shortened(max(1, len(order) / launch.subgroups / _CHASED))
    return benchmark(
        "global_load_latency_by_footprint",
        {"footprint": words * WORD_BYTES, "subgroups_per_core": launch.subgroups / launch.cores},
        launch,
        trips=trips,
        declarations=f"{_READ}\n@group(0) @binding(3) var<storage, read> starts: array<u32>;",
        setup=[
            f"let subgroup = workgroup.x * {launch.size // SUBGROUP}u + (lane >> 5u);",
            "var at = starts[subgroup] + (lane & 31u);",
        ],
        body=["at = first[at];"] * _CHASED,
        result="at",
        arrays={"first": following, "starts": _starts(order, launch.subgroups)},
        work={"operations": launch.invocations * trips * _CHASED, "chain": trips * _CHASED},
    )


def _starts(order: NDArray[np.int64], chains: int) -> NDArray[np.uint32]:
    """Return the first words of lines that are evenly spaced in the cycle."""
    return (order[np.arange(chains) * len(order) // chains] * LINE_WORDS).astype(np.uint32)


@cache
def _cycle(words: int) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Return an array of which each word holds the index of the same word of the next line, in a random cycle, and the
    lines in the order of the cycle."""
    order = np.random.default_rng(1).permutation(words // LINE_WORDS)
    following = np.empty_like(order)
    following[order] = np.roll(order, -1)
    return (following[:, None] * LINE_WORDS + np.arange(LINE_WORDS)).astype(np.uint32).reshape(-1), order

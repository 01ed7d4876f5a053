"""What kernels do that take a few microseconds: start, execute code for the first time, and iterate over one statement.

Other micro-benchmarks are unrolled and repeat a body often, so that a launch, the first execution of an instruction and
the end of an iteration take a small part. Here they take most of the time.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .kernel_text import SUBGROUP, WORD_BYTES, Launch, MicroBenchmark, benchmark, per_core, zeros

_CODE = (64, 256, 1024)  # statements
_STATEMENTS = {"integer": "x = (x ^ {n}u) + params.one;", "fp32": "f = fma(f, s, {n}.5);"}
_FLOATS = {"integer": [], "fp32": ["let s = f32(params.one);", "var f = f32(lane);"]}
_RESULTS = {"integer": "x", "fp32": "bitcast<u32>(f)"}
_WORDS = 1 << 12  # of a buffer that the cache of a core holds
_FAR = 1 << 22  # of one that it does not
_TRIPS = 256
_HASH = 2654435761  # an odd factor without a pattern

# The statement of an iteration, with the operations of floats of a lane, the requests of storage of a subgroup, and the
# words of the buffer that it loads from.
_ITERATIONS = {
    "hash": (f"x = (x ^ (x >> 13u)) * {_HASH}u;", 0, 0, 0),
    "root": ("f = sqrt(f + s);", 2, 0, 0),
    "divide": ("x += (trip + lane) / params.stride;", 0, 0, 0),
    "divide_and_remainder": ("let n = trip + lane; x += n / params.stride + 3u * (n % params.stride);", 0, 0, 0),
    "signed_divide": ("x += u32(i32(trip + lane) / signed);", 0, 0, 0),
    "signed_remainder": ("x += u32(i32(trip + lane) % signed);", 0, 0, 0),
    "load": (f"x += words[(trip * {SUBGROUP}u + lane) & params.mask];", 0, 1, _WORDS),
    "far_load": (f"x += words[(trip * {_WORDS}u + lane) & params.mask];", 0, 1, _FAR),
    "largest": ("let word = words[trip & params.mask]; if (word > x) { x = word; at = trip; }", 0, 1, _WORDS),
    "skip": ("if ((trip & 1u) == params.one) { continue; } x += words[trip & params.mask];", 0, 0.5, _WORDS),
}
_STRIDES = (1, 5, 8, 9, 17, 32, 33, 36)  # words
_WIDE_STRIDES = (1, 3, 5, 8)  # of four words each
_LOADS = 4


def small_kernels(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of short launches, of code that is executed once, of short iterations and of cached loads."""
    for size in (SUBGROUP, 256):
        for workgroups in (1, 4, 16):
            for copies in (0, 1):
                yield _short(copies, per_core(cores, scale, size, workgroups), workgroups)
    for kind in _STATEMENTS:
        for statements in _CODE:
            for size, workgroups in ((SUBGROUP, 1), (256, 8)):
                yield _code(kind, statements, per_core(cores, scale, size, workgroups))
    for statement in _ITERATIONS:
        for size, workgroups in ((SUBGROUP, 1), (256, 1), (256, 8)):
            yield _iterations(statement, per_core(cores, scale, size, workgroups))
    for width, strides in ((1, _STRIDES), (4, _WIDE_STRIDES)):
        for stride in strides:
            yield _cached_loads(width, stride, per_core(cores, scale, 256, 8))


def _short(copies: int, launch: Launch, workgroups: int) -> MicroBenchmark:
    """Make a benchmark of workgroups that return, or copy a word for each invocation."""
    requests = 2 * copies * launch.subgroups
    declarations, setup, names = "", list[str](), ()
    if copies:
        declarations = "\n".join((
            "@group(0) @binding(2) var<storage, read> words: array<u32>;",
            "@group(0) @binding(3) var<storage, read_write> copy: array<u32>;",
        ))  # fmt: skip
        setup = [f"let at = workgroup.x * {launch.size}u + lane;", "copy[at] = words[at] + params.one;"]
        names = ("words", "copy")
    return benchmark(
        "short_copy" if copies else "short_launch",
        {"size": launch.size, "workgroups_per_core": workgroups},
        launch,
        trips=0,
        declarations=declarations,
        setup=setup,
        body=[],
        result="params.zero",
        arrays={name: np.zeros(launch.invocations, np.uint32) for name in names},
        work={
            "operations": 0,
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * WORD_BYTES,
            "flops": 0,
        },
    )


def _code(kind: str, statements: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark that executes each of so many statements once."""
    operations = launch.invocations * statements
    return benchmark(
        f"first_execution_{kind}",
        {"statements": statements, "workgroup": launch.size},
        launch,
        trips=1,
        setup=["var x = lane;", *_FLOATS[kind]],
        body=[_STATEMENTS[kind].format(n=number * 37 + 1) for number in range(statements)],
        result=_RESULTS[kind],
        work={"operations": operations, "chain": statements, "flops": 2 * operations * (kind == "fp32")},
    )


def _iterations(name: str, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of iterations over one statement."""
    statement, flops, requests, words = _ITERATIONS[name]
    trips = 2 * launch.shortened(_TRIPS / 2)
    load = "@group(0) @binding(2) var<storage, read> words: array<u32>;"
    kind = "fp32" if flops else "integer"
    return benchmark(
        f"iteration_{name}",
        {"workgroup": launch.size, "subgroups": launch.subgroups // launch.cores},
        launch,
        trips=trips,
        declarations=load if words else "",
        setup=["var x = lane + params.one;", "var at = 0u;", "let signed = i32(params.stride);", *_FLOATS[kind]],
        body=[statement],
        finish=["x += at;"],
        result=_RESULTS[kind],
        values={"mask": max(1, words) - 1, "stride": 7},
        arrays={"words": zeros(words)} if words else {},
        work={
            "operations": launch.invocations * trips,
            "chain": trips,
            "global_requests": launch.subgroups * int(requests * trips),
            "flops": launch.invocations * trips * flops,
        },
    )


def _cached_loads(width: int, stride: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of loads from the cache of a core, of so many words each and so many such apart."""
    trips = launch.shortened(_TRIPS / 4)
    requests = launch.subgroups * trips * _LOADS
    kind, result = ("u32", "total") if width == 1 else ("vec4u", "total.x ^ total.y ^ total.z ^ total.w")
    return benchmark(
        "cached_loads" if width == 1 else "cached_wide_loads",
        {"stride": stride},
        launch,
        trips=trips,
        declarations=f"@group(0) @binding(2) var<storage, read> words: array<{kind}>;",
        setup=[f"var at = (lane & {SUBGROUP - 1}u) * params.stride;", f"var total = {kind}();"],
        body=[*(f"total += words[at + {n}u];" for n in range(_LOADS)), "at ^= params.zero;"],
        result=result,
        values={"stride": stride},
        arrays={"words": zeros(2 * _WORDS)},
        work={
            "operations": requests * SUBGROUP,
            "global_requests": requests,
            "global_bytes": requests * SUBGROUP * width * WORD_BYTES,
            "chain": 0,
        },
    )

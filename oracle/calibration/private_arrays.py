"""Arrays of function space whose index is known at run time only.

A private array is read by a chase, or stored to and then read, with one index for all lanes or with neighbouring
indices. Where a driver keeps an array depends on its length and on its accesses, so both vary. Most accesses of real
kernels are in loops over an array's elements.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel_text import Launch, MicroBenchmark, benchmark, indented, per_core

_ACCESSES = 8  # of a private array in one iteration of the longer benchmarks
_STATEMENTS = {
    "load": "sum += own[at];",
    "store": "own[at] = t + f32(at);",
    "update": "own[at] += t;",
}
_FLOATS = ["let s = f32(params.one);", "let t = f32(params.zero) + f32(lane);", "var sum = 0.0;"]


def private_arrays(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of private arrays."""
    full = per_core(cores, scale, 256, 8)
    for words in (8, 32, 128):
        for spread in (0, 1):
            yield _chase(words, spread, full)
            yield _stores(words, spread, full)
    for access in _STATEMENTS:
        for words in (4, 8, 16):
            for places in (1, 4):
                yield _places(access, words, places, full)
    for words in (4, 8, 16, 24, 64):
        yield _loop(words, full)
    for rows, columns in ((2, 4), (4, 4), (8, 8)):
        yield _nested_loops(rows, columns, full)


def _array(words: int, spread: int) -> list[str]:
    """Declare and fill an array whose elements hold the index of the next."""
    return [
        f"var own: array<u32, {words}>;",
        f"for (var e = 0u; e < {words}u; e++) {{ own[e] = (e + params.step) & {words - 1}u; }}",
        f"var at = (params.zero{' + lane' if spread else ''}) & {words - 1}u;",
    ]


def _chase(words: int, spread: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(128)
    chain = trips * _ACCESSES
    return benchmark(
        "private_array_load",
        {"words": words, "spread": spread},
        launch,
        trips=trips,
        setup=_array(words, spread),
        body=["at = own[at];"] * _ACCESSES,
        result="at",
        values={"step": 3},
        work={
            "operations": launch.invocations * chain,
            "private_loads": launch.invocations * chain,
            "private_stores": launch.invocations * words,
            "chain": chain,
        },
    )


def _stores(words: int, spread: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(128)
    chain = trips * _ACCESSES
    return benchmark(
        "private_array_store",
        {"words": words, "spread": spread},
        launch,
        trips=trips,
        setup=_array(words, spread),
        body=[f"at = (at + params.step) & {words - 1}u;", "own[at] += trip;"] * _ACCESSES,
        finish=["var sum = 0u;", f"for (var e = 0u; e < {words}u; e++) {{ sum += own[e]; }}"],
        result="sum",
        values={"step": 3},
        work={
            "operations": launch.invocations * chain,
            "private_loads": launch.invocations * (chain + words),
            "private_stores": launch.invocations * (chain + words),
            "chain": 0,
        },
    )


def _places(access: str, words: int, places: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of accesses at so many places, with one index for all lanes."""
    trips = launch.shortened(128 / places)
    count, ends = trips * places, words  # the elements are stored at first, and loaded at last
    return benchmark(
        f"private_array_{access}_places",
        {"words": words, "places": places},
        launch,
        trips=trips,
        setup=[
            *_FLOATS,
            "var at = params.zero;",
            f"var own: array<f32, {words}>;",
            *(f"own[{e}] = t * {e}.5;" for e in range(words)),
        ],
        body=[f"at = (at + params.step) & {words - 1}u;", _STATEMENTS[access]] * places,
        finish=[f"sum += own[{e}];" for e in range(words)],
        result="bitcast<u32>(sum)",
        values={"step": 3},
        work={
            "operations": launch.invocations * count,
            "private_loads": launch.invocations * (ends + (count if access != "store" else 0)),
            "private_stores": launch.invocations * (ends + (count if access != "load" else 0)),
            "chain": 0,
        },
    )


def _loop(words: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of a loop over the elements of an array."""
    return _update(
        "private_array_loop",
        {"words": words},
        words,
        launch,
        f"array<f32, {words}>",
        [f"for (var i = 0u; i < {words}u; i++) {{ own[i] = fma(own[i], s, t); }}"],
        [f"for (var i = 0u; i < {words}u; i++) {{ sum += own[i]; }}"],
    )


def _nested_loops(rows: int, columns: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of a loop over the rows and columns of an array."""

    def over(statement: str) -> list[str]:
        return [
            f"for (var i = 0u; i < {rows}u; i++) {{",
            f"  for (var j = 0u; j < {columns}u; j++) {{ {statement} }}",
            "}",
        ]

    return _update(
        "private_array_nested_loops",
        {"rows": rows, "columns": columns},
        rows * columns,
        launch,
        f"array<array<f32, {columns}>, {rows}>",
        over("own[i][j] = fma(own[i][j], s, t);"),
        over("sum += own[i][j];"),
    )


def _update(
    constant: str,
    parameters: dict[str, float],
    words: int,
    launch: Launch,
    type_: str,
    body: list[str],
    finish: list[str],
) -> MicroBenchmark:
    """Make a benchmark that updates each element of an array in each iteration, and adds them up at last."""
    trips = launch.shortened(512 / words)
    updates = launch.invocations * trips * words
    return benchmark(
        constant,
        parameters,
        launch,
        trips=trips,
        setup=[*_FLOATS, f"var own: {type_};"],
        body=[indented(body, 0)],
        finish=[indented(finish, 0)],
        result="bitcast<u32>(sum)",
        work={
            "operations": updates,
            "private_loads": updates + launch.invocations * words,
            "private_stores": updates,
            "chain": 0,
        },
    )

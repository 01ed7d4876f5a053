"""Divergence, and arrays of function space whose index is known at run time only.

`branches` sends the lanes of a subgroup into 1 to 32 branches that do different work of one length, so that the time
grows with their number. `active_lanes` sends 1 to 32 lanes into one branch. A private array is read by a chase, or
stored to and then read, with one index for all lanes or with neighbouring indices. Lanes load any values of a table of
constants.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel_text import SUBGROUP, Launch, MicroBenchmark, benchmark, indented, per_core

_STEPS = 32  # f32 fma of a branch
_ACCESSES = 8  # of a private array in one iteration


def control_flow(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of divergence and of private arrays."""
    full = per_core(cores, scale, 256, 8)
    for branches in (1, 2, 4, 8, 16, 32):
        yield _branches(branches, full)
    for active in (1, 2, 4, 8, 16, 24, 31, 32):
        yield _active_lanes(active, full)
    for words in (4, 8, 16, 32):
        yield _constant_loads(words, full)
    for words in (8, 32, 128):
        for spread in (0, 1):
            yield _private_loads(words, spread, full)
            yield _private_stores(words, spread, full)


def _fmas(multiplier: int) -> list[str]:
    """Return a chain that differs from those with other multipliers, so that no two branches become one."""
    return [f"x = fma(x, s, t + {multiplier}.5);"] + [f"x = fma(x, s, {multiplier}.25);"] * (_STEPS - 1)


def _flops(launch: Launch, lanes: int, trips: int) -> dict[str, float]:
    """Return the work of `lanes` of each subgroup in one branch each; the first step of a branch adds to `t` too."""
    runs = launch.subgroups * lanes * trips
    return {"flops": runs * (2 * _STEPS + 1), "operations": runs * _STEPS, "chain": trips * _STEPS}


_FLOATS = ["let s = f32(params.one);", "let t = f32(params.zero);", "var x = f32(lane);"]


def _branches(branches: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(256 / branches)
    body = ["switch branch {"]
    for number in range(branches):
        label = "default" if number == branches - 1 else f"case {number}u"
        body += [f"  {label}: {{", indented(_fmas(number + 1), 4), "  }"]
    return benchmark(
        "divergence_by_branches",
        {"branches": branches},
        launch,
        trips=trips,
        setup=[*_FLOATS, f"let branch = lane & {branches - 1}u;"],
        body=[*body, "}"],
        result="bitcast<u32>(x)",
        work=_flops(launch, SUBGROUP, trips),
    )


def _active_lanes(active: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(256)
    return benchmark(
        "divergence_by_active_lanes",
        {"active_lanes": active},
        launch,
        trips=trips,
        setup=_FLOATS,
        body=["if ((lane & 31u) < params.stride) {", indented(_fmas(1), 2), "}"],
        result="bitcast<u32>(x)",
        values={"stride": active},
        work=_flops(launch, active, trips),
    )


def _constant_loads(words: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of lanes that load any values of a table of constants."""
    trips = launch.shortened(64)
    table = ", ".join(f"{number * 37 % 101}u" for number in range(words))
    return benchmark(
        "constant_table",
        {"words": words},
        launch,
        trips=trips,
        declarations=f"const table = array<u32, {words}>({table});",
        setup=["var x = lane * 2654435761u;", "var total = 0u;"],
        body=["x = x * 1664525u + 1013904223u;", f"total += table[x >> {33 - words.bit_length()}u];"],
        result="total",
        work={"operations": launch.invocations * trips, "chain": 0},
    )


def _private(words: int, spread: int) -> list[str]:
    """Declare and fill an array whose elements hold the index of the next."""
    return [
        f"var own: array<u32, {words}>;",
        f"for (var e = 0u; e < {words}u; e++) {{ own[e] = (e + params.step) & {words - 1}u; }}",
        f"var at = (params.zero{' + lane' if spread else ''}) & {words - 1}u;",
    ]


def _private_loads(words: int, spread: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(128)
    chain = trips * _ACCESSES
    return benchmark(
        "private_array_load",
        {"words": words, "spread": spread},
        launch,
        trips=trips,
        setup=_private(words, spread),
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


def _private_stores(words: int, spread: int, launch: Launch) -> MicroBenchmark:
    trips = launch.shortened(128)
    chain = trips * _ACCESSES
    return benchmark(
        "private_array_store",
        {"words": words, "spread": spread},
        launch,
        trips=trips,
        setup=_private(words, spread),
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

"""Divergence, branches that no lane enters, loops inside loops, and tables of constants.

`branches` sends the lanes of a subgroup into 1 to 32 branches that do different work of one length, so that the time
grows with their number. `active_lanes` sends 1 to 32 lanes into one branch. Compilers issue the instructions of a short
branch whether a lane enters it or not. Lanes load any values of a table of constants.
"""

from __future__ import annotations

from collections.abc import Iterator

from .kernel_text import SUBGROUP, Launch, MicroBenchmark, benchmark, indented, per_core

_STEPS = 32  # f32 fma of a branch
_SKIPPED = 12  # likewise of one that no lane enters


def control_flow(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of branches, of loops inside loops and of tables of constants."""
    full = per_core(cores, scale, 256, 8)
    for branches in (1, 2, 4, 8, 16, 32):
        yield _branches(branches, full)
    for active in (1, 2, 4, 8, 16, 24, 31, 32):
        yield _active_lanes(active, full)
    for steps in (4, 8, 9, 16):
        yield _skipped_branch(steps, full)
    alone = per_core(cores, scale, SUBGROUP, 1)
    for branches, levels in ((1, 1), (4, 1), (1, 2), (1, 4)):
        yield _waits_for_branches(branches, levels, alone)
    for jumps in (1, 4):
        yield _waits_for_jumps(jumps, alone)
    for outer, inner in ((2, 2), (2, 8), (8, 2), (4, 4)):
        yield _nested_loops(outer, inner, full)
    for words in (4, 8, 16, 32):
        yield _constant_loads(words, full)


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


def _skipped_branch(steps: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of a branch of so many steps that no lane enters."""
    return benchmark(
        "skipped_branch",
        {"steps": steps},
        launch,
        trips=launch.shortened(1024),
        setup=[*_FLOATS, "let bound = lane * params.zero;"],
        body=["if (trip < bound) {", indented(["x = fma(x, s, t);"] * steps, 2), "}"],
        result="bitcast<u32>(x)",
        work={"flops": 0, "operations": 0, "chain": 0},
    )


def _waits_for_branches(branches: int, levels: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of one subgroup that skips branches, one after the other. `levels`: conditions inside each other
    before the branch, of which the last does not hold."""
    conditions = [f"x < t + {1000 + level}.5" for level in range(levels - 1)]
    begin, end = "".join(f"if ({each}) {{ " for each in conditions), " }" * len(conditions)
    places = [
        [
            f"{begin}if (x < t - {number}.5) {{",
            indented([f"x = fma(x, s, t + {number + step}.5);" for step in range(_SKIPPED)], 2),
            f"}}{end}",
            "x = fma(x, s, t);",
        ]
        for number in range(branches)
    ]
    return _waits("branch_latency", {"branches": branches, "levels": levels}, launch, places, flops=2 + levels)


def _waits_for_jumps(jumps: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of one subgroup that could leave a loop at several places, and does not."""
    places = [[f"if (x < t - {number}.5) {{ break; }}", f"x = fma(x, s, t + {number}.25);"] for number in range(jumps)]
    return _waits("jump_latency", {"jumps": jumps}, launch, places, flops=4)


def _waits(
    constant: str, parameters: dict[str, float], launch: Launch, places: list[list[str]], flops: int
) -> MicroBenchmark:
    """Make a benchmark that waits at some places of an iteration, with so many FLOPs between two of them."""
    trips = launch.shortened(1024)
    waits = trips * len(places)
    return benchmark(
        constant,
        parameters,
        launch,
        trips=trips,
        setup=_FLOATS,
        body=[line for lines in places for line in lines],
        result="bitcast<u32>(x)",
        work={"flops": launch.invocations * waits * flops, "operations": launch.invocations * waits, "chain": waits},
    )


def _nested_loops(outer: int, inner: int, launch: Launch) -> MicroBenchmark:
    """Make a benchmark of an iteration with a loop in a loop."""
    trips = launch.shortened(512 / (outer * inner))
    steps = outer * inner * trips
    return benchmark(
        "nested_loops",
        {"outer": outer, "inner": inner},
        launch,
        trips=trips,
        setup=_FLOATS,
        body=[
            f"for (var i = 0u; i < {outer}u; i++) {{",
            f"  for (var j = 0u; j < {inner}u; j++) {{ x = fma(x, s, t); }}",
            "}",
        ],
        result="bitcast<u32>(x)",
        work={"flops": 2 * launch.invocations * steps, "operations": launch.invocations * steps, "chain": steps},
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

"""Instructions: how many a core issues, and how long each takes.

Each class has a throughput benchmark, in which every invocation has four independent values and the core is full, and
a latency benchmark of one value in one subgroup for each core. No step folds into the one before, because values depend
on each other: an H200's driver folds chains of `x + s`, `x * s` and `s / x` for one `s`. f32 fma is also measured by
the number of resident subgroups, and a loop whose body is two additions shows what an iteration costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...sim.fast_dataclass import frozen
from .kernel_text import SUBGROUP, Launch, MicroBenchmark, benchmark, per_core

VALUES = ("a", "b", "c", "d")
_STEPS = 16  # of each value in one iteration
_RESIDENT = (1, 2, 4, 8, 16, 32, 64)


@frozen
class _Class:
    """A class of instructions.

    `step` makes the next value of `{x}`; `{y}` is the value updated before it, `{z}` the one before that. `s` is a 1
    and `t` a 0 that no compiler knows. `flops` and `operations` are those of one step. `cycles`: about how long a full
    core takes for a step of one subgroup, from which the number of iterations follows.
    """

    name: str
    type: str
    step: str
    flops: int = 0
    operations: int = 1
    cycles: float = 0.25


_CLASSES = (
    _Class("f32_add", "f32", "{x} + {y}", flops=1),
    _Class("f32_mul", "f32", "{x} * {y}", flops=1),
    _Class("f32_fma", "f32", "fma({x}, s, t)", flops=2),
    _Class("i32_add", "u32", "{x} + {y}"),
    _Class("i32_mul", "u32", "{x} * {y}", cycles=0.5),
    _Class("u32_shift", "u32", "(({x} << s) >> t)", operations=2, cycles=1.0),
    _Class("u32_bit_and_xor", "u32", "({x} ^ {y}) & ({x} | {z})", operations=3, cycles=0.5),
    _Class("u32_count_one_bits", "u32", "countOneBits({x})", cycles=2.0),
    _Class("u32_divide", "u32", "s / ({x} | s)", operations=2, cycles=8.0),
    _Class("u32_to_f32", "u32", "bitcast<u32>(f32({x}))", cycles=2.0),
    _Class("f32_to_u32", "u32", "u32(bitcast<f32>({x}))", cycles=2.0),
    _Class("f32_floor", "f32", "floor({x} * s)", flops=1, cycles=2.0),
    _Class("f32_compare_select", "f32", "select({x}, {y}, {x} < {z})", operations=2, cycles=0.5),
    _Class("f32_compare_own", "f32", "select({x} * s, {x} + t, {x} < {y})", flops=2, operations=4, cycles=1.25),
    _Class("f32_divide", "f32", "{y} / {x}", flops=1, cycles=4.0),
    _Class("f32_exp", "f32", "exp(-{x})", flops=1, cycles=2.0),
    _Class("f32_log2", "f32", "log2({x} + s)", flops=2, operations=1, cycles=2.0),
    _Class("f32_sin", "f32", "sin({x})", flops=1, cycles=2.0),
    _Class("f32_sqrt", "f32", "sqrt({x})", flops=1, cycles=4.0),
    _Class("f32_inverse_sqrt", "f32", "inverseSqrt({x})", flops=1, cycles=2.0),
)


def issue_rates(cores: int, scale: float) -> Iterator[MicroBenchmark]:
    """Make the benchmarks of instructions."""
    for each in _CLASSES:
        throughput = round(80 / max(each.cycles, 0.25))  # of 64 steps by 64 subgroups: about 100,000 cycles
        yield _chains(f"{each.name}_throughput", {}, each, VALUES, per_core(cores, scale, 256, 16), throughput)
        latency = round(1600 / max(each.cycles, 0.5))
        yield _chains(f"{each.name}_latency", {}, each, _alone(each), per_core(cores, scale, SUBGROUP, 1), latency)
    (add,) = (each for each in _CLASSES if each.name == "i32_add")
    yield _chains("loop_iteration", {}, add, VALUES[:2], per_core(cores, scale, 256, 16), 1024, steps=1)
    (fma,) = (each for each in _CLASSES if each.name == "f32_fma")
    for resident in _RESIDENT:
        size = min(resident, 8) * SUBGROUP
        launch = per_core(cores, scale, size, max(1, resident // 8))
        yield _chains("f32_fma_by_residency", {"resident_subgroups": resident}, fma, VALUES[:1], launch, 3200)


def _alone(each: _Class) -> tuple[str, ...]:
    """Return the values of one chain: those that a step needs are updated in turn."""
    return VALUES[: 3 if "{z}" in each.step else 2 if "{y}" in each.step else 1]


def _chains(
    constant: str,
    parameters: dict[str, float],
    each: _Class,
    values: tuple[str, ...],
    launch: Launch,
    trips: int,
    steps: int = _STEPS,
) -> MicroBenchmark:
    """Make a benchmark that updates each value `steps` times in an iteration, one after the other."""
    body = [
        f"{x} = {each.step.format(x=x, y=values[at - 1], z=values[(at - 2) % len(values)])};"
        for _ in range(steps)
        for at, x in enumerate(values)
    ]
    trips = launch.shortened(trips)
    updates = trips * steps * len(values)
    independent = "{y}" not in each.step and len(values) > 1
    one = f"{each.type}(params.one)"
    zero = f"{each.type}(params.zero)"
    return benchmark(
        constant,
        parameters,
        launch,
        trips=trips,
        setup=[
            f"let s = {one};",
            f"let t = {zero};",
            *(f"var {x} = {each.type}(lane * 8u + {at * 2 + 1}u);" for at, x in enumerate(values)),
        ],
        body=body,
        result=" ^ ".join(f"bitcast<u32>({x})" for x in values),
        work={
            "operations": launch.invocations * updates * each.operations,
            "flops": launch.invocations * updates * each.flops,
            "chain": updates // len(values) if independent else updates,
        },
    )

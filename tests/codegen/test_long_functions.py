"""Long functions: reading, checking and building take work in proportion to their statements."""

import inspect
import sys

import pytest

import bankshot
from bankshot.sim.analysis import loop_nest, uses
from bankshot.sim.codegen import virtual_registers
from bankshot.sim.ir import bottom_up, builder
from bankshot.sim.lowering import address_sums
from bankshot.sim.wgsl.analysis import current_values, uniformity, uniformity_graph

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    let i = id.x; var n = i; var a = y[i];
"""
STATEMENTS = {
    "assignments": "a = a * 1.5 + f32(i);",
    "variables and branches": "var a{} = y[i]; if a{} > 1.0 {{ a{} += 1.0; }} a += a{};",
    "variables and loops": "var a{} = y[i]; for (var k = 0u; k < 3u; k++) {{ a{} += 1.0; }} a += a{};",
    "a counter as an index": "n = n + 1u; y[n] = a;",
    "switches": "var a{} = y[i]; switch i {{ case 1u {{ a{} = 1.0; }} default {{ a{} = 2.0; }} }} a += a{};",
    "a right side that may not run": "var a{} = y[i]; a += f32(i > 3u && a{} > 1.0) + a{};",
}


def text(statement, count):
    body = "\n".join(statement.format(*[n] * 9) for n in range(count))
    return f"{HEAD}{body}\n    y[i] = a;\n}}"


def steps(statement, count):
    """The lines of Python that the parts run that see all variables, loops and registers."""
    files = {part.__file__ for part in (loop_nest, uses, virtual_registers, builder, current_values, uniformity,
                                        uniformity_graph, address_sums, bottom_up)}  # fmt: skip
    taken = 0

    def step(frame, event, argument):
        nonlocal taken
        taken += 1
        return step

    source = text(statement, count)
    before = sys.gettrace()
    sys.settrace(lambda frame, event, argument: step if frame.f_code.co_filename in files else None)
    try:
        bankshot.prepare(source, grid=1, probes="counters")
    finally:
        sys.settrace(before)
    return taken


@pytest.mark.parametrize("statement", STATEMENTS.values(), ids=STATEMENTS)
def test_work_grows_with_the_statements(statement):
    steps(statement, 1)  # imports
    short, middle, long = (steps(statement, count) for count in (40, 80, 160))
    assert long - middle < 2.2 * (middle - short)


def test_a_chain_of_values_may_be_longer_than_the_call_stack():
    module, limit = bankshot.check(text("a = a * 1.5 + f32(i);", 1000)), sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 300)
        bankshot.prepare(module, grid=1, probes="all")
    finally:
        sys.setrecursionlimit(limit)

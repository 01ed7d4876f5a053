"""What a program says of its loops: who may change what they read, and what may still be stored to."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.codegen.loops import loop_ranges, may_wait, memory_of_state, written_from

HEAD = """
@group(0) @binding(0) var<storage, read_write> n: array<atomic<u32>, 8>;
@group(0) @binding(1) var<storage, read_write> x: array<u32, 8>;
@group(0) @binding(2) var<storage, read_write> y: array<u32, 8>;
var<workgroup> t: array<u32, 8>;
@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
"""
READS = "for (var k = 0u; k < x[i]; k++) { y[i] = k; }"
SPINS = "while atomicLoad(&n[0]) == 0u { }"
NESTED = f"for (var k = 0u; k < x[i]; k++) {{ y[i] = k; {SPINS} }}"


def program_of(body):
    """The program, and its loops in the order of the source."""
    used = {name: np.ones(8, np.uint32) for name in "nxy" if f"{name}[" in body}
    program = bankshot.simulate(f"{HEAD}{body} }}", grid=1, bindings=used, probes="none").program
    return program, sorted(range(len(program.loops)), key=lambda loop: program.loops[loop][0].start)


# Body, then for each loop whether it may wait in a batch that runs alone, and in one that does not.
WAITING = {
    "an atomic decides": (SPINS, [(True, True)]),
    "an atomic decides for the loop inside": (NESTED, [(True, True), (True, True)]),
    "an atomic decides for another loop": (f"{READS} {SPINS}", [(False, False), (True, True)]),
    "stored to after it": (f"{READS} x[0] = 1u;", [(True, True)]),
    "stored to before it": (f"x[0] = 1u; workgroupBarrier(); {READS}", [(False, True)]),
    "stored to in it": ("for (var k = 0u; k < x[i]; k++) { x[i] = k; }", [(False, True)]),
    "the workgroup's own": ("t[i] = 1u; workgroupBarrier(); for (var k = 0u; k < t[0]; k++) { y[i] = k; }",
                            [(False, False)]),
    "the workgroup's own, stored to after it": ("for (var k = 0u; k < t[0]; k++) { y[i] = k; } t[i] = 1u;",
                                                [(True, True)]),
}  # fmt: skip


@pytest.mark.parametrize("name", WAITING)
def test_whether_others_may_change_what_a_loop_reads(name):
    body, expected = WAITING[name]
    program, loops = program_of(body)
    assert [tuple(may_wait(program, loop, alone=alone) for alone in (True, False)) for loop in loops] == expected


def test_what_may_still_be_stored_to():
    """In a loop, all that the outermost loop around it stores to, before the place, too."""
    program, loops = program_of(f"t[i] = 1u; {NESTED} x[0] = 1u;")
    outer, inner = (loop_ranges(program.code)[loop] for loop in loops)
    assert inner.start > outer.start

    def names(place):
        return {variable.name for variable in written_from(program, place)}

    assert names(0) == {"t", "x", "y"}
    assert names(outer.start) == names(inner.start) == names(inner.stop) == {"x", "y"}
    assert names(outer.stop) == {"x"}


@pytest.mark.parametrize(
    ("body", "spaces"),
    [
        (READS, [set()]),
        ("for (var k = 0u; k < x[i]; k++) { x[i] = k; }", [{"storage"}]),
        ("for (var k = 0u; k < t[i]; k++) { t[i] = k; y[i] = k; }", [{"workgroup"}]),
        ("loop { for (var k = 0u; k < x[i]; k++) { y[i] = k; } if y[i] < 9u { break; } }", [{"storage"}] * 2),
    ],
)
def test_the_memory_that_a_loop_and_those_around_it_both_read_and_write(body, spaces):
    program, loops = program_of(body)
    assert [memory_of_state(program, loop) for loop in loops] == spaces

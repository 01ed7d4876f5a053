"""Of nested loops, the finding names the one that does not end: not those in it, which end in each of its turns."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.findings import running_loops
from bankshot.sim.machine import layout as at

HEAD = """@group(0) @binding(0) var<storage, read_write> y: array<u32, 1>;
@compute @workgroup_size(1)
fn main() {
"""
ENDS = "{name}: u32; {name} < 3u; {name}++"
FOREVER = "{name}: u32; {name} < 0xffffffffu; {name}++"


def nested(depth, endless):
    """Loops a, b, c, … in each other; only the one in position `endless` does not end."""
    heads = [f"for (var {(FOREVER if at == endless else ENDS).format(name='abcdef'[at])}) {{" for at in range(depth)]
    return f"{' '.join(heads)} y[0] += 1u; {'}' * depth}"


@pytest.mark.parametrize(("depth", "endless"), [(d, e) for d in (1, 2, 3, 5) for e in range(d)])
def test_the_loop_that_does_not_end_is_named(depth, endless):
    text = HEAD + nested(depth, endless) + "\n}"
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}, budget=20_000)
    (finding,) = [each for each in run.findings if each.code == "endless-loop"]
    assert text[finding.span.start :].startswith(f"for (var {'abcdef'[endless]}:")


@pytest.mark.parametrize("budget", range(20_000, 20_004))
def test_a_loop_that_begins_where_its_inner_one_begins(budget):
    """The inner loop ends after each eighth turn; nothing is between the beginnings of both."""
    text = HEAD + "loop {\nloop { y[0] += 1u; if (y[0] & 7u) == 0u { break; } }\nif y[0] == 0u { break; }\n}\n}"
    run = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}, budget=budget, probes="none")
    (finding,) = [each for each in run.findings if each.code == "endless-loop"]
    assert finding.span.start == text.index("loop {")


@pytest.mark.parametrize(("loops", "endless", "known"), [
    (1, 0, True), (64, 0, True), (64, 63, True), (65, 0, True), (65, 62, True), (65, 63, False), (65, 64, False),
])  # fmt: skip
def test_the_period_is_said_where_the_turns_of_a_loop_are_counted_apart(loops, endless, known):
    """Those of the first 63 are; one counter has those of all others."""
    turn = "for (var k = 0u; k < 2u; k++) { y[0] += k; }"
    repeat = "loop { state = (state + 1u) % 3u; if state == 5u { break; } }"
    body = "\n".join(repeat if at == endless else turn for at in range(loops))
    run = bankshot.simulate(f"{HEAD}var state = y[0];\n{body}\n}}", grid=1, bindings={"y": np.zeros(1, np.uint32)})
    (finding,) = run.findings
    assert finding.span.line == 5 + endless
    assert ("its state repeats every 3 iterations" in finding.message) == known
    assert "its state repeats" in finding.message


@pytest.mark.parametrize("before", [0, 61])
@pytest.mark.parametrize("inner", [1, 40])
def test_an_endless_loop_around_another_whose_turns_are_counted_apart(before, inner):
    """The inner loop has number `before`, and the outer one the next: 62 is the last that is counted apart."""
    turns = "\n".join(["for (var k = 0u; k < 2u; k++) { y[0] += k; }"] * before)
    step = f"for (var k = 0u; k < {inner}u; k++) {{ state = (state + 1u) % 3u; }}"
    text = f"{HEAD}var state = y[0];\n{turns}\nloop {{ {step} if state == 5u {{ break; }} }}\n}}"
    (finding,) = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}).findings
    assert finding.span.start == text.index("loop {")
    assert "its state repeats" in finding.message


def test_an_endless_loop_in_others_that_do_not_turn():
    step = "loop { state = (state + 1u) % 3u; if state == 5u { break; } }"
    text = (
        f"{HEAD}var state = y[0];\nfor (var k = 0u; k < 3u; k++) {{ for (var j = 0u; j < 3u; j++) {{ {step} }} }}\n}}"
    )
    (finding,) = bankshot.simulate(text, grid=1, bindings={"y": np.zeros(1, np.uint32)}).findings
    assert finding.span.start == text.index("loop {")
    assert "its state repeats every 3 iterations" in finding.message


INNER, OUTER, OUTERMOST = 7, 3, 2
LAST = at.MOST_LOOPS - 1  # the counter of all further loops


@pytest.mark.parametrize(
    ("left", "counters", "around", "endless"),
    [
        # For a loop around it: its turns, and what was left when the last one began. Of 1000 iterations, 4 turns may
        # take 500 before that and 500 since: 4 times as many as each turn before.
        (0, {OUTER: (4, 500)}, [OUTER], OUTER),
        (0, {OUTER: (4, 501)}, [OUTER], INNER),
        (0, {OUTER: (5, 500)}, [OUTER], INNER),
        (100, {OUTER: (4, 550)}, [OUTER], OUTER),
        (100, {OUTER: (4, 551)}, [OUTER], INNER),
        (0, {OUTER: (0, 1000)}, [OUTER], INNER),  # it has made no turn
        (0, {OUTER: (1, 1)}, [OUTER], OUTER),
        (0, {OUTER: (4, 400), OUTERMOST: (4, 500)}, [OUTER, OUTERMOST], OUTERMOST),
        (0, {OUTER: (4, 400), OUTERMOST: (4, 501)}, [OUTER, OUTERMOST], OUTER),
        (0, {OUTER: (4, 501), OUTERMOST: (4, 400)}, [OUTER, OUTERMOST], INNER),
        (0, {LAST: (4, 500)}, [LAST], LAST),
        (0, {LAST: (4, 500)}, [LAST + 9], LAST + 9),
        (0, {LAST: (4, 501)}, [LAST + 9], INNER),
        (0, {}, [], INNER),
    ],
)
def test_a_loop_that_lasts_four_times_as_long_as_before_is_endless(left, counters, around, endless):
    progress = np.zeros(at.TURNED + at.MOST_LOOPS + at.MOST_LOOPS, np.int64)
    progress[at.BUDGET_LEFT] = left
    for number, (turns, turned) in counters.items():
        progress[at.TURNS + number], progress[at.TURNED + number] = turns, turned
    launch: Any = SimpleNamespace(options=SimpleNamespace(budget=1000))
    stopped: Any = SimpleNamespace(loop=INNER, progress=progress)
    assert running_loops._longest_running(launch, stopped, around) == endless


@pytest.mark.parametrize(("workgroup", "left"), [(0, 44), (43, 1), (44, 0), (45, 0), (256, 0)])
def test_workgroups_after_those_side_by_side_have_not_begun(workgroup, left):
    launch: Any = SimpleNamespace(count=300, program=SimpleNamespace(workgroups_per_batch=256))
    stopped: Any = SimpleNamespace(workgroup=workgroup)
    assert running_loops.not_begun(launch, stopped) == left


def test_loops_around_another_from_the_inside_out():
    ranges = {
        0: range(10, 90),
        1: range(10, 50),
        2: range(20, 30),
        3: range(60, 80),
        4: range(30, 50),
        5: range(19, 31),
    }
    assert running_loops._around(ranges, 2) == [5, 1, 0]
    assert running_loops._around(ranges, 3) == [0]
    assert running_loops._around(ranges, 1) == [0]  # that begins where it begins
    assert running_loops._around(ranges, 4) == [0]  # nothing comes after it in the other loop
    assert running_loops._around(ranges, 0) == []

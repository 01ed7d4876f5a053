"""Of nested loops, the finding names the one that does not end: not those in it, which end in each of its turns."""

import numpy as np
import pytest

import bankshot

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

"""Which integer operations the machine checks at run time: those whose right side the front end cannot judge."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op


def checks(expression, probes=("nan",)):
    wgsl = f"""
        @group(0) @binding(0) var<storage, read_write> y: array<u32, 4>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
            let j = i32(i) + 1;
            y[i] = u32({expression});
        }}"""
    given = {"y": np.zeros(4, np.uint32)}
    program = bankshot.simulate(wgsl, grid=1, bindings=given, probes=probes, replay=False).program
    return int((program.code[:, field.OP] == op.CHECK).sum())


@pytest.mark.parametrize("operator", ["/", "%", "<<", ">>"])
@pytest.mark.parametrize(("left", "constant", "variable"), [("i", "3u", "(i + 1u)"), ("j", "3", "j"), ("7", "3", "j")])
def test_a_constant_on_the_right_needs_no_check(operator, left, constant, variable):
    shift = operator in ("<<", ">>")
    constant, variable = ("3u", "(i + 1u)") if shift else (constant, variable)
    assert checks(f"{left} {operator} {constant}") == 0
    assert checks(f"{left} {operator} {variable}") == 1
    assert checks(f"{left} {operator} {variable}", ("lanes",)) == 0


def test_what_cannot_go_wrong_needs_no_check():
    assert checks("(i + 1u) * (i ^ 5u) - min(i, 2u)") == 0
    assert checks("f32(i)") == 1  # back to u32: the number may not fit

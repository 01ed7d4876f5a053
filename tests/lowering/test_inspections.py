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


@pytest.mark.parametrize(
    ("condition", "caught"),
    [
        ("f < 9.0 && i32(f) > 3", False),  # the left side keeps the lane away
        ("(f < 9.0 && i32(f) > 3) || (f > 9.0 && i32(f) > 5)", True),
        ("f > 9.0 || i32(f) > 3", False),
        ("f < 9.0 && (f > 0.0 || i32(f) > 3)", False),
        ("f > 9.0 && (f < 0.0 || i32(f) > 3)", True),
        ("f > 9.0 && (f > 0.0 || i32(f) > 3)", False),
        ("f < 0.0 || i32(f) > 3", True),
    ],
)
def test_an_operand_is_checked_where_it_matters_and_counted_alike(condition, caught):
    wgsl = f"""
        @group(0) @binding(0) var<storage, read_write> y: array<f32, 4>;
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {{
            let f = y[i];
            if ({condition}) {{ y[i] = 1.0; }}
        }}"""
    given = {"y": np.array([1, 5, 1e20, 3], np.float32)}
    plain = bankshot.simulate(wgsl, grid=1, bindings=given, probes=("lanes",))
    watched = bankshot.simulate(wgsl, grid=1, bindings=given, probes=("lanes", "nan"))
    assert bool(watched.findings) == caught
    assert [(i.kind, i.lanes) for i in watched.instructions] == [(i.kind, i.lanes) for i in plain.instructions]


@pytest.mark.parametrize("array", ["a", "p", "l"])
@pytest.mark.parametrize(
    ("condition", "caught"),
    [("i < 4u && {}[i] == 1u", False), ("i > 3u || {}[i] == 1u", False), ("i < 5u && {}[i] == 1u", True)],
)
def test_an_index_on_the_right_is_checked_where_it_matters(array, condition, caught):
    wgsl = f"""
        var<private> p: array<u32, 4>;
        @group(0) @binding(0) var<storage, read_write> y: array<u32, 8>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {{
            var a: array<u32, 4>;
            a[i % 4] = 1; p[i % 4] = 1;
            let l = vec4u(1);
            if ({condition.format(array)}) {{ y[i] = 1; }}
        }}"""
    done = bankshot.simulate(wgsl, grid=1, bindings={"y": np.zeros(8, np.uint32)}, probes=("bounds",))
    assert [finding.code for finding in done.findings] == ["out-of-bounds"] * caught

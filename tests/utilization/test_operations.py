"""Integer operations on a padding zero: in which lanes they are of use, from what each computes."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.utilization.padding_zeros import stem_of

# `a` is a padding zero in lanes 8 to 31, and `b` in none. The result is needed in all.
USEFUL = {
    "a * b": 8, "b * a": 8,  # 0
    "a & b": 8, "b & a": 8,  # 0
    "a + b": 8, "b + a": 8,  # b
    "a | b": 8, "b | a": 8,  # b
    "a ^ b": 8, "b ^ a": 8,  # b
    "b - a": 8, "a - b": 32,  # b, but -b
    "a << b": 8, "b << a": 8,  # 0, b
    "a >> b": 8, "b >> a": 8,  # 0, b
    "a / b": 32, "max(a, b)": 32,
}  # fmt: skip


@pytest.mark.parametrize("operation", USEFUL)
def test_an_operation_on_a_padding_zero_is_of_use_where_it_computes_something(operation):
    assert counted(operation) == (32, 32, USEFUL[operation])


@pytest.mark.parametrize("operation", ["u32(-i32(a))", "u32(abs(i32(a)))"])
def test_operations_of_one_operand_keep_a_padding_zero(operation):
    """Two conversions and what is between them, each of use in eight lanes."""
    assert counted(operation) == (3 * 32, 3 * 32, 3 * 8)


@pytest.mark.parametrize(
    ("made", "useful"),
    [
        ("var t: array<u32, 4>; if i < 8u { t[i & 3u] = x[i]; } a = t[i & 3u];", 8),
        ("var t: array<u32, 4>; if i < 8u { t[i & 3u] = x[i]; } a = t[(i + 1u) & 3u];", 0),
        ("var t = array(b, b, b, b); if i >= 8u { t[i & 3u] = 0u; } a = t[i & 3u];", 8),
        ("var t = array(b, b, b, b); if i >= 8u { t[i & 3u] = 0u; } a = t[(i + 1u) & 3u];", 32),
        ("if i < 8u { a = x[i]; } var t = array(b, b, b, b); t[i & 3u] = a; a = t[i & 3u];", 8),
        ("if i < 8u { a = x[i]; } var t = array(b, b, b, b); t[i & 3u] = a; a = t[(i + 1u) & 3u];", 32),
        ("var t: array<u32, 4>; t[i & 3u] = b; a = t[i & 3u];", 32),
    ],
)
def test_elements_of_an_array_are_padding_zeros_one_by_one(made, useful):
    assert counted("a * b", made) == (32, 32, useful)


@pytest.mark.parametrize(
    ("stored", "useful"),
    [
        ("atomicStore(&t[i], c); d = atomicLoad(&t[i]);", 32),
        ("atomicStore(&t[i], c); atomicStore(&t[i], 1u); d = atomicLoad(&t[i]);", 0),
        ("atomicStore(&t[i], c); atomicAdd(&t[i], 1u); d = atomicLoad(&t[i]);", 32),
        ("atomicStore(&t[i], c); d = atomicExchange(&t[i], 1u);", 32),
        ("atomicStore(&t[i], 1u); atomicAdd(&t[i], c); d = atomicLoad(&t[i]);", 32),
    ],
)
def test_a_store_is_of_use_until_another_replaces_it(stored, useful):
    assert counted("a * b", "a = x[i];", f"{stored} y[i] = d;") == (32, 32, useful)


def counted(operation, made="if i < 8u { a = x[i]; }", after="y[i] = max(c, 1u);"):
    """Lanes issued, active and useful of the line with the operation."""
    wgsl = f"""@group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        var<workgroup> t: array<atomic<u32>, 32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{
            var a = 0u; var d = 0u;
            let b = x[i + 1u];
            {made}
            let c = {operation};
            {after}
        }}"""
    given = {"x": np.arange(1, 65, dtype=np.uint32), "y": np.zeros(32, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    return {row.line: (row.issued, row.active, row.useful) for row in used.lines}[8]


@pytest.mark.parametrize(
    ("op", "stem"),
    [
        ("add_f32", "add"),
        ("convert_u32_f32", "convert"),
        ("bits", "bits"),
        ("unpack4xU8_u32", "unpack4xU8"),
        ("get", "get"),
    ],
)
def test_the_stem_of_an_operation(op, stem):
    assert stem_of(op) == stem


def test_a_condition_is_of_use_in_the_iterations_whose_branch_is_taken():
    wgsl = """@group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            var d = 0u;
            let b = x[i + 1u];
            for (var k = 0u; k < 4u; k++) {
                let q = k * b;
                if q == 3u * b { d = x[i]; }
            }
            y[i] = d;
        }"""
    given = {"x": np.arange(1, 65, dtype=np.uint32), "y": np.zeros(32, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    assert {row.line: (row.issued, row.active, row.useful) for row in used.lines}[7] == (4 * 32, 4 * 32, 32)


def test_a_loop_that_computes_nothing_for_an_output_is_of_no_use_in_a_loop_that_does():
    wgsl = """@group(0) @binding(0) var<storage> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
            for (var k = 0u; k < 4u; k++) {
                var q = x[k];
                loop {
                    if q > 9u { break; }
                    q += 3u;
                }
                y[i] += x[i + k];
            }
        }"""
    given = {"x": np.arange(1, 65, dtype=np.uint32), "y": np.zeros(32, np.uint32)}
    used = bankshot.simulate(wgsl, bindings=given, grid=1, probes=("lanes",)).utilization
    useful = {row.line: row.useful for row in used.lines}
    assert (useful[5], useful[8]) == (0, 0)
    assert useful[10] == {row.line: row.issued for row in used.lines}[10]

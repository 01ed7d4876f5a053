"""Error bounds where little room is left: what is exact has a bound of zero, and the worst order of a product fits."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.instrument.error_bounds.error_rules import is_exact
from bankshot.sim.ir.builder import Builder
from bankshot.sim.run.prepared import dispatch_of
from tests.instrument.bounded_programs import run


@pytest.mark.parametrize("way", [1, -1])
def test_products_in_the_worst_order(way):
    """Ours are just below 2, where a ULP weighs least; in the other order they are just above 1, rounded one way."""
    make, size = np.random.default_rng(0), 1 << 10
    a = (2 - make.uniform(2**-8, 2**-7, size)).astype(np.float32)
    b = (1 + make.uniform(0, 2**-11, size)).astype(np.float32)
    done = run(f"y[i] = a * b * z[(i + 1u) % {size}u] * z[(i + 7u) % {size}u];", a, b)

    def rounded(product):
        nearest = product.astype(np.float32)
        beside = np.nextafter(nearest, np.float32(way * np.inf))
        return np.where((nearest - product) * way < 0, beside, nearest).astype(float)

    other = np.roll(b, -7).astype(float)
    for factor in (np.roll(b, -1), b, a):
        other = rounded(factor * other)
    assert (np.abs(other - done.outputs["y"]) <= done.bounds["y"]).all()
    assert done.bounds["y"].max() < 16 * 2.0**-23


def test_ldexp_is_exact_down_to_the_least_normal_number():
    values = np.tile(np.array([1, -1, 1.5, 2, 0.5, -0.75], np.float32), 32)
    bounds = run("y[i] = ldexp(a, -126);", values).bounds["y"]
    assert ((bounds == 0) == (np.abs(values) >= 1)).all()


@pytest.mark.parametrize(
    ("op", "kinds", "exact"),
    [
        ("add_u32", "u32 u32", True),
        ("div_i32", "i32 i32", True),
        ("lnot_bool", "bool", True),
        ("add_f32", "f32 f32", False),
        ("exp_f16", "f16", False),
        ("ldexp_f32", "f32 i32", False),
        ("max_f32", "f32 f32", True),
        ("lt_f16", "f16 f16", True),
        ("convert_f32_i32", "f32", True),
        ("convert_i32_f32", "i32", False),
        ("convert_bool_f16", "bool", True),
        ("convert_f16_f32", "f16", True),
        ("convert_f32_f16", "f32", False),
        ("convert_u32_i32", "u32", True),
    ],
)
def test_operations_that_keep_what_is_exact(op, kinds, exact):
    builder = Builder(fold_floats=False)
    inputs = (builder.input(f"{kind}{n}") for n, kind in enumerate(kinds.split()))
    made = builder.computed(op, *(builder.reinterpret(kind, x) for kind, x in zip(kinds.split(), inputs, strict=True)))
    assert is_exact(made) is exact


def test_bounds_of_workgroup_variables_have_a_word_for_each_number():
    """t and its bounds take 24 bytes, which are rounded up to 32; h takes 32, and its bounds twice as much."""
    source = """
        enable f16;
        @group(0) @binding(0) var<storage, read_write> y: array<f32, 8>;
        var<workgroup> t: array<f32, 6>;
        var<workgroup> h: array<vec2h, 8>;
        @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
            t[i % 6u] = y[i] * 1.1;
            h[i] = vec2h(f16(y[i]));
            workgroupBarrier();
            y[i] = t[i % 6u] + f32(h[i].x);
        }"""
    dispatch = dispatch_of(bankshot.check(source), grid=1, bindings={"y": np.ones(8, np.float32)})
    program, _ = dispatch.build_with_bounds(frozenset())
    assert list(program.shared_offsets.values()) == [0, 32, 64, 96]
    assert program.shared_bytes == 32 + 32 + 32 + 64

"""Vectorized approximations: their error bounds, and that final results have the bits of the exact functions."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine.vector_math.approximations import NEAR, OFF, UNSURE, has_near
from bankshot.sim.scalar import OPS
from bankshot.sim.scalar.transcendental import BINARY, UNARY
from tests.scalar.scalar_values import anything, as_half, assert_same, edges, over_arrays

IN_DOUBLE = {**UNARY, "atan2": np.arctan2, "pow": np.power, "rem": np.fmod}
NAMES = [name for name in OPS if has_near(name)]
COUNT = 100_000


class Arrays:
    """What `near` asks of numbers, of NumPy arrays."""

    where, sqrt, trunc = np.where, np.sqrt, np.trunc

    @staticmethod
    def bits(x):
        return x.view(np.int64)

    @staticmethod
    def double(x):
        return x.view(np.float64)


def operands(name, count=COUNT):
    """One array for each: edges, anything, and numbers about 1; of f16 with one operand, every one."""
    row, rng = OPS[name], np.random.default_rng(7)
    if row.args == ("f16",):
        return [np.arange(65536).astype(np.uint16).view(np.float16).astype(np.float32)]
    about_one = (1 + rng.normal(size=count) * 2.0 ** -rng.integers(1, 24, count)).astype(np.float32)
    kind = row.args[0]
    parts = [anything(kind, count, rng), as_half(about_one) if kind == "f16" else about_one, edges(kind)]
    every = np.concatenate(parts)
    if len(row.args) == 1:
        return [every]
    either = [rng.permutation(every), rng.permutation(every)]
    pairs = np.meshgrid(edges(kind), edges(kind))
    return [np.concatenate([a, b.ravel()]) for a, b in zip(either, pairs, strict=True)]


def by_the_machine(name, *arrays):
    """The operation in a kernel, on one element for each invocation."""
    stem, _, kind = name.rpartition("_")
    call = "a[i] % b[i]" if stem == "rem" else f"{stem}({', '.join(('a[i]', 'b[i]')[: len(arrays)])})"
    shader = f"""{"enable f16;" if kind == "f16" else ""}
        @group(0) @binding(0) var<storage, read> a: array<{kind}>;
        @group(0) @binding(1) var<storage, read> b: array<{kind}>;
        @group(0) @binding(2) var<storage, read_write> y: array<{kind}>;
        @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{
            let i = id.x;
            if i < arrayLength(&y) {{ y[i] = {call}; }}
        }}"""
    dtype = {"f32": np.float32, "f16": np.float16}[kind]
    a, b = (each.astype(dtype) for each in (arrays[0], arrays[-1]))
    grid = (-(-len(a) // 64), 1, 1)
    run = bankshot.simulate(shader, grid=grid, bindings={"a": a, "b": b, "y": np.zeros_like(a)}, probes="none")
    return run.outputs["y"].astype(np.float32)


def test_every_function_of_float64_has_an_approximation_unless_a_vector_of_them_is_one_instruction():
    """Those of products and square roots need none."""
    assert {*UNARY, *BINARY, "rem"} - {"degrees", "radians", "inverseSqrt"} == set(NEAR)
    named = [has_near(f"{stem}_{kind}") for stem in NEAR for kind in ("f32", "f16")]
    assert all(named)
    assert not any(has_near(name) for name in ("exp_abstract", "exp", "floor_f32", "degrees_f32", "rem_i32", "rem_u32"))


@pytest.mark.parametrize("stem", NEAR)
def test_errors_are_within_the_bound(stem):
    """Half of the bound is left for the error of the reference library."""
    with np.errstate(all="ignore"):
        x = [a.astype(np.float64) for a in operands(f"{stem}_f32")]
        if stem == "pow":
            x[0] = np.abs(x[0])  # elsewhere there is none
        near, exact = NEAR[stem](Arrays, *x), IN_DOUBLE[stem](*x)
        known = near != UNSURE
        of_f32 = known & (np.abs(exact) < 2.0**129) & (np.abs(exact) > 2.0**-151)
        assert (np.abs(near - exact) <= OFF / 2 * np.abs(exact))[of_f32].all()
        beyond = known & ~of_f32 & np.isfinite(exact)
        assert_same(near[beyond].astype(np.float32), exact[beyond].astype(np.float32), x[0][beyond])
        assert np.isnan(exact)[np.isnan(near)].all()
    assert known.mean() > 0.5


@pytest.mark.parametrize("name", NAMES)
def test_rows_have_the_bits_of_the_function(name):
    arrays = operands(name)
    assert_same(by_the_machine(name, *arrays), over_arrays(name, *arrays), *arrays)


@pytest.mark.parametrize("stem", [stem for stem in UNARY if stem in NEAR])
def test_rows_beside_what_is_halfway_between_two_results(stem):
    """So close that the approximation does not decide the rounding."""
    x = np.random.default_rng(8).uniform(0.01, 0.99, 2_000_000).astype(np.float32)
    if stem == "acosh":
        x = x + np.float32(1)
    value = UNARY[stem](x.astype(np.float64))
    nearest = value.astype(np.float32)
    half = np.spacing(nearest).astype(np.float64) / 2
    close = np.abs(np.abs(value - nearest) - np.abs(half)) < OFF * np.abs(value)
    assert close.sum() > 100
    assert_same(by_the_machine(f"{stem}_f32", x[close]), over_arrays(f"{stem}_f32", x[close]), x[close])


@pytest.mark.parametrize("name", ["exp_f32", "pow_f32", "rem_f16"])
def test_uniform_values(name):
    """A value that all invocations share is computed in one lane."""
    stem, _, kind = name.rpartition("_")
    call = {"exp": "exp(a[0])", "pow": "pow(a[0], a[1])", "rem": "a[0] % a[1]"}[stem]
    shader = f"""{"enable f16;" if kind == "f16" else ""}
        @group(0) @binding(0) var<storage, read> a: array<{kind}>;
        @group(0) @binding(1) var<storage, read_write> y: array<{kind}>;
        @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {{ y[i] = {call}; }}"""
    a = np.array([2.75, 1.5], {"f32": np.float32, "f16": np.float16}[kind])
    run = bankshot.simulate(shader, grid=(1, 1, 1), bindings={"a": a, "y": np.zeros(32, a.dtype)}, probes="none")
    pair = a.astype(np.float32)[: len(OPS[name].args)]
    expected = over_arrays(name, *(np.full(32, each) for each in pair))
    assert_same(run.outputs["y"].astype(np.float32), expected, expected)

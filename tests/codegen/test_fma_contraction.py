"""Which products are rounded together with a sum: what an H200 did with each of these, under its Vulkan driver 580."""

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine.opcodes import opcode_names

COUNT = 512
HEAD = f"""
@group(0) @binding(0) var<storage, read> x: array<array<f32, {COUNT}>, 4>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) {{
    let i = g.x; let a = x[0][i]; let b = x[1][i]; let c = x[2][i]; let d = x[3][i];
"""
A, B, C, D = X = np.random.default_rng(3).standard_normal((4, COUNT)).astype(np.float32)


def fma(a, b, c):
    """The product is exact in float64; rounding twice differs from once in none of these."""
    return (a.astype(np.float64) * b + c).astype(np.float32)


def looped():
    total = np.zeros(COUNT, np.float32)
    for _ in range(3):
        total = fma(A, B, total)
    return total


# expression or statements, what an H200 gave
CASES = {
    "a * b + c": fma(A, B, C),
    "c + a * b": fma(A, B, C),
    "c - a * b": fma(-A, B, C),
    "a * b - c": fma(A, B, -C),
    "-(a * b) + c": fma(-A, B, C),
    "c + -a * b": fma(-A, B, C),
    "a * b + c * d": fma(A, B, C * D),
    "a * b - c * d": fma(A, B, -(C * D)),
    "a * b * c + d": fma(A * B, C, D),
    "a * b + c + d": fma(A, B, C) + D,
    "(a * b + c) * (d * a - b)": fma(A, B, C) * fma(D, A, -B),
    "dot(vec2(a, b), vec2(c, d))": fma(A, C, B * D),
    "a * (b + c)": A * (B + C),
    "abs(a * b) + c": np.abs(A * B) + C,
    "select(a * b, c, a > 10.0) + d": A * B + D,
    "let p = a * b; y[i] = p + c;": fma(A, B, C),
    "let p = a * b; y[i] = (p + c) * (p - d);": fma(A, B, C) * fma(A, B, -D),
    "let p = a * b; y[i] = (p + c) * p;": (A * B + C) * (A * B),
    "let p = a * b; let unused = p * d; y[i] = p + c;": fma(A, B, C),
    "var q = a * b; if c > 100.0 { q = 1.0; } y[i] = q + d;": A * B + D,
    "let p = a * b; var q = c; if d > 0.0 { q = p + c; } y[i] = q;": np.where(D > 0, fma(A, B, C), C),
    "var s = 0.0; for (var k = 0; k < 3; k++) { s += a * b; } y[i] = s;": looped(),
}


def run(text, device, probes="flops"):
    body = text if text.endswith(";") else f"y[i] = {text};"
    bindings = {"x": X, "y": np.zeros(COUNT, np.float32)}
    return bankshot.simulate(f"{HEAD}{body} }}", grid=COUNT // 64, bindings=bindings, device=device, probes=probes)


@pytest.mark.parametrize("text", CASES)
def test_products_that_are_only_added_are_rounded_with_the_sum(text):
    np.testing.assert_array_equal(run(text, "nvidia").outputs["y"].view(np.uint32), CASES[text].view(np.uint32))


def test_other_devices_round_as_written():
    np.testing.assert_array_equal(run("a * b + c", "lavapipe").outputs["y"], A * B + C)


@pytest.mark.parametrize("text", CASES)
def test_counters_are_those_of_the_written_shader(text):
    assert run(text, "nvidia").counters["flops"] == run(text, "lavapipe").counters["flops"] > 0


@pytest.mark.parametrize("text", CASES)
def test_one_instruction_for_a_product_and_its_sum_changes_no_bit(text):
    fast, plain = run(text, "lavapipe"), run(text, "lavapipe", probes="nan")  # where each operation is looked at
    np.testing.assert_array_equal(fast.outputs["y"].view(np.uint32), plain.outputs["y"].view(np.uint32))


def test_the_joined_instruction_is_emitted():
    names = [opcode_names()[row[0]] for row in run("a * b + c", "lavapipe").program.code]
    assert "mad_f32" in names
    assert "mul_f32" not in names


HALVES = np.random.default_rng(4).standard_normal((3, COUNT)).astype(np.float16)


def rounded_once(a, b, c):
    """Of numbers from 2^-12 to 4 the product and the sum are exact in float64."""
    return (a.astype(np.float64) * b + c).astype(np.float16)


@pytest.mark.parametrize(
    ("text", "signs"), [("a * b + c", (1, 1)), ("c + a * b", (1, 1)), ("c - a * b", (-1, 1)), ("a * b - c", (1, -1))]
)
def test_products_and_sums_of_f16_are_rounded_together_too(text, signs):
    a, b, c = HALVES
    source = "enable f16;" + HEAD.replace("f32", "f16").replace(" let d = x[3][i];", "").replace(", 4>", ", 3>")
    for device in ("nvidia", "lavapipe"):
        bindings = {"x": HALVES, "y": np.zeros(COUNT, np.float16)}
        done = bankshot.simulate(f"{source} y[i] = {text}; }}", grid=COUNT // 64, bindings=bindings, device=device)
        fused = rounded_once(np.float16(signs[0]) * a, b, np.float16(signs[1]) * c)
        apart = np.float16(signs[0]) * (a * b) + np.float16(signs[1]) * c
        assert (fused != apart).any()
        np.testing.assert_array_equal(done.outputs["y"], fused if device == "nvidia" else apart)

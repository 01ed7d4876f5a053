"""Bounds of operations that round to whole numbers, take numbers apart, compare or convert, of an inexact operand.

The operand is `v`, a number plus sin(0): WGSL lets sin(0) be off by 2^-11. A result that jumps within that distance of
the number is off by the jump, or has no bound where it is an integer; elsewhere it is off as far as the operand is.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from tests.instrument.bounded_programs import run

E = 2.0**-11
NEAR = E / 4  # from a jump: within the error
FAR = 0.25

# An expression, and at some numbers the least bound that is right; a bound may be 1% larger.
ROWS: list[tuple[str, dict[float, float]]] = [
    ("v", {0.0: E, 2.5: E, -3.0: E}),
    ("-v", {2.5: E}),
    ("abs(v)", {2.5: E, -2.5: E}),
    ("saturate(v)", {0.5: E}),
    ("max(v, 1.0)", {0.5: E, 2.5: E}),
    ("min(v, 1.0)", {0.5: E, 2.5: E}),
    ("max(v, v * 4.0)", {2.5: 4 * E, -2.5: 4 * E}),
    ("max(max(v, b), 1.0)", {2.5: E}),
    ("clamp(v, 0.0, 1.0)", {0.5: E}),
    ("clamp(v, b + 3.0, b)", {0.5: E + 3}),
    ("select(v, 3.0, b > 1.0)", {0.5: E, 1.5: 0}),
    ("select(3.0, v, b > 1.0)", {0.5: 0, 1.5: E}),
    ("select(3.0, 5.0, v > 1.0)", {0.5: 0, 1.5: 0, 1 + NEAR: 2, 1 - NEAR: 2}),
    ("floor(v)", {2.5: 0, -2.5: 0, 2.0: 1 + E, 2 + NEAR: 1 + E, 3 - NEAR: 1 + E, NEAR: 1 + E, 2 + FAR: 0}),
    ("ceil(v)", {2.5: 0, -2.5: 0, 2.0: 1 + E, 2 + NEAR: 1 + E, 3 - NEAR: 1 + E, NEAR: 1 + E, 3 - FAR: 0}),
    ("trunc(v)", {0.0: 0, NEAR: 0, -NEAR: 0, 0.5: 0, 1 - NEAR: 1 + E, 1 + NEAR: 1 + E, -1.0: 1 + E, 1.5: 0, -2.5: 0}),
    ("round(v)", {0.0: 0, 2.0: 0, 2.5: 1 + E, 2.5 - NEAR: 1 + E, 2.5 + NEAR: 1 + E, -0.5: 1 + E, 2 + FAR: 0}),
    ("modf(v).whole", {0.0: 0, NEAR: 0, 1 - NEAR: 1 + E, 2.5: 0, -2.0: 1 + E}),
    ("modf(v).fract", {0.0: E, NEAR: E, 1 - NEAR: 1 + 2 * E, 2.5: E, -2.0: 1 + 2 * E}),
    ("fract(v)", {2.5: E, 2.0: 1 + 2 * E, 2 + NEAR: 1 + 2 * E}),
    ("sign(v)", {0.5: 0, -0.5: 0, 0.0: 2, NEAR: 2, -NEAR: 2}),
    ("step(1.0, v)", {0.5: 0, 1.5: 0, 1.0: 1, 1 + NEAR: 1, 1 - NEAR: 1}),
    ("step(v, 1.0)", {0.5: 0, 1.5: 0, 1 - NEAR: 1}),
    ("frexp(v).fract", {1.5: E / 2, 3.0: E / 4, 1 + NEAR: inf, 2 - NEAR: inf, 0.0: inf}),
    ("frexp(b).fract", {1.5: 0, 1.0: 0, 0.0: 0}),
    ("f32(frexp(v).exp)", {1.5: 0, 1 + NEAR: inf, 2 - NEAR: inf, 0.0: inf}),
    ("f32(frexp(b).exp)", {1.5: 0, 1.0: 0}),
    ("ldexp(v, 3)", {1.5: 8 * E}),
    ("ldexp(v, i32(b))", {2.0: 4 * E}),
    ("ldexp(b, i32(v))", {2.5: 0, 2.0: inf}),
    ("f32(i32(v))", {0.0: 0, NEAR: 0, -NEAR: 0, 2.5: 0, -2.5: 0, 1 - NEAR: inf, 2.0: inf, -2.0: inf}),
    ("f32(u32(v))", {2.5: 0, 2.0: inf, 1 + NEAR: inf}),
    ("f32(bool(v))", {0.5: 0, -0.5: 0, 0.0: 1, NEAR: 1, -NEAR: 1}),
    ("f32(v > 1.0)", {0.5: 0, 1.5: 0, 1.0: 1, 1 + NEAR: 1, 1 - NEAR: 1}),
    ("f32(v >= 1.0)", {0.5: 0, 1 + NEAR: 1}),
    ("f32(v < 1.0)", {0.5: 0, 1 + NEAR: 1}),
    ("f32(v == 1.0)", {0.5: 0, 1 + NEAR: 1}),
    ("f32(v != 1.0)", {0.5: 0, 1 + NEAR: 1}),
    ("f32(b == 1.0)", {0.5: 0, 1.0: 0}),
    ("f32((v > 1.0) & (b > 2.0))", {1 + NEAR: 0, 0.5: 0}),
    ("f32((v > 1.0) | (b > 0.5))", {1 + NEAR: 0, 0.25: 0}),
    ("f32((v > 1.0) & (b > 0.5))", {1 + NEAR: 1, 1.5: 0}),
    ("f32((v > 1.0) | (b > 2.0))", {1 + NEAR: 1, 1.5: 0}),
    ("f32(!(v > 1.0))", {1 + NEAR: 1, 1.5: 0}),
    ("f32(pack4x8unorm(vec4f(v, 0, 0, 0)))", {0.25: 0, 0.5: inf}),  # 0.5 + 255 * 0.5 is whole
    ("f32(pack4x8snorm(vec4f(0, v, 0, 0)))", {0.25: 0, 64 / 127: 0, 0.5: inf, 64.5 / 127: inf}),
    ("f32(pack2x16unorm(vec2f(0, b)) >> 16u)", {0.25: 0, 0.0: 0}),
    ("f32(pack2x16unorm(vec2f(0, v)) >> 16u)", {0.25: inf}),  # 65535 times the error is far above 1
    ("f32(pack2x16snorm(vec2f(0, v)))", {0.25: inf}),
    ("f32(pack2x16float(vec2f(0, v)))", {0.25: inf}),
    ("quantizeToF16(b)", {0.5: 0, 1.0: 0}),
]


def number_rows():
    return [(expression, at, least) for expression, points in ROWS for at, least in points.items()]


@pytest.fixture(scope="module")
def bounds():
    """The bound of each row: one run for each expression, an invocation for each number."""
    found = {}
    for expression, points in ROWS:
        b = np.resize(np.array([*points], np.float32), 64)
        done = run(f"let v = b + sin(a); y[i] = {expression};", np.zeros(64), b)
        found |= {(expression, at): bound for at, bound in zip(points, done.bounds["y"].tolist(), strict=False)}
    return found


@pytest.mark.parametrize(("expression", "at", "least"), number_rows(), ids=lambda each: f"{each}")
def test_bound(bounds, expression, at, least):
    bound = bounds[expression, at]
    assert least <= bound <= least * 1.01 + (least > 0) * 1e-6


GLOBALS = """
var<workgroup> t: array<f32, 64>;
var<workgroup> n: array<atomic<u32>, 64>;
var<private> kept: array<f32, 8>;
fn either(v: f32) -> f32 { if v > 1.0 { return 2.0; } return 3.0; }
fn change(p: ptr<function, f32>, v: f32) { if v > 1.0 { *p = 2.0; } }
"""
LEFT = {0.5: 0, 1.5: 0, 1 + NEAR: inf, 1 - NEAR: inf}  # what `v > 1.0` decides
WHOLE = {2.5: 0, 2 + FAR: 0, 2.0: inf, 3 - NEAR: inf}  # what `u32(v)` decides
# Statements that give `r`, and its bounds.
STATEMENTS: list[tuple[str, dict[float, float]]] = [
    ("var r = 0.0; if v > 1.0 { r = 3.0; }", LEFT),
    ("var r = 0.0; if v > 1.0 { } else { r = 3.0; }", LEFT),
    ("var r = 0.0; if v > 1.0 { r = 3.0; } r = 1.0;", dict.fromkeys(LEFT, 0)),
    ("var r = v; if b > 1.0 { r = 3.0; }", {0.5: E, 1.5: 0, 1 + NEAR: 0}),
    ("var r = either(v);", LEFT),
    ("var r = 3.0; change(&r, v);", LEFT),
    ("var r = 0.0; switch u32(v) { case 2: { r = 1.0; } default: { r = 5.0; } }", WHOLE),
    ("var r = 0.0; for (var k = 0.0; k < v; k += 1.0) { r += 1.0; }", WHOLE),
    ("var r = 0.0; while r < v { r += 1.0; }", WHOLE),
    ("var r = 0.0; loop { r += 1.0; continuing { break if r > v; } }", WHOLE),
    ("var r = 0.0; loop { r += 1.0; if v > 1.0 { break; } if r > 3.0 { break; } }", LEFT),
    ("var r = 0.0; for (var k = 0; k < 3; k++) { if v > 1.0 { continue; } r += 1.0; }", LEFT),
    ("var r = 0.0; for (var k = 0; k < 3; k++) { if v > 1.0 { r = 1.0; } }", LEFT),
    ("kept[1] = v; let r = kept[1];", {0.5: E, 2.5: E}),
    ("kept[1] = v; kept[1] = 3.0; let r = kept[1];", {0.5: 0, 2.5: 0}),
    ("kept[1] = v; let r = kept[2];", {0.5: 0, 2.5: 0}),
    ("kept[2] = 7.0; let r = kept[u32(v)];", WHOLE),
    ("kept[u32(v)] = 7.0; let r = kept[2];", WHOLE),
    ("t[lane] = v; let r = t[lane];", {0.5: E, 2.5: E}),
    ("t[lane] = v; t[lane] = b; let r = t[lane];", {0.5: 0, 2.5: 0}),
    ("if v > 1.0 { t[lane] = 2.0; } let r = t[lane];", LEFT),
    ("if v > 1.0 { t[lane] = 2.0; } t[lane] = 1.0; let r = t[lane];", dict.fromkeys(LEFT, 0)),
    ("t[2] = 7.0; let r = t[u32(v)];", WHOLE),
    ("atomicStore(&n[lane], u32(v)); let r = f32(atomicLoad(&n[lane]));", WHOLE),
    ("atomicAdd(&n[lane], u32(v)); let r = f32(atomicLoad(&n[lane]));", WHOLE),
    ("atomicAdd(&n[lane], u32(v)); atomicAdd(&n[lane], 1u); let r = f32(atomicLoad(&n[lane]));", WHOLE),
    ("atomicStore(&n[lane], u32(v)); let r = f32(atomicExchange(&n[lane], 3u));", WHOLE),
    ("let r = f32(atomicExchange(&n[lane], u32(v)));", dict.fromkeys(WHOLE, 0)),
    ("if v > 1.0 { atomicAdd(&n[lane], 1u); } let r = f32(atomicLoad(&n[lane]));", LEFT),
]


@pytest.mark.parametrize(("statements", "points"), STATEMENTS, ids=[row[0] for row in STATEMENTS])
def test_what_statements_carry(statements, points):
    b = np.resize(np.array([*points], np.float32), 64)
    done = run(f"let v = b + sin(a); {statements} y[i] = r;", np.zeros(64), b, before=GLOBALS)
    bounds = done.bounds["y"][: len(points)].tolist()
    assert bounds == pytest.approx([*points.values()], rel=0.01, abs=2e-6)

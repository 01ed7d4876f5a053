"""Floats for which it matters whether they were rounded at all: those that decide a whole number or a branch."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import bankshot
from bankshot.sim.instrument.error_bounds.error_rules import _is_power_of_two
from bankshot.sim.instrument.error_bounds.shapes import Shapes
from bankshot.sim.ir.rounding import Rounding
from bankshot.sim.lowering.lower import lower

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32, 4>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4>;
@group(0) @binding(2) var<storage, read_write> n: array<u32, 4>;
@compute @workgroup_size(1) fn main() { _ = &y; _ = &n; let p = x[0] * x[1];
"""


def delicate(body: str) -> bool:
    """Whether the product is."""
    pipeline = bankshot.check(HEAD + body + "\n}").pipeline()
    rounding = Rounding(fused=False, contracts=False, cuts_f16=False)
    lowered = lower(pipeline, rounding, checks=False, inspects=False, policy="clamp")
    return any(value.op == "mul_f32" for value in Shapes(lowered.body, lowered.accesses).delicate)


@pytest.mark.parametrize(
    "body",
    [
        *(f"y[0] = {name}(p);" for name in ("floor", "ceil", "trunc", "round", "fract", "sign")),
        "y[0] = step(p, 1.0);",
        "y[0] = step(1.0, p);",
        "y[0] = p % 3.0;",
        "y[0] = x[2] % p;",
        "y[0] = modf(p).fract;",
        "y[0] = modf(p).whole;",
        "n[0] = u32(p);",
        "n[0] = u32(i32(p));",
        "if p < 1.0 { y[0] = 1.0; }",
        "if p == x[2] { y[0] = 1.0; }",
        "y[0] = select(1.0, 2.0, p > 1.0);",
        "y[0] = floor(p + x[2]);",
        "var v = 0.0; if x[2] > 1.0 { v = p; } y[0] = floor(v);",
        "y[0] = p; n[0] = u32(y[0]);",
    ],
)
def test_what_steps_makes_its_operands_delicate(body: str) -> None:
    assert delicate(body)


@pytest.mark.parametrize(
    "body",
    [
        "y[0] = p;",
        "y[0] = sqrt(p) + 1.0;",
        "y[0] = max(abs(p), -p);",
        "y[0] = p * floor(x[2]);",
        "y[1] = p; y[0] = floor(x[1]);",
    ],
)
def test_what_is_continuous_does_not(body: str) -> None:
    assert not delicate(body)


@pytest.mark.parametrize(
    ("number", "holds"),
    [
        (1.0, True),
        (2.0, True),
        (0.5, True),
        (-4.0, True),
        (2.0**-140, True),
        (0.0, False),
        (3.0, False),
        (1.5, False),
        (-6.0, False),
    ],
)
def test_a_product_with_a_power_of_two_is_exact(number: float, holds: bool) -> None:
    bits = int(np.float32(number).view(np.uint32))
    assert _is_power_of_two(cast(Any, SimpleNamespace(op="const", imm=bits))) == holds
    assert not _is_power_of_two(cast(Any, SimpleNamespace(op="get", imm=bits)))

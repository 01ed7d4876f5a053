"""An override's initializer must be known by pipeline creation: every operand of it, at every place."""

from __future__ import annotations

import re

import pytest

import bankshot

SHADER = """\
override a: i32 = 1;
var<private> v: i32 = 1;
struct P { x: i32, y: f32 }
override o = INITIALIZER;
@compute @workgroup_size(1) fn main() { _ = o; }
"""
# Expressions whose operands are all `a`, of each kind of expression.
EARLY = (
    "a",
    "-a",
    "!(a > 1)",
    "a + a",
    "a < a",
    "a << u32(a)",
    "a > 0 && a > 1",
    "a > 0 || a > 1",
    "f32(a)",
    "bool(a)",
    "bitcast<u32>(a)",
    "abs(a)",
    "max(a, a)",
    "clamp(a, a, a)",
    "select(a, a, a > 1)",
    "vec3i(a, a, a).y",
    "vec2f(vec2i(a, a)).x",
    "vec2i(a).yx.x",
    "vec2i(1, 2)[a]",
    "array(a, a)[a]",
    "array(vec2i(a), vec2i(a))[a].x",
    "mat2x2f(f32(a), f32(a), f32(a), f32(a))[a][a]",
    "P(a, f32(a)).x",
    "P(a, f32(a)).y",
    "dot(vec2i(a), vec2i(a))",
    "fma(f32(a), f32(a), f32(a))",
    "any(vec2i(a) == vec2i(a))",
)
OPERAND = re.compile(r"\ba\b")


def check(initializer: str) -> None:
    bankshot.check(SHADER.replace("INITIALIZER", initializer))


@pytest.mark.parametrize("expression", EARLY)
def test_an_initializer_of_overrides(expression):
    check(expression)
    for place in OPERAND.finditer(expression):
        with pytest.raises(bankshot.WgslError, match="initializer of override 'o' must be a const- or override-expr"):
            check(expression[: place.start()] + "v" + expression[place.end() :])


@pytest.mark.parametrize("other", ["workgroupUniformLoad(&v)", "f(a)", "v", "vec2i(v, 1).x", "*(&v)"])
def test_an_initializer_that_is_never_early(other):
    with pytest.raises(bankshot.WgslError, match="must be a const- or override-expr"):
        bankshot.check(
            "fn f(x: i32) -> i32 { return x; }\n"
            + SHADER.replace("INITIALIZER", other).replace("<private> v: i32 = 1", "<workgroup> v: i32")
        )

"""Expressions that are just within the limits of WGSL, and just beyond them, with and without values known early.

In the expressions `i`, `u`, `f` and `v` are values that only the running shader knows: an i32, a u32, an f32, a vec2i.
"""

from __future__ import annotations

import pytest

from bankshot.sim.wgsl.check.check_module import check
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source

HEAD = """enable f16; enable subgroups;
struct Pair { a: i32, b: vec2i }
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var layers: texture_depth_2d;
@group(0) @binding(2) var filtering: sampler;
@group(0) @binding(3) var comparing: sampler_comparison;
fn body(i: i32, u: u32, f: f32, v: vec2i, h: f16) {
"""

TRUE = [
    # elements, members and components of constants
    "array(5, 7)[1] == 7",
    "array(array(1, 2), array(3, 4))[1][0] == 3",
    "vec3(1, 2, 3)[2] == 3",
    "vec3(1, 2, 3)[0u] == 1",
    "all(vec4(1, 2, 3, 4).wzyx == vec4(4, 3, 2, 1))",
    "mat2x3(1, 2, 3, 4, 5, 6)[1].z == 6",
    "mat2x3(1, 2, 3, 4, 5, 6)[1][0] == 4",
    "Pair(1, vec2(2, 3)).b.y == 3",
    "Pair(1, vec2(2, 3)).a == 1",
    "Pair().b.x == 0",
    "array<Pair, 2>()[1].a == 0",
    "all(mat2x2f(mat2x2h(1, 2, 3, 4))[1] == vec2f(3, 4))",
    # && and ||, of which the right side may be left unevaluated
    "true && true",
    "!(true && false)",
    "!(false && true)",
    "false || true",
    "!(false || false)",
    "true || 1 / 0 == 1",
    "!(false && 1 / 0 == 1)",
    "true || (false && 1 / 0 == 1)",
    "true || (true && 1 / 0 == 1)",
    "true || (1 / 0 == 1 && true)",
    "true || array(1, 2)[1 / 0] == 1",
    "true || array(1 / 0, 2)[0] == 1",
    "true || array(1 / 0, 2)[1 - 1 / 0] == 1",
    "true || vec2(1 / 0, 2).y == 1",
    "true || all(vec2(1 / 0, 2).yx == vec2(1))",
    "true || Pair(1 / 0, vec2(2)).a == 1",
    "true || i32(1 / 0) == 1",
    "true || u32(-1) == 1",
    "true || f32(1 / 0) == 1",
    "true || -(1 / 0) == 1",
    "true || u32(3) << 32u == 1",
    # shifts
    "(1u << 31) == 0x80000000u",
    "(1i << 30) == 0x40000000",
    "(-1i << 31) == -2147483648",
    "(-1i >> 31) == -1",
    "(0u << 31) == 0",
    "(0 << 64) == 0",
    "(0 << 63) == 0",
    "(1 << 62) == 4611686018427387904",
    "(-1 << 63) == -9223372036854775807 - 1",
    "(-1 >> 63) == -1",
    "(1 >> 64) == 0",
    # quotients
    "4 / -1 == -4",
    "4i / -1 == -4",
    "-2147483647i / -1 == 2147483647",
    "(-2147483647 - 1) / 1 == -2147483648",
    "4 % -1 == 0",
    "-7 % 3 == -1",
    "7 / -2 == -3",
    "7.5 % 2.0 == 1.5",
    # builtins at the edge of their domain
    "clamp(5, 2, 2) == 2",
    "extractBits(0x80000000u, 31, 1) == 1",
    "extractBits(5u, 32, 0) == 0",
    "extractBits(7u, 0, 32) == 7",
    "insertBits(0u, 1u, 31, 1) == 0x80000000u",
    "insertBits(4u, 1u, 32, 0) == 4",
    "pow(0.0, 2.0) == 0",
    "ldexp(1f, 127) == 0x1p127f",
    "ldexp(0.5f, 128) == 0x1p127f",
    "ldexp(0.5h, 16) == 32768h",
    "ldexp(0.5, 1024) == 0x1p1023",
    "quantizeToF16(65504f) == 65504f",
    "quantizeToF16(-65504f) == -65504f",
    "smoothstep(2.0, 1.0, 1.0) == 1.0",
    "sqrt(0.0) == 0",
    "acos(1.0) == 0",
    "acosh(1.0) == 0",
    # conversions
    "i32(2147483647) == 2147483647",
    "u32(4294967295) == 4294967295u",
    "i32(3e9f) == 2147483520",  # the greatest f32 that an i32 holds
    "u32(5e9f) == 4294967040",
    "i32(-3e9f) == -2147483648",
    "u32(-1f) == 0",
    "u32(-1i) == 4294967295u",
    "i32(4294967295u) == -1",
    "f16(65504.0) == 65504h",
    "9223372036854775807 - 1 == 9223372036854775806",
    "-9223372036854775807 - 1 < 0",
]

ZERO, FAR, RANGE, OVERFLOW, VALUE = (
    "division-by-zero",
    "shift-too-far",
    "argument-out-of-range",
    "const-overflow",
    "value-out-of-range",
)
REFUSED = [
    # of constants alone
    ("index-out-of-bounds", "array(5, 7)[2]"),
    ("index-out-of-bounds", "array(5, 7)[-1]"),
    ("index-out-of-bounds", "vec3(1, 2, 3)[3]"),
    ("index-out-of-bounds", "mat2x3f()[2]"),
    ("index-out-of-bounds", "mat2x3f()[1][3]"),
    (ZERO, "1 / 0"),
    (ZERO, "1 % 0"),
    (ZERO, "1u / 0u"),
    (ZERO, "true && 1 / 0 == 1"),
    (ZERO, "false || 1 / 0 == 1"),
    (OVERFLOW, "1.0 / 0.0"),
    (OVERFLOW, "(-2147483647i - 1) / -1"),
    (OVERFLOW, "(-2147483647i - 1) % -1"),
    (OVERFLOW, "(-9223372036854775807 - 1) / -1"),
    (OVERFLOW, "9223372036854775807 + 1"),
    (OVERFLOW, "-9223372036854775807 - 2"),
    (OVERFLOW, "1i << 31"),
    (OVERFLOW, "-2i << 31"),
    (OVERFLOW, "3u << 31"),
    (OVERFLOW, "1 << 63"),
    (FAR, "-1 << 64"),
    (FAR, "1u << 32"),
    (FAR, "1 << -1"),
    (FAR, "vec2(1) << vec2(1, -1)"),
    (RANGE, "clamp(5, 3, 2)"),
    (RANGE, "smoothstep(1.0, 1.0, 3.0)"),
    (RANGE, "extractBits(7u, 31, 2)"),
    (RANGE, "insertBits(7u, 1u, 32, 1)"),
    (RANGE, "pow(-1.0, 2.0)"),
    (RANGE, "ldexp(0.25f, 129)"),
    (RANGE, "ldexp(0.25h, 17)"),
    (RANGE, "ldexp(0.25, 1025)"),
    (VALUE, "quantizeToF16(65505f)"),
    (VALUE, "quantizeToF16(-65505f)"),
    (VALUE, "pack2x16float(vec2f(1, 65505))"),
    (VALUE, "i32(2147483648)"),
    (VALUE, "i32(-2147483649)"),
    (VALUE, "u32(4294967296)"),
    (VALUE, "u32(-1)"),
    (VALUE, "f16(65520.0)"),
    (VALUE, "f32(1e39)"),
    (OVERFLOW, "sqrt(-1.0)"),
    (OVERFLOW, "acosh(0.5)"),
    (OVERFLOW, "log(0.0)"),
    # of constants beside values that the shader computes
    ("index-out-of-bounds", "v[2]"),
    ("index-out-of-bounds", "v[-1]"),
    (ZERO, "i / 0"),
    (ZERO, "u % 0u"),
    (ZERO, "v / vec2(1, 0)"),
    (ZERO, "v % 0"),
    (FAR, "i << 32"),
    (FAR, "u >> 32u"),
    (FAR, "v << vec2(1, 32)"),
    (RANGE, "clamp(i, 3, 2)"),
    (RANGE, "clamp(v, vec2(1, 3), vec2(1, 2))"),
    (RANGE, "smoothstep(1, 1, f)"),
    (RANGE, "extractBits(u, 31, 2)"),
    (RANGE, "insertBits(u, u, 31, 2)"),
    (RANGE, "ldexp(f, 129)"),
    (RANGE, "ldexp(h, 17)"),
    (RANGE, "subgroupBroadcast(i, 128)"),
    (RANGE, "subgroupBroadcast(i, -1)"),
    (RANGE, "subgroupShuffle(i, 128)"),
    (RANGE, "subgroupShuffleUp(i, 128)"),
    (RANGE, "subgroupShuffleDown(i, 128)"),
    (RANGE, "subgroupShuffleXor(i, 128)"),
    (RANGE, "quadBroadcast(i, 4)"),
    (RANGE, "textureGather(4, image, filtering, vec2f())"),
    (RANGE, "textureGather(-1, image, filtering, vec2f())"),
    (RANGE, "textureGather(0, image, filtering, vec2f(), vec2i(0, 8))"),
    (RANGE, "textureGather(0, image, filtering, vec2f(), vec2i(-9, 0))"),
    (RANGE, "textureGather(layers, filtering, vec2f(), vec2i(0, 8))"),
    (RANGE, "textureGatherCompare(layers, comparing, vec2f(), f, vec2i(8, 0))"),
    (RANGE, "textureSampleLevel(image, filtering, vec2f(), 0, vec2i(8, 0))"),
    (RANGE, "textureSampleGrad(image, filtering, vec2f(), vec2f(), vec2f(), vec2i(8, 0))"),
    (RANGE, "textureSampleCompareLevel(layers, comparing, vec2f(), f, vec2i(8, 0))"),
]

AT_RUN_TIME = [
    "v[1]",
    "i / -1",
    "i / 1",
    "(-2147483647i - 1) / i",
    "f / 0",
    "i << 31",
    "u >> 31u",
    "1 / i",
    "1i << u",
    "0i << u",
    "clamp(i, 2, 2)",
    "clamp(2, i, 1)",
    "smoothstep(2, 1, f)",
    "smoothstep(f, 1, 1)",
    "extractBits(u, 31, 1)",
    "extractBits(u, 33, u)",
    "insertBits(u, u, 31, 1)",
    "pow(f, 2)",
    "pow(-1, f)",
    "ldexp(f, 128)",
    "ldexp(h, 16)",
    "subgroupBroadcast(i, 127)",
    "subgroupBroadcast(i, 0)",
    "subgroupShuffle(i, 127)",
    "subgroupShuffleUp(i, 127)",
    "subgroupShuffleDown(i, 127)",
    "subgroupShuffleXor(i, 127)",
    "quadBroadcast(i, 3)",
    "textureGather(3, image, filtering, vec2f(), vec2i(-8, 7))",
    "textureGather(0, image, filtering, vec2f())",
    "textureGather(layers, filtering, vec2f(), vec2i(-8, 7))",
    "textureGatherCompare(layers, comparing, vec2f(), f, vec2i(-8, 7))",
    "textureSampleLevel(image, filtering, vec2f(), 0, vec2i(-8, 7))",
    "textureSampleGrad(image, filtering, vec2f(), vec2f(), vec2f(), vec2i(-8, 7))",
    "true || i == 1 / 0",
]


@pytest.mark.parametrize("expression", TRUE)
def test_true(expression: str) -> None:
    check(Source(f"{HEAD} const_assert {expression}; }}"))
    with pytest.raises(WgslError, match="this const_assert is false"):
        check(Source(f"{HEAD} const_assert !({expression}); }}"))


@pytest.mark.parametrize(("code", "expression"), REFUSED, ids=[row[1] for row in REFUSED])
def test_refused(code: str, expression: str) -> None:
    with pytest.raises(WgslError) as error:
        check(Source(f"{HEAD} _ = {expression}; }}"))
    assert [each.code for each in error.value.diagnostics] == [code]


@pytest.mark.parametrize("expression", AT_RUN_TIME)
def test_accepted(expression: str) -> None:
    check(Source(f"{HEAD} let made = {expression}; }}"))

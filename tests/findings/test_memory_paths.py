"""Names of places in memory, by the layout rules of WGSL."""

from __future__ import annotations

import pytest

import bankshot
from bankshot.sim.findings.memory_paths import number, path
from bankshot.sim.ir.register_bits import to_bits
from bankshot.sim.wgsl import types as t

MODULE = bankshot.check("""enable f16;
struct Inner { a: vec3f, b: u32, c: array<vec2i, 3> }
struct Outer { first: f32, inner: array<Inner, 2>, m: mat3x2f, h: array<vec3<f16>, 2>, last: atomic<u32> }
var<workgroup> w: Outer;
var<workgroup> x: vec4u;
var<workgroup> s: bool;
@compute @workgroup_size(1) fn main() { _ = &w; _ = &x; _ = &s; }
""")
# Inner: a at 0, b at 12, c at 16 with stride 8: 40 bytes, aligned to 16: 48. Outer: inner at 16 to 112, m with columns
# of 8 bytes to 136, h with elements of 8 bytes, three of f16 and padding, to 152.
PLACES = {
    ("w", 0): (".first", t.F32),
    ("w", 16): (".inner[0].a.x", t.F32),
    ("w", 24): (".inner[0].a.z", t.F32),
    ("w", 28): (".inner[0].b", t.U32),
    ("w", 32): (".inner[0].c[0].x", t.I32),
    ("w", 52): (".inner[0].c[2].y", t.I32),
    ("w", 64): (".inner[1].a.x", t.F32),
    ("w", 76): (".inner[1].b", t.U32),
    ("w", 100): (".inner[1].c[2].y", t.I32),
    ("w", 112): (".m[0].x", t.F32),
    ("w", 124): (".m[1].y", t.F32),
    ("w", 132): (".m[2].y", t.F32),
    ("w", 136): (".h[0].x", t.F16),
    ("w", 140): (".h[0].z", t.F16),
    ("w", 142): (".h[0]", None),
    ("w", 146): (".h[1].y", t.F16),
    ("w", 152): (".last", t.U32),
    ("x", 0): (".x", t.U32),
    ("x", 4): (".y", t.U32),
    ("x", 8): (".z", t.U32),
    ("x", 12): (".w", t.U32),
    ("s", 0): ("", t.BOOL),
}


@pytest.mark.parametrize(("name", "byte"), PLACES)
def test_the_path_to_a_byte(name, byte):
    (variable,) = (each for each in MODULE.globals if each.name == name)
    assert path(variable.type, byte) == PLACES[name, byte]


@pytest.mark.parametrize(
    ("scalar", "bits", "text"),
    [
        (t.U32, 0xFFFFFFFF, "4294967295"),
        (t.I32, 0xFFFFFFFF, "-1"),
        (None, 7, "7"),
        (t.BOOL, 0, "false"),
        (t.BOOL, 1, "true"),
        (t.F32, to_bits("f32", 1.5), "1.5"),
        (t.F32, to_bits("f32", 2.0), "2.0"),
        (t.F32, to_bits("f32", 1e30), "1e+30"),
        (t.F32, to_bits("f32", float("nan")), "nan"),
        (t.F16, 0xABCD3C00, "1.0"),  # the other half of the word
        (t.F16, 0xC000, "-2.0"),
    ],
)
def test_numbers_as_a_shader_reads_them(scalar, bits, text):
    assert number(scalar, bits) == text

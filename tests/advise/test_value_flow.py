"""Where the value of `P` flows, by the form in which a module uses it."""

import pytest

from bankshot.oracle.advise.value_flow import Flow
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.parser import parse

TILE = "var<workgroup> tile: array<f32, 64>;"
SIZED, INDEXED, MULTIPLIED = "sized", "indexed", "multiplied"
MAIN = "fn main() {{ var i = 2u; {} }}"


def uses(text, name="P", function=""):
    """What is known about the uses, and how often there are others."""
    reach = Flow(parse(Source(text))).reach(name, "tile", function)
    kinds = {kind for kind in (SIZED, INDEXED, MULTIPLIED) if getattr(reach, kind)}
    return kinds, [span.text for span in reach.elsewhere]


@pytest.mark.parametrize(
    ("declared", "kinds", "elsewhere"),
    [
        ("var<workgroup> tile: array<f32, P>;", {SIZED}, []),
        ("var<workgroup> tile: array<f32, P + 2u>;", {SIZED}, []),
        ("var<workgroup> tile: array<f32, 4u * P>;", {SIZED, MULTIPLIED}, []),
        ("var<workgroup> tile: array<array<f32, P>, 4>;", {SIZED}, []),
        ("var<workgroup> tile: array<array<f32, P * 2u>, 4>;", {SIZED, MULTIPLIED}, []),
        ("var<workgroup> tile: array<f32, 64u / P>;", set(), ["P"]),
        ("var<workgroup> other: array<f32, P>;", set(), ["P"]),
        ("const Q = P; var<workgroup> tile: array<f32, Q>;", {SIZED}, []),
        ("override Q = P * 2u; var<workgroup> tile: array<f32, Q>;", {SIZED, MULTIPLIED}, []),
        ("override Q = P * 2u; var<workgroup> other: array<f32, Q>;", {MULTIPLIED}, ["Q"]),
        ("var<private> start = P;", set(), ["P"]),
        ("var<private> start: array<u32, P>;", set(), ["P"]),
        ("@group(0) @binding(P) var<uniform> u: u32;", set(), ["P"]),
        ("@id(P) override o: u32;", set(), ["P"]),
        ("struct S { @size(P) a: f32 }", set(), ["P"]),
        ("alias A = array<f32, P>;", set(), ["P"]),
        ("const_assert P > 2u;", set(), ["P"]),
        ("@compute @workgroup_size(P) fn main() {}", set(), ["P"]),
        ("fn f(P: u32) -> u32 { return P; }", set(), []),  # another P
        ("fn f(P: u32) {} var<workgroup> tile: array<f32, P>;", {SIZED}, []),
        ("fn f() { let P = 1u; } fn g() { tile[P] = 1.0; }", {INDEXED}, []),
        ("fn f() -> u32 { return P; }", set(), []),  # which is not called
        ("fn f() -> u32 { return P; } const Q = f(); var<workgroup> tile: array<f32, Q>;", {SIZED}, []),
    ],
)
def test_uses_in_declarations(declared, kinds, elsewhere):
    assert uses(f"const P = 3u; {declared}") == (kinds, elsewhere)


@pytest.mark.parametrize(
    ("body", "kinds", "elsewhere"),
    [
        ("tile[P] = 0.0;", {INDEXED}, []),
        ("tile[i + P] += 1.0;", {INDEXED}, []),
        ("tile[P - i]++;", {INDEXED}, []),
        ("let a = tile[i * P];", {INDEXED, MULTIPLIED}, []),
        ("let a = tile[P * i];", {INDEXED, MULTIPLIED}, []),
        ("let a = tile[2u * (i + P)];", {INDEXED, MULTIPLIED}, []),
        ("let a = tile[P / 2u] + tile[P % 2u];", {INDEXED}, []),
        ("let a = tile[i / P] + tile[i % P];", set(), ["P", "P"]),
        ("let a = tile[i].x[P];", {INDEXED}, []),
        ("let a = tile[min(P, i)] + tile[u32(P)];", {INDEXED}, []),
        ("let a = other[P];", set(), ["P"]),
        ("let a = P; tile[a] = 0.0;", {INDEXED}, []),
        ("let a = P;", set(), []),
        ("let a = i; tile[a] = 0.0;", set(), []),
        ("i = P; tile[i] = 0.0;", {INDEXED}, []),
        ("i += P; tile[i] = 0.0;", {INDEXED}, []),
        ("i *= P; tile[i] = 0.0;", {INDEXED, MULTIPLIED}, []),
        ("global = P; tile[global] = 0.0;", set(), ["P"]),
        ("i++; tile[i] = 0.0;", set(), []),
        ("var a: array<u32, P>;", set(), ["P"]),
        ("var a = array<u32, P>();", set(), ["P"]),
        ("tile[i] = f32(P);", set(), ["P"]),
        ("put(P, i);", {INDEXED}, []),
        ("put(i, P);", set(), ["value"]),
        ("put(2u * P, i);", {INDEXED, MULTIPLIED}, []),
        ("let P = 5u; tile[P] = 0.0;", set(), []),  # another P
        ("for (var k = 0u; k < P; k++) { tile[k] = 0.0; }", set(), ["P"]),
        ("for (var k = P; k < i; k++) { tile[k] = 0.0; }", {INDEXED}, ["k"]),
        ("while i != P { i++; }", set(), ["P"]),
        ("switch P { default: { i++; } }", set(), ["P"]),
        ("loop { continuing { break if P == i; } }", set(), ["P"]),
    ],
)
def test_uses_in_functions(body, kinds, elsewhere):
    put = "fn put(at: u32, value: u32) { tile[at] = f32(value); }"
    assert uses(f"const P = 3u; {TILE} {put} {MAIN.format(body)}") == (kinds, elsewhere)


@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">=", "&&", "||"])
def test_what_a_comparison_decides_is_no_distance(sign):
    text = f"const P = true; {TILE} {MAIN.format(f'tile[select(i, 2u, P {sign} true)] = 0.0;')}"
    assert uses(text) == (set(), ["P"])


def test_a_name_of_a_function_is_followed_from_there():
    text = f"const P = 3u; {TILE} {MAIN.format('let P = i; tile[P + i] = 0.0;')} fn other() {{ let P = 1u; }}"
    assert uses(text, "P", "main") == ({INDEXED}, [])
    assert uses(text, "P", "other") == (set(), [])
    assert uses(text, "i", "main") == ({INDEXED}, [])

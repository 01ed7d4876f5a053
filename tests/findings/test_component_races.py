"""Stores to components of a vector: WGSL allows each to access the whole vector (Vector Access Expression)."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
enable f16;
struct Mixed {{ a: vec3u, b: u32, c: vec2u }}
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> stored: array<vec4u>;
@group(0) @binding(2) var<storage, read_write> mixed: array<Mixed>;
var<workgroup> v: array<vec4u, {size}>;
var<workgroup> m: array<mat2x4f, {size}>;
var<workgroup> h: array<vec2h, {size}>;
var<workgroup> plain: array<array<u32, 4>, {size}>;
@compute @workgroup_size({size})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) g: vec3u) {{
    let last = {size}u - 1u; let at = g.x * {size}u + i;
    _ = &y; _ = &stored; _ = &mixed;
    {body}
}}"""
SIZES = [4, 16, 32, 64, 128, 256]
ZERO = "v[i] = vec4u(); m[i] = mat2x4f(); h[i] = vec2h(); workgroupBarrier(); "


def findings(body: str, size: int, groups: int = 2) -> list[bankshot.Finding]:
    count = size * groups
    bindings = {
        "y": np.zeros(count, np.uint32),
        "stored": np.zeros((count, 4), np.uint32),
        "mixed": np.zeros(count * 32, np.uint8).tobytes(),
    }
    text = HEAD.format(size=size, body=body)
    return bankshot.simulate(bankshot.check(text, uniformity="off"), grid=groups, bindings=bindings).findings


# A store to a component beside an access to another component of the vector, and the same with a cure.
TWINS = {
    "components by index": (ZERO + "v[i >> 2u][i & 3u] = i;", "plain[i >> 2u][i & 3u] = i;"),
    "another component is loaded": (
        ZERO + "v[i].y = 9u; y[at] = v[last - i].x;",
        ZERO + "v[i].y = 9u; workgroupBarrier(); y[at] = v[last - i].x;",
    ),
    "another component is stored later": (
        ZERO + "y[at] = v[last - i].x; v[i].w = 9u;",
        ZERO + "y[at] = v[last - i].x; workgroupBarrier(); v[i].w = 9u;",
    ),
    "a swizzle": (ZERO + "if i < 2u { v[0].zw = vec2u(i); } if i == 2u { v[0].x = 1u; }", ZERO + "v[i].zw = vec2u(i);"),
    "columns of a matrix": (ZERO + "m[i / 4u][1][i % 4u] = 1.0;", ZERO + "m[i / 2u][i % 2u] = vec4f(1.0);"),
    "f16": (ZERO + "h[i / 2u][i % 2u] = 1.0h;", ZERO + "h[i] = vec2h(1.0h);"),
    "storage": ("stored[at / 4u][i % 4u] = i;", "stored[at] = vec4u(i);"),
    "workgroups": ("if i == 0u { stored[0][g.x] = 1u; }", "if i == 0u { stored[g.x][0] = 1u; }"),
    "a member of a struct": ("mixed[at / 2u].c[i % 2u] = i;", "mixed[at].c[i % 2u] = i;"),
    "members beside each other": ("mixed[at / 2u].a[i % 2u] = i;", "if i % 2u == 0u { mixed[at].a.x = i; }"),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", TWINS)
def test_twins(name: str, size: int) -> None:
    wrong, right = TWINS[name]
    found = findings(wrong, size)
    assert "component-race" in {f.code for f in found}
    assert {f.code for f in found} <= {"component-race", "race"}
    assert [f.render() for f in findings(right, size)] == []


def test_other_members_of_a_struct_are_no_part_of_the_vector() -> None:
    assert findings("if i == 0u { mixed[g.x].a.x = 1u; } if i == 1u { mixed[g.x].b = 2u; }", 64) == []


def test_what_the_finding_says() -> None:
    (finding,) = findings("if g.x == 0u { " + ZERO + "v[i].y = 9u; y[at] = v[63u - i].x; }", 64)
    assert (finding.code, finding.severity, finding.verdict) == ("component-race", "warning", None)
    assert finding.message == (
        "invocation 0 loads a component of v[63], and invocation 63 stores to another; no barrier orders them, "
        "and WGSL allows a store to a component to access the whole vector"
    )
    (note,) = finding.notes
    assert note.message == "the store is here"
    assert (finding.hint or "").endswith("or give each invocation a vector of its own, or use an array of scalars")


def test_an_exact_race_at_the_same_places_is_reported_once() -> None:
    found = findings("v[i] = vec4u(); workgroupBarrier(); v[i / 8u][i % 4u] = i;", 64, groups=1)
    assert [f.code for f in found] == ["race"]


def test_it_is_found_without_verdicts() -> None:
    text = HEAD.format(size=64, body=ZERO + "v[i >> 2u][i & 3u] = i;")
    bindings = {"y": np.zeros(1, np.uint32), "stored": np.zeros(4, np.uint32), "mixed": bytes(32)}
    run = bankshot.simulate(bankshot.check(text, uniformity="off"), grid=1, bindings=bindings, replay=False)
    assert [f.code for f in run.findings] == ["component-race"]


def test_functions_and_private_variables_have_vectors_of_their_own() -> None:
    assert findings("var p: vec4u; p[i & 3u] = i; p.x = 1u; y[at] = p.y;", 64) == []

"""What an access past the end says: which access, of which array, and how many elements that has."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """struct Two { first: u32, list: array<u32, 3> }
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<storage, read_write> s: array<Two, 2>;
@group(0) @binding(2) var<storage, read_write> c: array<atomic<u32>, 4>;
@group(0) @binding(3) var<storage, read_write> one: array<u32, 1>;
@group(0) @binding(4) var image: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(5) var<uniform> at: u32;
var<workgroup> t: array<u32, 4>;
fn element(p: ptr<workgroup, array<u32, 4>>, i: u32) -> u32 { return (*p)[i]; }
@compute @workgroup_size(1)
fn main() {
    _ = &y; _ = &s; _ = &c; _ = &one; _ = at; _ = textureDimensions(image); t[0] = 1u;
"""
GIVEN = {
    "y": np.zeros(1200, np.uint32),
    "s": np.zeros(8, np.uint32),
    "c": np.zeros(4, np.uint32),
    "one": np.zeros(1, np.uint32),
    "image": np.zeros((2, 2), np.uint32),
    "at": np.uint32(9),
}
KEPT = "WebGPU keeps the access inside the buffer, at an unspecified element"
MESSAGES = {
    "y[at * 1000u] = 1u;": ("store of y[9000], which has 1,200 elements", KEPT),
    "y[0] = y[at - 10u];": ("load of y[-1], which has 1,200 elements", None),
    "y[0] = y[at - 4294967295u - 12u];": ("load of y[-2], which has 1,200 elements", None),
    "y[0] = one[at];": ("load of one[9], which has 1 element", None),
    "y[0] = s[at - 7u].first;": ("load of s[2], which has 2 elements", None),
    "y[0] = s[1].list[at - 6u];": ("load of s[1].list[3], which has 3 elements", None),
    "t[at] = 1u;": ("store of t[9], which has 4 elements", None),
    "y[0] = atomicMax(&c[at], 1u);": ("atomicMax of c[9], which has 4 elements", None),
    "atomicStore(&c[at - 5u], 1u);": ("atomicStore of c[4], which has 4 elements", None),
    "let p = &t; y[0] = (*p)[at];": ("load of (*p)[9] in t, which has 4 elements", None),
    "y[0] = element(&t, at);": ("load of (*p)[9] in t, which has 4 elements", None),
    "var v = array(1u, 2u, 3u); y[0] = v[at - 6u];": (
        "index 3 of v, which has 3 elements", "WGSL accesses an unspecified element instead"),
    "textureStore(image, vec2u(at, 0), vec4u(1));": (
        "textureStore of a texel that image does not have", "WebGPU discards the store"),
    "y[0] = textureLoad(image, vec2u(at, 0)).x;": (
        "textureLoad of a texel that image does not have",
        "WebGPU returns zeros, or an unspecified texel of the texture"),
}  # fmt: skip


@pytest.mark.parametrize("body", MESSAGES)
def test_what_an_access_past_the_end_says(body):
    message, hint = MESSAGES[body]
    run = bankshot.simulate(f"{HEAD}{body}\n}}", grid=1, bindings=GIVEN, probes=["bounds"], replay=False)
    (finding,) = run.findings
    assert (finding.code, finding.message, finding.count) == ("out-of-bounds", message, 1)
    assert finding.hint == (hint or KEPT)
    assert finding.span.line == HEAD.count("\n") + 1 or "element(" in body

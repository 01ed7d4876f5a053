"""Which bindings a kernel may write: by assignments, through pointers, and as textures."""

import pytest

import bankshot
from bankshot.oracle.manifests.reflection import declared_writable, may_write

WGSL = """\
struct S {{ head: u32, tail: array<vec4<u32>, 4> }}
@group(0) @binding(0) var<storage, read> x: array<u32, 16>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 16>;
@group(0) @binding(2) var<storage, read_write> z: S;
@group(0) @binding(3) var<storage, read_write> n: atomic<u32>;
@group(0) @binding(4) var<uniform> u: vec4<u32>;
@group(0) @binding(5) var image: texture_2d<f32>;
@group(0) @binding(6) var stored: texture_storage_2d<r32uint, write>;
@group(0) @binding(7) var both: texture_storage_2d<r32uint, read_write>;
@group(0) @binding(8) var loaded: texture_storage_2d<r32uint, read>;
var<workgroup> w: u32;
var<private> v: u32;
fn first(p: ptr<storage, array<u32, 16>, read>) -> u32 {{ return p[0]; }}
fn fill(p: ptr<storage, array<u32, 16>, read_write>) {{ p[0] = 1u; }}
fn store() {{ y[3] = 1u; }}
fn unused() {{ z.head = 1u; }}
@compute @workgroup_size(1) fn main() {{ {body} }}
"""
WRITTEN = {
    "": [],
    "y[0] = 1u;": ["y"],
    "y[0] += 1u;": ["y"],
    "y[x[0]] = u.x;": ["y"],
    "z.tail[1].y = 1u;": ["z"],
    "z.tail[y[0]][1] = 1u;": ["z"],
    "v = y[0]; w = z.head;": [],
    "_ = y[0];": [],
    "let p = &y[0]; *p = 1u;": ["y"],
    "let p = &y; let q = p; q[2] = 1u;": ["y"],
    "let p = &x; v = p[1];": [],  # a pointer to what is only read
    "let p = &u; v = p.x;": [],
    "v = first(&x);": [],
    "fill(&y);": ["y"],
    "store();": ["y"],
    "v = arrayLength(&m);": [],
    "v = atomicLoad(&n);": [],
    "atomicStore(&n, 1u);": ["n"],
    "v = atomicAdd(&n, x[0]);": ["n"],
    "z.head = 1u; y[0] = 1u;": ["y", "z"],
    "let p = &w; *p = 1u; let q = &v; *q = 1u;": [],
    "_ = textureDimensions(image); _ = textureDimensions(loaded);": [],
    "_ = textureDimensions(stored);": ["stored"],
    "_ = textureDimensions(both);": ["both"],
}


@pytest.mark.parametrize("body", WRITTEN)
def test_the_bindings_that_a_kernel_may_write(body):
    text = WGSL.format(body=body)
    text += "@group(0) @binding(9) var<storage, read_write> m: array<u32>;\n" if "&m" in body else ""
    assert may_write(bankshot.check(text).pipeline(entry="main")) == WRITTEN[body]


def test_the_bindings_that_are_declared_writable():
    assert declared_writable(bankshot.check(WGSL.format(body=""))) == ["y", "z", "n", "stored", "both"]

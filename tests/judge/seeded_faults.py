"""What a fault that is seeded in the simulator is, and the two kernels in which each of them shows.

A fault changes the simulator's Python: its tables, its lowering, or its code generation. `counter_faults` and
`value_faults` have them. What is compiled into the machine has its faults in `tools/seeded_faults.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

# Two subgroups of 32, of which the second has 16 invocations, and a guard that keeps out a part of the last workgroup.
# All floats are whole numbers, so that they are the same however a device rounds.
COUNTED = """\
struct Pair { a: f32, b: vec3<f32>, c: mat2x2<f32> }
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(2) var<storage, read_write> pairs: array<Pair>;
@group(0) @binding(3) var<storage, read_write> quads: array<vec4<f32>>;
override N = 70u;
var<workgroup> tile: array<f32, 1024>;
var<workgroup> wide: array<vec4<f32>, 128>;
var<workgroup> sums: array<atomic<u32>, 64>;

fn weight(v: vec3<f32>, s: f32) -> f32 {
    if s > 40.0 { return dot(v, v); }
    return fma(s, 2.0, 1.0);
}

@compute @workgroup_size(48)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) i: u32) {
    for (var k = 0u; k < 3u; k++) { tile[i + 48u * k] = f32(i); }  // some drivers leave workgroup memory unwritten
    if i < 4u { atomicStore(&sums[i], 0u); }
    wide[i / 2u] = vec4(f32(i / 2u));
    workgroupBarrier();
    if id.x >= N { return; }
    let f = f32(id.x);
    var acc = tile[i / 4u] + tile[(i % 4u) * 32u];
    tile[i * 8u + 512u] = f;
    let q = wide[i / 2u] + wide[(i * 5u) % 24u];
    for (var k = 0u; k < i % 5u; k++) {
        if k == 2u { continue; }
        acc += f32(k) * 2.0;
    }
    if i % 3u == 0u { acc += weight(vec3(f), f); } else { acc -= q.x - 3.0; }
    if i < 16u && atomicAdd(&sums[i % 4u], 1u) < 60u { acc += floor(sqrt(f)); }
    switch i % 3u { case 0u: { acc += 1.0; }
        case 1u: { atomicMax(&hist[i % 4u * 8u], id.x); } default: { acc = -acc; } }
    pairs[id.x].a = pairs[id.x].b.x + f;
    pairs[id.x].b = vec3(f, acc, 1.0);
    let p = pairs[id.x].c;
    quads[id.x * 2u] = vec4((p * vec2(f, 2.0)), (mat2x2(f, 1.0, 2.0, 3.0) * vec2(f, 1.0)));
    y[id.x * 3u] = acc + f32(i) / 1.0;
}
"""

# Whole workgroups, on the profile that rounds as the adapter does: its bits are those of the GPU.
VALUES = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@group(0) @binding(1) var<storage, read_write> z: array<u32>;
@group(0) @binding(2) var<storage, read_write> hist: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> x: array<f32>;
var<workgroup> seen: array<u32, 64>;

fn clipped(v: f32) -> f32 {
    if v < 0.5 { return v * 3.0; }
    return min(v, 0.75);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    let f = x[i];
    var own = array<u32, 5>(3u, 1u, 4u, 1u, 5u);
    seen[i] = i * i;
    workgroupBarrier();
    let m = mat2x3(f, 2.0, 3.0, 4.0, f, 6.0) * vec2(f, 0.5);
    y[i] = f / 3.0;
    y[64u + i] = clipped(f) - 0.1;
    y[128u + i] = dot(vec3(f, 2.0, 3.0), vec3(7.0, f, 5.0));
    y[192u + i] = m.x * 5.0 - m.z;
    y[256u + i] = round(f * 9.0) + fract(f * 5.0);
    y[320u + i] = mix(f, 2.0, 0.25);
    z[i] = (i * 77u) / (i % 7u + 2u) + own[i % 9u];
    z[64u + i] = 0x80000001u >> (i % 40u);
    z[128u + i] = u32((i32(i) - 32) >> 1u);
    z[192u + i] = u32(i32(f * 100.0 - 50.0));
    z[256u + i] = select(i, 7u, i < 20u) ^ extractBits(i * 999u, 3u, 5u);
    z[320u + i] = seen[63u - i] % (i + 1u);
    var turns = 0u;
    loop { turns += 1u; if turns == 3u { continue; } if turns > i % 6u { break; } z[384u + i] += turns; }
    if i % 5u == 2u { atomicMax(&hist[i % 3u], i); } else { atomicAdd(&hist[3u + i % 3u], 1u); }
}
"""

BINDINGS = {
    COUNTED: ("y=zeros:f32:512", "hist=zeros:u32:32", "pairs=ones:f32:1024", "quads=zeros:f32:1024"),
    VALUES: ("y=zeros:f32:512", "z=zeros:u32:512", "hist=zeros:u32:8", "x=uniform:f32:64"),
}


@dataclass(frozen=True)
class Fault:
    """A fault: `seed(patch)` makes it. `shows` is the counter or output that the report names."""

    name: str
    shows: str
    seed: Callable[[Any], None]


class Faults(list[Fault]):
    """A table of faults, filled row by row."""

    def row(self, name: str, shows: str, seed: Callable[..., None], *arguments: Any) -> None:
        """Add a fault that `seed(patch, *arguments)` makes."""
        self.append(Fault(name, shows, lambda patch: seed(patch, *arguments)))

    def made_by(self, name: str, shows: str) -> Callable[[Callable[[Any], None]], None]:
        """Decorate a function that makes a fault."""
        return lambda seed: self.row(name, shows, seed)

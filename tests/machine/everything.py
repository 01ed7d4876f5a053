"""A kernel of much that the machine does: C's functions, arithmetic of every kind, atomics, exchange, and findings."""

EVERYTHING = """
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: atomic<u32>;
var<workgroup> tile: array<f32, 70>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {
    let v = x[id.x];
    var r = acos(v) + acosh(v + 2) + asin(v) + asinh(v) + atan(v) + atan2(v, 0.3) + atanh(v) + cos(v) + cosh(v);
    r += exp(v) + exp2(v) + log(v) + log2(v) + pow(v, 2.5) + sin(v) + sinh(v) + tan(v) + tanh(v) + v % 0.3;
    tile[i] = r + sqrt(v) / v;
    if i % 3 == 0 { r += f32(f16(v) * 3h) + tile[(i + 5) % 72]; }
    workgroupBarrier();
    r *= subgroupAdd(v);
    switch i % 4 {
        case 0: { r += tile[63 - i]; }
        default: { r += f32(u32(r) << (i % 9)); }
    }
    atomicAdd(&sum, u32(r) / (i % 5));
    y[id.x] = r;
    y[0] = 1;
}
"""

# Comparisons that classes of workgroups watch.
GUARDS = """
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3u) {
    if id.x < 60u { y[id.x] = 1u; }
    if id.x > 8u { y[id.x] = 2u; }
    if id.x <= 50u && id.x >= 3u { y[id.x] += 1u; }
}
"""

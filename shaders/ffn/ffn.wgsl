// The feed-forward layer Y = (silu(X @ GATE) * (X @ UP)) @ DOWN, in three passes and in two, all row-major in f32.
//
//     three   ffn_project with GATE, ffn_project with UP, ffn_down
//     two     ffn_gate_up, which goes over X once for both and writes their products side by side, and ffn_down_split
//
// A is what a pass reads (M x K), B, and of gate and up also C, are its weights (K x N). A workgroup makes 16 x 16 outputs,
// an invocation one (of each product), in steps of 16 along K. Grid: ceil(N / 16), ceil(M / 16), 1.

#include "../shared/silu.wgsl"

const T = 16u;

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, K, N, unused
@group(0) @binding(1) var<storage, read> X: array<f32>;
@group(0) @binding(2) var<storage, read> B: array<f32>;
@group(0) @binding(3) var<storage, read> C: array<f32>;
@group(0) @binding(4) var<storage, read> GATE: array<f32>; // X @ GATE as a pass of its own leaves it
@group(0) @binding(5) var<storage, read> UP: array<f32>;
@group(0) @binding(6) var<storage, read> GATE_UP: array<f32>; // both, M x 2K
@group(0) @binding(7) var<storage, read_write> Y: array<f32>;

var<workgroup> a_tile: array<f32, T * T>; // [row][k]
var<workgroup> b_tile: array<f32, T * T>; // [k][column]
var<workgroup> c_tile: array<f32, T * T>;

// ---- elements, 0 outside of the matrix ---------------------------------------------------------------

fn in_a(row: u32, k: u32) -> bool {
    return row < dims.x && k < dims.y;
}

fn x_at(row: u32, k: u32) -> f32 {
    if !in_a(row, k) { return 0.0; }
    return X[row * dims.y + k];
}

fn hidden_at(row: u32, k: u32) -> f32 {
    if !in_a(row, k) { return 0.0; }
    return silu_of_one(GATE[row * dims.y + k]) * UP[row * dims.y + k];
}

fn hidden_split_at(row: u32, k: u32) -> f32 {
    if !in_a(row, k) { return 0.0; }
    return silu_of_one(GATE_UP[row * 2u * dims.y + k]) * GATE_UP[(row * 2u + 1u) * dims.y + k];
}

fn b_at(k: u32, column: u32) -> f32 {
    if k >= dims.y || column >= dims.z { return 0.0; }
    return B[k * dims.z + column];
}

fn c_at(k: u32, column: u32) -> f32 {
    if k >= dims.y || column >= dims.z { return 0.0; }
    return C[k * dims.z + column];
}

// ---- one step ----------------------------------------------------------------------------------------

// Every invocation brings one element of each tile; all then go over the tiles.
fn step(at: vec2<u32>, a: f32, b: f32, sum: f32) -> f32 {
    var result = sum;
    a_tile[at.y * T + at.x] = a;
    b_tile[at.y * T + at.x] = b;
    workgroupBarrier();
    for (var k = 0u; k < T; k += 1u) {
        result = fma(a_tile[at.y * T + k], b_tile[k * T + at.x], result);
    }
    workgroupBarrier();
    return result;
}

fn step_of_two(at: vec2<u32>, a: f32, b: f32, c: f32, sum: vec2<f32>) -> vec2<f32> {
    var result = sum;
    a_tile[at.y * T + at.x] = a;
    b_tile[at.y * T + at.x] = b;
    c_tile[at.y * T + at.x] = c;
    workgroupBarrier();
    for (var k = 0u; k < T; k += 1u) {
        let both = vec2<f32>(b_tile[k * T + at.x], c_tile[k * T + at.x]);
        result = fma(vec2<f32>(a_tile[at.y * T + k]), both, result);
    }
    workgroupBarrier();
    return result;
}

// ---- the passes --------------------------------------------------------------------------------------

@compute @workgroup_size(16, 16)
fn ffn_project(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < dims.y; k += T) {
        sum = step(local.xy, x_at(id.y, k + local.x), b_at(k + local.y, id.x), sum);
    }
    if id.x < dims.z && id.y < dims.x { Y[id.y * dims.z + id.x] = sum; }
}

@compute @workgroup_size(16, 16)
fn ffn_gate_up(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    var sums = vec2<f32>();
    for (var k = 0u; k < dims.y; k += T) {
        let a = x_at(id.y, k + local.x);
        sums = step_of_two(local.xy, a, b_at(k + local.y, id.x), c_at(k + local.y, id.x), sums);
    }
    if id.x < dims.z && id.y < dims.x {
        Y[id.y * 2u * dims.z + id.x] = sums.x;
        Y[(id.y * 2u + 1u) * dims.z + id.x] = sums.y;
    }
}

@compute @workgroup_size(16, 16)
fn ffn_down(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < dims.y; k += T) {
        sum = step(local.xy, hidden_at(id.y, k + local.x), b_at(k + local.y, id.x), sum);
    }
    if id.x < dims.z && id.y < dims.x { Y[id.y * dims.z + id.x] = sum; }
}

@compute @workgroup_size(16, 16)
fn ffn_down_split(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    var sum = 0.0;
    for (var k = 0u; k < dims.y; k += T) {
        sum = step(local.xy, hidden_split_at(id.y, k + local.x), b_at(k + local.y, id.x), sum);
    }
    if id.x < dims.z && id.y < dims.x { Y[id.y * dims.z + id.x] = sum; }
}

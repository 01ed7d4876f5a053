// Y = X @ transpose(W), an invocation for each element of Y: for many tokens. X is M x K, Y is M x N, row-major in f32;
// W is one of the formats of weights.wgsl. `x` of an invocation is its row of W, `y` its token.

#include "weights.wgsl"

#ifdef SKETCH
alias Quad = vec4<f16>; // of X
#else
alias Quad = vec4<f32>;
#endif

@group(0) @binding(4) var<storage, read> X: array<Quad>;
@group(0) @binding(5) var<storage, read_write> Y: array<f32>;

#if !defined(TILED)

// No workgroup memory: each of eight neighbours reads the same row of W, or of X, again. Grid: ceil(N / 8), ceil(M / 8).
@compute @workgroup_size(8, 8)
fn matmul_mat(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= dims.y || id.y >= dims.x {
        return;
    }
    var sum = vec4<f32>();
    for (var eighth = 0u; eighth < dims.z / 8u; eighth += 1u) {
        let w = weights(id.x, eighth);
        let at = id.y * (dims.z / 4u) + eighth * 2u;
        sum = fma(w[0], X[at], sum);
        sum = fma(w[1], X[at + 1u], sum);
    }
    Y[id.y * dims.y + id.x] = sum.x + sum.y + sum.z + sum.w;
}

#else

// A tile is 16 rows, of W or of X, by TK. A row takes PITCH vectors, one more than are used, so that 16 invocations that
// read below each other find different banks; but in SKETCH, where both tiles are in f16 and TK is 16.
const ROWS = 16u;
#ifdef SKETCH
const TK = 16u;
const PITCH = TK / 4u;
#else
const TK = 64u;
const PITCH = TK / 4u + 1u;
#endif
const TILE = ROWS * PITCH;
const EIGHTHS = TK / 8u;
const COPIES = ROWS * EIGHTHS; // invocations that copy a tile

#ifdef DOUBLE
const SLOTS = 2u;
#else
const SLOTS = 1u;
#endif

var<workgroup> w_tile: array<vec4<f16>, SLOTS * TILE>;
var<workgroup> x_tile: array<Quad, SLOTS * TILE>;

// COPIES invocations copy W, as many others X, eight elements each; zeros where there is nothing to copy.
fn stage(slot: u32, thread: u32, first: vec2<u32>, first_k: u32) {
#ifdef SKETCH
    if thread >= 2u * COPIES {
        return;
    }
#endif
    let place = thread % COPIES;
    let row = place / EIGHTHS;
    let eighth = first_k / 8u + place % EIGHTHS;
    let to = slot * TILE + row * PITCH + place % EIGHTHS * 2u;
    let inside = eighth < dims.z / 8u;
    if thread < COPIES {
        var w: mat2x4<f32>;
        if inside && first.x + row < dims.y {
            w = weights(first.x + row, eighth);
        }
        w_tile[to] = vec4<f16>(w[0]);
        w_tile[to + 1u] = vec4<f16>(w[1]);
    } else {
        var x: array<Quad, 2>;
        if inside && first.y + row < dims.x {
            let at = (first.y + row) * (dims.z / 4u) + eighth * 2u;
            x = array<Quad, 2>(X[at], X[at + 1u]);
        }
        x_tile[to] = x[0];
        x_tile[to + 1u] = x[1];
    }
}

fn multiply(slot: u32, within: vec2<u32>, sum: vec4<f32>) -> vec4<f32> {
    let w_at = slot * TILE + within.x * PITCH;
    let x_at = slot * TILE + within.y * PITCH;
    var result = sum;
    for (var k = 0u; k < TK / 4u; k += 1u) {
        result = fma(vec4<f32>(w_tile[w_at + k]), vec4<f32>(x_tile[x_at + k]), result);
    }
    return result;
}

// Single: stage a step, wait, multiply it, wait. DOUBLE: stage the next step while this one is multiplied, then wait.
// Grid: ceil(N / 16), ceil(M / 16).
@compute @workgroup_size(16, 16)
fn matmul_mat_tiled(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let first = group.xy * ROWS;
    var sum = vec4<f32>();
#ifdef DOUBLE
    stage(0u, thread, first, 0u);
    workgroupBarrier();
    for (var k = 0u; k < dims.z; k += TK) {
        let slot = k / TK % 2u;
        if k + TK < dims.z {
            stage(1u - slot, thread, first, k + TK);
        }
        sum = multiply(slot, local.xy, sum);
        workgroupBarrier();
    }
#else
    for (var k = 0u; k < dims.z; k += TK) {
        stage(0u, thread, first, k);
        workgroupBarrier();
        sum = multiply(0u, local.xy, sum);
        workgroupBarrier();
    }
#endif
    let id = first + local.xy;
    if id.x < dims.y && id.y < dims.x {
        Y[id.y * dims.y + id.x] = sum.x + sum.y + sum.z + sum.w;
    }
}

#endif

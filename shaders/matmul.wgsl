// The forward pass of a linear layer: Y = A @ W, all row-major. A is M x K, W is K x N, Y is M x N.
//
//   A is X, or, where SWIGLU_A is defined, silu(GATE) * UP, mixed as it is staged and never written to memory.
//   Where RESIDUAL is defined, R (M x N) is added at the end.
//   Where W16 is defined, W is stored in f16; sums are f32 all the same.
//
// The host sees to it that K and N are multiples of 4. Grid: ceil(N / 64), ceil(M / 64), 1.

#ifdef W16
enable f16;
#define WEIGHT f16
#else
#define WEIGHT f32
#endif

#include "shared/tiles.wgsl"

#ifdef SWIGLU_A
#include "shared/silu.wgsl"
@group(0) @binding(0) var<storage, read> GATE: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> UP: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> W: array<vec4<WEIGHT>>;
@group(0) @binding(3) var<storage, read> R: array<f32>;
@group(0) @binding(4) var<storage, read_write> Y: array<f32>;
@group(0) @binding(5) var<uniform> dims: vec4<u32>; // M, N, K, unused
#else
@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<WEIGHT>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(4) var<storage, read> R: array<f32>;
#endif

// Four neighbours along K, which are neighbours in a_tile too.
fn stage_a(slot: u32, tid: u32, first_row: u32, first_k: u32) {
    let row = tid * 4u / TK;
    let k = tid * 4u % TK;
    let m = first_row + row;
    let from_k = first_k + k;
    let at = m * (dims.z / 4u) + from_k / 4u;
#ifdef SWIGLU_A
    let v = swiglu(GATE[at], UP[at]);
#else
    let v = X[at];
#endif
    put_a(slot, row, k, 1u, masked(v, m < dims.x, from_k, dims.z));
}

// Four neighbours along N.
fn stage_b(slot: u32, tid: u32, first_k: u32, first_column: u32) {
    let k = tid * 4u / TN;
    let column = tid * 4u % TN;
    let from_k = first_k + k;
    let n = first_column + column;
    let v = vec4<f32>(W[from_k * (dims.y / 4u) + n / 4u]);
    put_b(slot, k, column, 1u, masked(v, from_k < dims.z, n, dims.y));
}

fn finish(at: u32, sum: f32) {
#ifdef RESIDUAL
    Y[at] = sum + R[at];
#else
    Y[at] = sum;
#endif
}

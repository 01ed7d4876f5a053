// The gradient of a linear layer's input: Y = X @ W^T, all row-major. X is M x K, W is N x K, Y is M x N.
// (Of the layer Y' = X' @ W, here X is the gradient of Y', and Y that of X'.)
//
//   Where ACC is defined, the product is added to what Y holds.
//   Where W16 is defined, W is stored in f16; gradients and sums are f32 all the same.
//
// The host sees to it that K is a multiple of 4. Grid: ceil(N / 64), ceil(M / 64), 1.

#ifdef W16
enable f16;
#define WEIGHT f16
#else
#define WEIGHT f32
#endif

#include "shared/tiles.wgsl"

@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> W: array<vec4<WEIGHT>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>; // M, N, K, unused

// Four neighbours along K, which are neighbours in a_tile too.
fn stage_a(slot: u32, tid: u32, first_row: u32, first_k: u32) {
    let row = tid * 4u / TK;
    let k = tid * 4u % TK;
    let m = first_row + row;
    let from_k = first_k + k;
    let v = X[m * (dims.z / 4u) + from_k / 4u];
    put_a(slot, row, k, 1u, masked(v, m < dims.x, from_k, dims.z));
}

// Four neighbours along K as well, for that is how W lies: in b_tile they come to lie below each other.
fn stage_b(slot: u32, tid: u32, first_k: u32, first_column: u32) {
    let column = tid * 4u / TK;
    let k = tid * 4u % TK;
    let n = first_column + column;
    let from_k = first_k + k;
    let v = vec4<f32>(W[n * (dims.z / 4u) + from_k / 4u]);
    put_b(slot, k, column, TN, masked(v, n < dims.y, from_k, dims.z));
}

fn finish(at: u32, sum: f32) {
#ifdef ACC
    Y[at] += sum;
#else
    Y[at] = sum;
#endif
}

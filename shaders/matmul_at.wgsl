// The gradient of a linear layer's weights: Y = A^T @ B, all row-major. A is M x K, B is M x N, Y is K x N.
// (Of the layer Y' = A @ W, here B is the gradient of Y', and Y that of W.) The sums run over M, so this is the depth
// of the tiles, and dims has the order K, N, M.
//
//   A is X, or, where SWIGLU_A is defined, silu(GATE) * UP, mixed as it is staged and never written to memory.
//   Where ACC is defined, the product is added to what Y holds.
//   Where UNSWAPPED is defined, neighbouring invocations load A down a column instead of along a row: the twin that
//   shows what the order of loads is worth.
//
// The host sees to it that K and N are multiples of 4. Grid: ceil(N / 64), ceil(K / 64), 1.

#include "shared/tiles.wgsl"

#ifdef SWIGLU_A
#include "shared/silu.wgsl"
@group(0) @binding(0) var<storage, read> GATE: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> UP: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> B: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;
@group(0) @binding(4) var<uniform> dims: vec4<u32>; // K, N, M, unused
#else
@group(0) @binding(0) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> B: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>; // K, N, M, unused
#endif

// Four neighbours along K, which is the rows of the tile: in a_tile they come to lie below each other.
fn stage_a(slot: u32, tid: u32, first_row: u32, first_m: u32) {
#ifdef UNSWAPPED
    let m = tid % TK;
    let row = tid / TK * 4u;
#else
    let m = tid * 4u / TM;
    let row = tid * 4u % TM;
#endif
    let from_m = first_m + m;
    let k = first_row + row;
    let at = from_m * (dims.x / 4u) + k / 4u;
#ifdef SWIGLU_A
    let v = swiglu(GATE[at], UP[at]);
#else
    let v = X[at];
#endif
    put_a(slot, row, m, TK_PAD, masked(v, from_m < dims.z, k, dims.x));
}

// Four neighbours along N.
fn stage_b(slot: u32, tid: u32, first_m: u32, first_column: u32) {
    let m = tid * 4u / TN;
    let column = tid * 4u % TN;
    let from_m = first_m + m;
    let n = first_column + column;
    let v = B[from_m * (dims.y / 4u) + n / 4u];
    put_b(slot, m, column, 1u, masked(v, from_m < dims.z, n, dims.y));
}

fn finish(at: u32, sum: f32) {
#ifdef ACC
    Y[at] += sum;
#else
    Y[at] = sum;
#endif
}

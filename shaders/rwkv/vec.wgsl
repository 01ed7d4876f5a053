// Y = X @ transpose(W), a workgroup for each element (or each four) of a row of Y: for one token or a few. X is M x K,
// Y is M x N, row-major in f32; W is one of the formats of weights.wgsl.

#ifdef SUBGROUPS
enable subgroups;
#endif
#include "weights.wgsl"

@group(0) @binding(4) var<storage, read> X: array<vec4<f32>>;
#ifdef ATOMIC
@group(0) @binding(5) var<storage, read_write> Y: array<atomic<u32>>; // the bits of floats, zeros at the start
#else
@group(0) @binding(5) var<storage, read_write> Y: array<f32>;
#endif

// What `thread` of `threads` invocations takes of the product of a row of X and a row of W: every so many eighths.
fn dot_part(token: u32, row: u32, thread: u32, threads: u32) -> f32 {
    var sum = vec4<f32>();
    for (var eighth = thread; eighth < dims.z / 8u; eighth += threads) {
        let w = weights(row, eighth);
        let at = token * (dims.z / 4u) + eighth * 2u;
        sum = fma(w[0], X[at], sum);
        sum = fma(w[1], X[at + 1u], sum);
    }
    return sum.x + sum.y + sum.z + sum.w;
}

#if defined(SINGLE)

const ROWS = 4u; // of W, in one workgroup

var<workgroup> partials: array<vec4<f32>, 256>;

// For one token: four rows of W share what is read of X, and 256 invocations their sum. Grid: ceil(N / 4), M.
@compute @workgroup_size(256)
fn matmul_vec_single(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let first = group.x * ROWS;
    var sums: array<vec4<f32>, ROWS>;
    for (var eighth = thread; eighth < dims.z / 8u; eighth += 256u) {
        let at = group.y * (dims.z / 4u) + eighth * 2u;
        let x0 = X[at];
        let x1 = X[at + 1u];
        for (var r = 0u; r < ROWS; r += 1u) {
            let w = weights(min(first + r, dims.y - 1u), eighth);
            sums[r] = fma(w[1], x1, fma(w[0], x0, sums[r]));
        }
    }
    var totals: vec4<f32>;
    for (var r = 0u; r < ROWS; r += 1u) {
        totals[r] = sums[r].x + sums[r].y + sums[r].z + sums[r].w;
    }
    partials[thread] = totals;
    for (var width = 128u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if thread < width {
            partials[thread] += partials[thread + width];
        }
    }
    if thread == 0u {
        for (var r = 0u; r < min(ROWS, dims.y - first); r += 1u) {
            Y[group.y * dims.y + first + r] = partials[0][r];
        }
    }
}

#elif defined(ATOMIC)

// WGSL adds integers atomically, not floats: a compare and exchange until no other subgroup was faster.
fn add(at: u32, term: f32) {
    var old = atomicLoad(&Y[at]);
    loop {
        let tried = atomicCompareExchangeWeak(&Y[at], old, bitcast<u32>(bitcast<f32>(old) + term));
        if tried.exchanged {
            break;
        }
        old = tried.old_value;
    }
}

// Each subgroup adds its sum to the output: no workgroup memory, no barrier. Grid: N, M.
@compute @workgroup_size(128)
fn matmul_vec_atomic(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
) {
    let sum = subgroupAdd(dot_part(group.y, group.x, thread, 128u));
    if lane == 0u {
        add(group.y * dims.y + group.x, sum);
    }
}

#elif defined(SUBGROUPS)

var<workgroup> partials: array<f32, 128>; // one for each subgroup

// The sum within subgroups takes no barrier, the sum of subgroups one. Grid: N, M.
@compute @workgroup_size(128)
fn matmul_vec_subgroup(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let sum = subgroupAdd(dot_part(group.y, group.x, thread, 128u));
    if lane == 0u {
        partials[thread / size] = sum;
    }
    workgroupBarrier();
    if thread == 0u {
        var total = 0.0;
        for (var i = 0u; i < (128u + size - 1u) / size; i += 1u) {
            total += partials[i];
        }
        Y[group.y * dims.y + group.x] = total;
    }
}

#else

var<workgroup> partials: array<f32, 128>;

// The sum goes through workgroup memory, with a barrier for every halving. Grid: N, M.
@compute @workgroup_size(128)
fn matmul_vec(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    partials[thread] = dot_part(group.y, group.x, thread, 128u);
    for (var width = 64u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if thread < width {
            partials[thread] += partials[thread + width];
        }
    }
    if thread == 0u {
        Y[group.y * dims.y + group.x] = partials[0];
    }
}

#endif

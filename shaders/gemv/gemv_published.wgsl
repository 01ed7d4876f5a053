// y = W @ x with W in f16, with the schedules of two published kernels, which the manifest names. They load each element
// by itself. W is N x K, row-major; K is a multiple of 4. What is called a column is an element of y.

enable f16;
enable subgroups;

struct Dims {
    N: u32,
    K: u32,
    groups_x: u32, // workgroups in the first dimension of the grid
    factor: f32, // of y
}

const THREADS = 8u; // of a column, in gemv_multicol
const MOST_SUBGROUPS = 16u; // of a column, in gemv_subgroup

@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> W: array<f16>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

var<workgroup> partials: array<f32, 256>;

// 32 columns a workgroup, eight invocations a column, which add up through workgroup memory. Grid: ceil(N / 32) in x, y.
@compute @workgroup_size(256)
fn gemv_multicol(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = (group.y * dims.groups_x + group.x) * 32u + thread / THREADS;
    let part = thread % THREADS;
    let inside = column < dims.N;
    var sum = 0.0;
    if inside {
        let quads = dims.K / 4u;
        let row = column * dims.K;
        for (var first = 0u; first < quads; first += THREADS) {
            let quad = first + part;
            if quad < quads {
                let k = quad * 4u;
                sum += X[k] * f32(W[row + k]) + X[k + 1u] * f32(W[row + k + 1u])
                    + X[k + 2u] * f32(W[row + k + 2u]) + X[k + 3u] * f32(W[row + k + 3u]);
            }
        }
    }
    partials[thread] = sum;
    workgroupBarrier();
    if part == 0u && inside {
        var total = 0.0;
        for (var i = 0u; i < THREADS; i += 1u) {
            total += partials[thread + i];
        }
        Y[column] = total * dims.factor;
    }
}

var<workgroup> sums: array<f32, 64>; // of subgroups, by column

// Four columns a workgroup, 64 invocations a column, which add up within subgroups of four at least. Grid: ceil(N / 4)
// in x and y.
@compute @workgroup_size(256)
fn gemv_subgroup(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let column = (group.y * dims.groups_x + group.x) * 4u + thread / 64u;
    let part = thread % 64u;
    let inside = column < dims.N;
    var sum = 0.0;
    if inside {
        let row = column * dims.K;
        for (var first = 0u; first < dims.K; first += 64u) {
            let k = first + part;
            if k < dims.K {
                sum += X[k] * f32(W[row + k]);
            }
        }
    }
    let sum_of_subgroup = subgroupAdd(sum);
    if lane == 0u {
        sums[thread / 64u * MOST_SUBGROUPS + part / size] = sum_of_subgroup;
    }
    workgroupBarrier();
    if part == 0u && inside {
        var total = 0.0;
        for (var i = 0u; i < (63u + size) / size; i += 1u) {
            total += sums[thread / 64u * MOST_SUBGROUPS + i];
        }
        Y[column] = total * dims.factor;
    }
}

// y = W @ x with W in f16, with the schedule of a published kernel, which the manifest names. It loads each element by
// itself and adds up through workgroup memory. W is N x K, row-major; K is a multiple of 4.
//
// A workgroup has 32 columns (elements of y), eight invocations a column. Grid: ceil(N / 32) in x and y.

enable f16;

struct Dims {
    N: u32,
    K: u32,
    groups_x: u32, // workgroups in the first dimension of the grid
    factor: f32, // of y
}

const THREADS = 8u; // of a column

@group(0) @binding(0) var<storage, read> X: array<f32>;
@group(0) @binding(1) var<storage, read> W: array<f16>;
@group(0) @binding(2) var<storage, read_write> Y: array<f32>;
@group(0) @binding(3) var<uniform> dims: Dims;

var<workgroup> partials: array<f32, 256>;

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

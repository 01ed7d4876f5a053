// Y = X @ transpose(W) with W in f16, for one token or a few, with the schedule of a published kernel, which the manifest
// names: four rows of W a workgroup share what is read of X, and one tree adds up their sums. X is M x K, W N x K, Y
// M x N, row-major; N and K are multiples of 4. Grid: N / 4, M.

enable f16;

const THREADS = 128u;

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(1) var<storage, read> W: array<vec4<f16>>;
@group(0) @binding(2) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> Y: array<vec4<f32>>;

var<workgroup> partials: array<vec4<f32>, THREADS>;

@compute @workgroup_size(THREADS)
fn matmul_vec(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quads = dims.z / 4u;
    let row = group.x * 4u * quads;
    let token = group.y * quads;
    var sums: vec4<f32>; // of the four rows
    for (var quad = thread; quad < quads; quad += THREADS) {
        let x = X[token + quad];
        var w: mat4x4<f32>;
        for (var r = 0u; r < 4u; r += 1u) {
            w[r] = vec4<f32>(W[row + r * quads + quad]);
        }
        sums += transpose(w) * x;
    }
    partials[thread] = sums;
    workgroupBarrier();
    for (var width = THREADS / 2u; width > 0u; width /= 2u) {
        if thread < width {
            partials[thread] += partials[thread + width];
        }
        workgroupBarrier();
    }
    if thread == 0u {
        Y[group.y * (dims.y / 4u) + group.x] = partials[0];
    }
}

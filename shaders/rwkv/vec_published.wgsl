// Y = X @ transpose(W) for one token or a few, with the schedule of a published kernel, which the manifest names: four
// rows of W a workgroup share what is read of X, and one tree adds up their sums. W is in f16, or where INT8 is defined in
// blocks as in weights.wgsl. X is M x K, W N x K, Y M x N, row-major; N and K are multiples of 4. Grid: N / 4, M.

#ifndef INT8
enable f16;
#endif

const THREADS = 128u;

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(2) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> Y: array<vec4<f32>>;

#ifdef INT8
@group(0) @binding(1) var<storage, read> W: array<u32>;
@group(0) @binding(4) var<storage, read> ranges: array<u32>;

fn quads_of_row() -> u32 {
    return (dims.z + 127u) / 128u * 32u;
}

fn four_weights(at: u32) -> vec4<f32> {
    let range = unpack2x16float(ranges[at / 32u]);
    return fma(vec4<f32>(unpack4xU8(W[at])), range.yyyy, range.xxxx);
}
#else
@group(0) @binding(1) var<storage, read> W: array<vec4<f16>>;

fn quads_of_row() -> u32 {
    return dims.z / 4u;
}

fn four_weights(at: u32) -> vec4<f32> {
    return vec4<f32>(W[at]);
}
#endif

var<workgroup> partials: array<vec4<f32>, THREADS>;

@compute @workgroup_size(THREADS)
fn matmul_vec(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quads = dims.z / 4u;
    let next = quads_of_row();
    let row = group.x * 4u * next;
    let token = group.y * quads;
    var sums: vec4<f32>; // of the four rows
    for (var quad = thread; quad < quads; quad += THREADS) {
        let x = X[token + quad];
        var w: mat4x4<f32>;
        for (var r = 0u; r < 4u; r += 1u) {
            w[r] = four_weights(row + r * next + quad);
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

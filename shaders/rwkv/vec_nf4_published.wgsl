// Y = X @ transpose(W) with W in NF4 (see weights.wgsl), for one token or a few, with the schedule of a published kernel,
// which the manifest names: four rows of W a workgroup share what is read of X, the levels are in workgroup memory, and
// one tree adds up the sums. X is M x K, W N x K, Y M x N, row-major; N is a multiple of 4, K of 64. Grid: N / 4, M.

const THREADS = 128u;

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused
@group(0) @binding(1) var<storage, read> W: array<u32>;
@group(0) @binding(2) var<storage, read> absmax: array<u32>; // an f16 of each block, two to a word
@group(0) @binding(3) var<uniform> table: array<vec4<f32>, 4>;
@group(0) @binding(4) var<storage, read> X: array<mat2x4<f32>>;
@group(0) @binding(5) var<storage, read_write> Y: array<vec4<f32>>;

var<workgroup> levels: array<vec4<f32>, 4>;
var<workgroup> partials: array<vec4<f32>, THREADS>;

fn absmax_of(word: u32) -> f32 {
    let block = word / 8u;
    return unpack2x16float(absmax[block / 2u])[block % 2u];
}

fn level(q: u32) -> f32 {
    return levels[q / 4u][q % 4u];
}

// The levels of four nibbles, the lowest first.
fn four_levels(nibbles: u32) -> vec4<f32> {
    let q = (vec4<u32>(nibbles) >> vec4<u32>(0u, 4u, 8u, 12u)) & vec4<u32>(15u);
    return vec4<f32>(level(q.x), level(q.y), level(q.z), level(q.w));
}

@compute @workgroup_size(THREADS)
fn matmul_vec(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let words = dims.z / 8u; // of a row
    let row = group.x * 4u * words;
    let token = group.y * words;
    if thread == 0u {
        levels = table;
    }
    workgroupBarrier();
    var sums: vec4<f32>; // of the four rows
    for (var at = thread; at < words; at += THREADS) {
        let x = X[token + at];
        var four: vec4<u32>;
        var scales: vec4<f32>;
        for (var r = 0u; r < 4u; r += 1u) {
            four[r] = W[row + r * words + at];
            scales[r] = absmax_of(row + r * words + at);
        }
        for (var half = 0u; half < 2u; half += 1u) {
            var w: mat4x4<f32>;
            for (var r = 0u; r < 4u; r += 1u) {
                w[r] = four_levels(four[r] >> (half * 16u));
            }
            sums = fma(transpose(w) * x[half], scales, sums);
        }
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

// y = W @ x with W in Q4_K blocks (block.wgsl describes them), for one row of x, with the schedules of two published
// kernels, which the manifest names: blocks are dealt whole, and a block that K does not fill has a loop of its own.
// What is called a column is an element of y. K is a multiple of 4.

enable subgroups;

struct Dims {
    M: u32, // 1
    N: u32,
    K: u32,
    factor: f32, // of y
    blocks: u32, // of a row of W: ceil(K / 256)
}

const BLOCK = 256u; // weights
const THREADS = 8u; // of a column

struct Block {
    steps: u32,
    scales: array<u32, 3>,
    nibbles: array<u32, 32>,
}

@group(0) @binding(0) var<storage, read> W: array<Block>;
@group(0) @binding(1) var<uniform> dims: Dims;
@group(0) @binding(2) var<storage, read> X: array<f32>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;

var<workgroup> partials: array<f32, 256>;

// d * scale and dmin * min of a sub-block.
fn step_and_low(block: ptr<function, Block>, sub: u32) -> vec2<f32> {
    let shift = sub % 4u * 8u;
    var both = vec2<u32>((*block).scales[0], (*block).scales[1]) >> vec2<u32>(shift);
    if sub < 4u {
        both &= vec2<u32>(63u);
    } else {
        let rest = (*block).scales[2] >> shift;
        both = (vec2<u32>(rest, rest >> 4u) & vec2<u32>(15u)) | ((both >> vec2<u32>(2u)) & vec2<u32>(48u));
    }
    return unpack2x16float((*block).steps) * vec2<f32>(both);
}

fn weights_of_quad(block: ptr<function, Block>, sub: u32, quad: u32, scale: vec2<f32>) -> vec4<f32> {
    let word = (*block).nibbles[sub / 2u * 8u + quad] >> (sub % 2u * 4u);
    return scale.x * vec4<f32>(unpack4xU8(word & 0x0f0f0f0fu)) - scale.y;
}

// Add the product of a whole block with its part of x.
fn add_block(sum: ptr<function, f32>, column: u32, b: u32) {
    var block = W[column * dims.blocks + b];
    for (var sub = 0u; sub < 8u; sub += 1u) {
        let scale = step_and_low(&block, sub);
        for (var quad = 0u; quad < 8u; quad += 1u) {
            let w = weights_of_quad(&block, sub, quad, scale);
            let k = b * BLOCK + sub * 32u + quad * 4u;
            *sum += X[k] * w.x + X[k + 1u] * w.y + X[k + 2u] * w.z + X[k + 3u] * w.w;
        }
    }
}

// Add that of the last block, of which K fills `rest` weights.
fn add_rest(sum: ptr<function, f32>, column: u32, b: u32, rest: u32) {
    var block = W[column * dims.blocks + b];
    for (var sub = 0u; sub * 32u < rest; sub += 1u) {
        let scale = step_and_low(&block, sub);
        for (var quad = 0u; quad < 8u; quad += 1u) {
            let w = weights_of_quad(&block, sub, quad, scale);
            let k = b * BLOCK + sub * 32u + quad * 4u;
            var x = vec4<f32>();
            for (var i = 0u; i < 4u; i += 1u) {
                if k + i < dims.K {
                    x[i] = X[k + i];
                }
            }
            *sum += x.x * w.x + x.y * w.y + x.z * w.z + x.w * w.w;
        }
    }
}

// 32 columns a workgroup, eight invocations a column: at K = 1152 five of eight have a block. Grid: ceil(N / 32).
@compute @workgroup_size(256)
fn q4_fused_multicol(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = group.x * 32u + thread / THREADS;
    let part = thread % THREADS;
    let whole = dims.K / BLOCK;
    let rest = dims.K % BLOCK;
    var sum = 0.0;
    if column < dims.N {
        for (var b = part; b < whole; b += THREADS) {
            add_block(&sum, column, b);
        }
        if rest > 0u && whole % THREADS == part {
            add_rest(&sum, column, whole, rest);
        }
    }
    partials[thread] = sum;
    workgroupBarrier();
    if part == 0u && column < dims.N {
        var total = 0.0;
        for (var i = 0u; i < THREADS; i += 1u) {
            total += partials[thread + i];
        }
        Y[column] = total * dims.factor;
    }
}

// A column a workgroup: at K = 1152 five of 256 invocations have a block. The others cannot leave, as all take part in
// subgroupAdd and the barrier. Grid: N.
@compute @workgroup_size(256)
fn q4_fused(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) lane: u32,
    @builtin(subgroup_size) size: u32,
) {
    let column = group.x;
    let whole = dims.K / BLOCK;
    let rest = dims.K % BLOCK;
    let each = (dims.blocks + 255u) / 256u;
    let first = thread * each;
    let end = min(first + each, dims.blocks);
    var sum = 0.0;
    if column < dims.N {
        for (var b = first; b < min(end, whole); b += 1u) {
            add_block(&sum, column, b);
        }
        if rest > 0u && first <= whole && whole < end {
            add_rest(&sum, column, whole, rest);
        }
    }
    let sum_of_subgroup = subgroupAdd(sum);
    if lane == 0u {
        partials[thread / size] = sum_of_subgroup;
    }
    workgroupBarrier();
    if thread == 0u && column < dims.N {
        var total = 0.0;
        for (var i = 0u; i < (255u + size) / size; i += 1u) {
            total += partials[i];
        }
        Y[column] = total * dims.factor;
    }
}

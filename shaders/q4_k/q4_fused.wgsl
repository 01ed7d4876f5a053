// Y = X @ transpose(W) with W in Q4_K blocks, which are unpacked on the way: seven ways to share out a row's blocks.
// X is M x K, Y is M x N, both row-major in f32.

#include "block.wgsl"

@group(0) @binding(2) var<storage, read> X: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> Y: array<f32>;

var<workgroup> partials: array<f32, 256>;

// The product of quads `first` to `last` of one block, within one sub-block, with their part of a row of X.
fn dot_quads(row: u32, column: u32, block: u32, first: u32, last: u32) -> f32 {
    let at = block_at(column, block);
    let scale = step_and_low(at, first / SUB_QUADS);
    let end = min(last, (dims.z - block * BLOCK) / 4u);
    var sum = vec4<f32>();
    for (var quad = first; quad < end; quad += 1u) {
        sum = fma(weights_of_quad(at, quad, scale), X[row * dims.z / 4u + block * QUADS + quad], sum);
    }
    return sum.x + sum.y + sum.z + sum.w;
}

fn dot_sub_block(row: u32, column: u32, block: u32, sub: u32) -> f32 {
    return dot_quads(row, column, block, sub * SUB_QUADS, (sub + 1u) * SUB_QUADS);
}

fn dot_block(row: u32, column: u32, block: u32) -> f32 {
    var sum = 0.0;
    for (var sub = 0u; sub < BLOCK / 32u; sub += 1u) {
        sum += dot_sub_block(row, column, block, sub);
    }
    return sum;
}

// All quads of a row, dealt out to `threads` in turn.
fn dot_every(row: u32, column: u32, thread: u32, threads: u32) -> f32 {
    var sum = 0.0;
    for (var quad = thread; quad < dims.z / 4u; quad += threads) {
        let within = quad % QUADS;
        sum += dot_quads(row, column, quad / QUADS, within, within + 1u);
    }
    return sum;
}

fn sum_of_partials(first: u32, count: u32) -> f32 {
    var sum = 0.0;
    for (var i = first; i < first + count; i += 1u) {
        sum += partials[i];
    }
    return sum;
}

// ---- a block for each invocation ----

// One workgroup a column, one block an invocation: at K = 1152 there are five blocks, and 251 invocations have nothing
// to do but wait at the barrier. K is at most 65536. Grid: N, M.
@compute @workgroup_size(256)
fn q4_fused(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let blocks = blocks_of_row();
    if thread < blocks {
        partials[thread] = dot_block(group.y, group.x, thread);
    }
    workgroupBarrier();
    if thread == 0u {
        Y[group.y * dims.y + group.x] = sum_of_partials(0u, blocks);
    }
}

// First remedy, taken literally: an invocation loops over blocks. It lifts the limit on K; where a row has fewer blocks
// than the workgroup has invocations, as many stay idle as before. Grid: N, M.
@compute @workgroup_size(256)
fn q4_fused_loop(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let blocks = blocks_of_row();
    if thread < blocks {
        var sum = 0.0;
        for (var block = thread; block < blocks; block += 256u) {
            sum += dot_block(group.y, group.x, block);
        }
        partials[thread] = sum;
    }
    workgroupBarrier();
    if thread == 0u {
        Y[group.y * dims.y + group.x] = sum_of_partials(0u, min(blocks, 256u));
    }
}

// ---- a part of every block for each invocation ----

// First remedy, as it helps: the loop goes over all quads of the row, four blocks at a time. Grid: N, M.
@compute @workgroup_size(256)
fn q4_fused_split(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    partials[thread] = dot_every(group.y, group.x, thread, 256u);
    for (var width = 128u; width > 0u; width /= 2u) {
        workgroupBarrier();
        if thread < width {
            partials[thread] += partials[thread + width];
        }
    }
    if thread == 0u {
        Y[group.y * dims.y + group.x] = partials[0];
    }
}

// Second remedy: eight columns a workgroup, 32 invocations a column. Grid: ceil(N / 8), M.
@compute @workgroup_size(32, 8)
fn q4_fused_2d(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let column = group.x * 8u + local.y;
    if column < dims.y {
        partials[thread] = dot_every(group.y, column, local.x, 32u);
    }
    workgroupBarrier();
    if local.x == 0u && column < dims.y {
        Y[group.y * dims.y + column] = sum_of_partials(thread, 32u);
    }
}

// 32 columns a workgroup, eight invocations a column: one for each sub-block of a block. Grid: ceil(N / 32), M.
@compute @workgroup_size(256)
fn q4_fused_multicol(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let column = group.x * 32u + thread / 8u;
    if column < dims.y {
        var sum = 0.0;
        for (var block = 0u; block < blocks_of_row(); block += 1u) {
            sum += dot_sub_block(group.y, column, block, thread % 8u);
        }
        partials[thread] = sum;
    }
    workgroupBarrier();
    if thread % 8u == 0u && column < dims.y {
        Y[group.y * dims.y + column] = sum_of_partials(thread, 8u);
    }
}

// ---- a row for each invocation ----

// Third remedy, for a K of few blocks: an invocation a column, and no sum across invocations. Grid: ceil(N / 256), M.
@compute @workgroup_size(256)
fn q4_fused_small_k(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= dims.y {
        return;
    }
    var sum = 0.0;
    for (var block = 0u; block < blocks_of_row(); block += 1u) {
        sum += dot_block(id.y, id.x, block);
    }
    Y[id.y * dims.y + id.x] = sum;
}

// Several rows of X: 64 columns and four rows a workgroup. Grid: ceil(N / 64), ceil(M / 4).
@compute @workgroup_size(64, 4)
fn q4_fused_batched(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= dims.y || id.y >= dims.x {
        return;
    }
    var sum = 0.0;
    for (var block = 0u; block < blocks_of_row(); block += 1u) {
        sum += dot_block(id.y, id.x, block);
    }
    Y[id.y * dims.y + id.x] = sum;
}

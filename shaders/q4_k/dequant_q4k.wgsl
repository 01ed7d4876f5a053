// Y = W in f16: unpacks a matrix of Q4_K blocks once, for a product that knows nothing of them. An invocation a block.
// Y is N x K, row-major. Grid: ceil(N * ceil(K / 256) / 64), 1, 1.

enable f16;

#include "block.wgsl"

@group(0) @binding(2) var<storage, read_write> Y: array<vec4<f16>>;

@compute @workgroup_size(64)
fn dequant_q4k(@builtin(global_invocation_id) id: vec3<u32>) {
    let blocks = blocks_of_row();
    if id.x >= dims.y * blocks {
        return;
    }
    let row = id.x / blocks;
    let block = id.x % blocks;
    let at = block_at(row, block);
    let to = (row * dims.z + block * BLOCK) / 4u;
    let quads = min(QUADS, (dims.z - block * BLOCK) / 4u);
    for (var first = 0u; first < quads; first += SUB_QUADS) {
        let scale = step_and_low(at, first / SUB_QUADS);
        for (var quad = first; quad < min(first + SUB_QUADS, quads); quad += 1u) {
            Y[to + quad] = vec4<f16>(weights_of_quad(at, quad, scale));
        }
    }
}

// A matrix of N rows of ceil(K / 256) Q4_K blocks. A block holds 256 weights in 36 words:
//
//     word 0      d and dmin, two f16
//     words 1-3   a 6-bit scale and a 6-bit min for each of its eight sub-blocks of 32 weights
//     words 4-35  a nibble q a weight; weight = d * scale * q - dmin * min
//
// Four weights that lie in a row make a quad: their nibbles are those of one word. The host sees to it that K is a
// multiple of 4, so that a quad is wholly within the matrix, or wholly in what fills up the last block of a row.

const BLOCK = 256u; // weights
const BLOCK_WORDS = 36u;
const QUADS = BLOCK / 4u; // of a block
const SUB_QUADS = 8u; // of a sub-block

@group(0) @binding(0) var<storage, read> W: array<u32>;
@group(0) @binding(1) var<uniform> dims: vec4<u32>; // M, N, K, unused

fn blocks_of_row() -> u32 {
    return (dims.z + BLOCK - 1u) / BLOCK;
}

// The word at which block `block` of row `row` begins.
fn block_at(row: u32, block: u32) -> u32 {
    return (row * blocks_of_row() + block) * BLOCK_WORDS;
}

// d * scale and dmin * min of sub-block `sub`. Byte sub % 4 of the three words has what belongs to it: those of
// sub-blocks 0 to 3 whole in words 1 and 2, those of 4 to 7 with four bits in word 3 and the upper two above the former.
fn step_and_low(at: u32, sub: u32) -> vec2<f32> {
    let scales = extractBits(W[at + 1u], sub % 4u * 8u, 8u);
    let mins = extractBits(W[at + 2u], sub % 4u * 8u, 8u);
    var both = vec2<u32>(scales, mins) & vec2<u32>(63u);
    if sub >= 4u {
        let rest = extractBits(W[at + 3u], sub % 4u * 8u, 8u);
        both = vec2<u32>(rest & 15u, rest >> 4u) | ((vec2<u32>(scales, mins) >> vec2<u32>(6u)) << vec2<u32>(4u));
    }
    return unpack2x16float(W[at]) * vec2<f32>(both);
}

// The four weights of quad `quad` of the block, given what `step_and_low` says of its sub-block. Of two neighbouring
// sub-blocks, which share their bytes, the first has the low nibbles.
fn weights_of_quad(at: u32, quad: u32, scale: vec2<f32>) -> vec4<f32> {
    let sub = quad / SUB_QUADS;
    let word = W[at + 4u + sub / 2u * SUB_QUADS + quad % SUB_QUADS];
    let q = unpack4xU8((word >> (sub % 2u * 4u)) & 0x0f0f0f0fu);
    return scale.x * vec4<f32>(q) - scale.y;
}

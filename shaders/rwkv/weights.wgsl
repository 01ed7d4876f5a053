// Weights of an N x K matrix in four formats, eight at a time, as f32. Which one: FP16, INT8, NF4 or Q8_0 is defined.
// INT8 and NF4 are unpacked one weight at a time, or with VECTOR four or eight at a time, and with TEXTURE come out of a
// texture. The host sees to it that K is a multiple of 8; a row is filled up to whole blocks of its format.
//
// Eight weights come as a mat2x4: its columns are the first and the last four.

#ifdef FP16
enable f16;
#endif

@group(0) @binding(0) var<uniform> dims: vec4<u32>; // M, N, K, unused

fn blocks_of_row(block: u32) -> u32 {
    return (dims.z + block - 1u) / block;
}

#if defined(FP16)

@group(0) @binding(1) var<storage, read> W: array<vec4<f16>>;

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let at = row * (dims.z / 4u) + eighth * 2u;
    return mat2x4<f32>(vec4<f32>(W[at]), vec4<f32>(W[at + 1u]));
}

#elif defined(INT8)

// 128 weights share a step and what it starts from: weight = low + step * q. Four q to a word.
const PER_WORD = 4u;
const BLOCK = 128u;
@group(0) @binding(2) var<storage, read> ranges: array<u32>; // low and step, two f16, of each block

fn range_of(row: u32, k: u32) -> vec2<f32> {
    return unpack2x16float(ranges[row * blocks_of_row(BLOCK) + k / BLOCK]);
}

#elif defined(NF4)

// 64 weights share a scale: weight = absmax * table[q]. Eight q to a word.
const PER_WORD = 8u;
const BLOCK = 64u;
@group(0) @binding(2) var<storage, read> absmax: array<u32>; // an f16 of each block, two to a word
@group(0) @binding(3) var<uniform> table: array<vec4<f32>, 4>;

fn absmax_of(row: u32, k: u32) -> f32 {
    let block = row * blocks_of_row(BLOCK) + k / BLOCK;
    return unpack2x16float(absmax[block / 2u])[block % 2u];
}

fn level(q: u32) -> f32 {
    return table[q / 4u][q % 4u];
}

fn levels(q: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(level(q.x), level(q.y), level(q.z), level(q.w));
}

#elif defined(Q8_0)

// 32 weights in 34 bytes, an f16 scale and then signed bytes: every other block begins in the middle of a word.
@group(0) @binding(1) var<storage, read> W: array<u32>;

fn halfword(at: u32) -> u32 {
    return extractBits(W[at / 2u], at % 2u * 16u, 16u);
}

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let at = (row * blocks_of_row(32u) + eighth / 4u) * 17u; // in halfwords
    let scale = unpack2x16float(halfword(at)).x;
    let begin = at + 1u + eighth % 4u * 4u;
    let first = halfword(begin) | (halfword(begin + 1u) << 16u);
    let last = halfword(begin + 2u) | (halfword(begin + 3u) << 16u);
    return scale * mat2x4<f32>(vec4<f32>(unpack4xI8(first)), vec4<f32>(unpack4xI8(last)));
}

#else
#error define one of FP16, INT8, NF4 and Q8_0
#endif

#if defined(INT8) || defined(NF4)

// The word that holds weight `k` of a row, from a buffer or from a texture with a row of texels for each row of words.
#ifdef TEXTURE
@group(0) @binding(1) var W: texture_2d<u32>;

fn word_of(row: u32, k: u32) -> u32 {
    return textureLoad(W, vec2<u32>(k / PER_WORD, row), 0).x;
}
#else
@group(0) @binding(1) var<storage, read> W: array<u32>;

fn word_of(row: u32, k: u32) -> u32 {
    return W[(row * blocks_of_row(BLOCK) * BLOCK + k) / PER_WORD];
}
#endif

#if defined(INT8) && defined(VECTOR)

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let k = eighth * 8u;
    let range = range_of(row, k);
    let first = vec4<f32>(unpack4xU8(word_of(row, k)));
    let last = vec4<f32>(unpack4xU8(word_of(row, k + 4u)));
    return mat2x4<f32>(fma(first, range.yyyy, range.xxxx), fma(last, range.yyyy, range.xxxx));
}

#elif defined(VECTOR)

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let word = word_of(row, eighth * 8u);
    let scale = absmax_of(row, eighth * 8u);
    let even = scale * levels(unpack4xU8(word & 0x0f0f0f0fu));
    let odd = scale * levels(unpack4xU8((word >> 4u) & 0x0f0f0f0fu));
    return mat2x4<f32>(even.x, odd.x, even.y, odd.y, even.z, odd.z, even.w, odd.w);
}

#else

fn weight(row: u32, k: u32) -> f32 {
#ifdef INT8
    let range = range_of(row, k);
    return fma(f32(extractBits(word_of(row, k), k % 4u * 8u, 8u)), range.y, range.x);
#else
    return absmax_of(row, k) * level(extractBits(word_of(row, k), k % 8u * 4u, 4u));
#endif
}

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    var result: mat2x4<f32>;
    for (var i = 0u; i < 8u; i += 1u) {
        result[i / 4u][i % 4u] = weight(row, eighth * 8u + i);
    }
    return result;
}

#endif
#endif

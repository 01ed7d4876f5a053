// Weights of an N x K matrix in four formats, eight at a time, as f32. Which one: FP16, INT8, NF4 or Q8_0 is defined.
// INT8 and NF4 are unpacked one weight at a time, or with VECTOR four or eight at a time. The host sees to it that K is a
// multiple of 8; a row is filled up to whole blocks of its format.
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

// 128 weights share a step and what it starts from: weight = low + step * q.
@group(0) @binding(1) var<storage, read> W: array<u32>; // q, four to a word
@group(0) @binding(2) var<storage, read> ranges: array<u32>; // low and step, two f16, of each block

#ifdef VECTOR

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let block = row * blocks_of_row(128u) + eighth / 16u;
    let range = unpack2x16float(ranges[block]);
    let at = block * 32u + eighth % 16u * 2u;
    let first = vec4<f32>(unpack4xU8(W[at]));
    let last = vec4<f32>(unpack4xU8(W[at + 1u]));
    return mat2x4<f32>(fma(first, range.yyyy, range.xxxx), fma(last, range.yyyy, range.xxxx));
}

#else

fn weight(row: u32, k: u32) -> f32 {
    let block = row * blocks_of_row(128u) + k / 128u;
    let range = unpack2x16float(ranges[block]);
    let q = extractBits(W[block * 32u + k % 128u / 4u], k % 4u * 8u, 8u);
    return fma(f32(q), range.y, range.x);
}

#endif

#elif defined(NF4)

// 64 weights share a scale: weight = absmax * table[q].
@group(0) @binding(1) var<storage, read> W: array<u32>; // q, eight to a word
@group(0) @binding(2) var<storage, read> absmax: array<u32>; // an f16 of each block, two to a word
@group(0) @binding(3) var<uniform> table: array<vec4<f32>, 4>;

fn absmax_of(block: u32) -> f32 {
    return unpack2x16float(absmax[block / 2u])[block % 2u];
}

fn level(q: u32) -> f32 {
    return table[q / 4u][q % 4u];
}

#ifdef VECTOR

fn levels(q: vec4<u32>) -> vec4<f32> {
    return vec4<f32>(level(q.x), level(q.y), level(q.z), level(q.w));
}

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    let block = row * blocks_of_row(64u) + eighth / 8u;
    let word = W[block * 8u + eighth % 8u];
    let scale = absmax_of(block);
    let even = scale * levels(unpack4xU8(word & 0x0f0f0f0fu));
    let odd = scale * levels(unpack4xU8((word >> 4u) & 0x0f0f0f0fu));
    return mat2x4<f32>(even.x, odd.x, even.y, odd.y, even.z, odd.z, even.w, odd.w);
}

#else

fn weight(row: u32, k: u32) -> f32 {
    let block = row * blocks_of_row(64u) + k / 64u;
    let q = extractBits(W[block * 8u + k % 64u / 8u], k % 8u * 4u, 4u);
    return absmax_of(block) * level(q);
}

#endif

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

#endif

#if (defined(INT8) || defined(NF4)) && !defined(VECTOR)

fn weights(row: u32, eighth: u32) -> mat2x4<f32> {
    var result: mat2x4<f32>;
    for (var i = 0u; i < 8u; i += 1u) {
        result[i / 4u][i % 4u] = weight(row, eighth * 8u + i);
    }
    return result;
}

#endif

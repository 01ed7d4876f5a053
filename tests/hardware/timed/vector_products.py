"""Products of a matrix and a vector, in f32 and from packed integers of 4 and 8 bits with a scale for each block."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hardware.timed.dispatch import Timed, buffers, constants, counts, eighths, seeded, shrink, words, zeros

SIZES = ((1024, 4096), (4096, 1024), (4096, 4096))
PACKED_SIZES = ((2048, 4096), (4096, 4096), (8192, 4096))
SCALARS = buffers({"a": "f32", "x": "f32"}, {"y": "f32"})
VECTORS = buffers({"a": "vec4f", "x": "vec4f"}, {"y": "f32"})
ATOMIC = buffers({"a": "f32", "x": "f32"}, {"y": "atomic<u32>"})
SCALE_BLOCK = 32

ROW_PER_THREAD = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < K; k += 1u) {
        sum += a[id.x * K + k] * x[k];
    }
    y[id.x] = sum;
}
"""
ROW_PER_THREAD_VEC4 = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var k = 0u; k < K / 4u; k += 1u) {
        sum += dot(a[id.x * (K / 4u) + k], x[k]);
    }
    y[id.x] = sum;
}
"""
TREE = """\
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = T / 2u; half > 0u; half /= 2u) {
        if lane < half {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    if lane == 0u {
        y[group.x] = sums[0];
    }
}
"""
ROW_PER_WORKGROUP = (
    """\
var<workgroup> sums: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var k = lane; k < K; k += T) {
        sum += a[group.x * K + k] * x[k];
    }
"""
    + TREE
)
ROW_PER_WORKGROUP_VEC4 = (
    """\
var<workgroup> sums: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var k = lane; k < K / 4u; k += T) {
        sum += dot(a[group.x * (K / 4u) + k], x[k]);
    }
"""
    + TREE
)
SUBGROUPS = """\
var<workgroup> sums: array<f32, T>;

@compute @workgroup_size(T)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
    @builtin(subgroup_size) size: u32,
    @builtin(subgroup_invocation_id) member: u32,
) {
    var sum = 0.0;
    for (var k = lane; k < K / 4u; k += T) {
        sum += dot(a[group.x * (K / 4u) + k], x[k]);
    }
    let total = subgroupAdd(sum);
    if member == 0u {
        sums[lane / size] = total;
    }
    workgroupBarrier();
    if lane == 0u {
        var row = 0.0;
        for (var i = 0u; i < T / size; i += 1u) {
            row += sums[i];
        }
        y[group.x] = row;
    }
}
"""
SPLIT = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var k = id.y * (K / SPLITS); k < (id.y + 1u) * (K / SPLITS); k += 1u) {
        sum += a[id.x * K + k] * x[k];
    }
    var old = atomicLoad(&y[id.x]);
    loop {
        let tried = atomicCompareExchangeWeak(&y[id.x], old, bitcast<u32>(bitcast<f32>(old) + sum));
        if tried.exchanged {
            break;
        }
        old = tried.old_value;
    }
}
"""
SHARED_VECTOR = """\
var<workgroup> part: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var first = 0u; first < K; first += T) {
        part[lane] = x[first + lane];
        workgroupBarrier();
        for (var k = 0u; k < T; k += 1u) {
            sum += a[id.x * K + first + k] * part[k];
        }
        workgroupBarrier();
    }
    y[id.x] = sum;
}
"""


def vector_products(scale: int) -> Iterator[Timed]:
    for size in SIZES:
        m, k = (shrink(side, scale, 256) for side in size)
        shape = f"{m}x{k}"
        variants = {}
        for threads in (64, 256):
            text = constants(T=threads)
            variants[f"row per thread of {threads}"] = text + SCALARS + ROW_PER_THREAD, (m // threads, 1, 1)
            variants[f"row per workgroup of {threads}"] = text + SCALARS + ROW_PER_WORKGROUP, (m, 1, 1)
        text = constants(T=64)
        variants["row per thread vec4"] = text + VECTORS + ROW_PER_THREAD_VEC4, (m // 64, 1, 1)
        variants["row per thread, x in workgroup memory"] = text + SCALARS + SHARED_VECTOR, (m // 64, 1, 1)
        variants["row per workgroup vec4"] = text + VECTORS + ROW_PER_WORKGROUP_VEC4, (m, 1, 1)
        variants["row per workgroup subgroupAdd"] = "enable subgroups;\n" + text + VECTORS + SUBGROUPS, (m, 1, 1)
        for splits in (4, 16):
            text = constants(T=64, SPLITS=splits) + ATOMIC + SPLIT
            variants[f"split in {splits}, compare-exchange"] = text, (m // 64, splits, 1)
        for kernel, (text, grid) in variants.items():
            rng = seeded("gemv", shape)
            y = counts(m) if "compare" in kernel else zeros(m)  # the bits of 0.0
            bindings = {"a": eighths(rng, m, k), "x": eighths(rng, k), "y": y}
            yield Timed("gemv", kernel, shape, text + constants(K=k), grid, bindings)


UNPACK = """\
fn weight(word: u32, i: u32) -> f32 {
    return f32(i32(word << (32u - BITS * (i + 1u))) >> (32u - BITS));
}

fn word_times_x(row: u32, word: u32) -> f32 {
    let packed = w[row * WORDS + word];
    var sum = 0.0;
    for (var i = 0u; i < PER_WORD; i += 1u) {
        sum += weight(packed, i) * X[word * PER_WORD + i];
    }
    return sum * scales[(row * WORDS + word) / SCALE_WORDS];
}

"""
PACKED_BUFFERS = buffers({"w": "u32", "scales": "f32", "x": "f32"}, {"y": "f32"})
PACKED_ROW_PER_THREAD = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var word = 0u; word < WORDS; word += 1u) {
        sum += word_times_x(id.x, word);
    }
    y[id.x] = sum;
}
"""
PACKED_ROW_PER_WORKGROUP = (
    """\
var<workgroup> sums: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0.0;
    for (var word = lane; word < WORDS; word += T) {
        sum += word_times_x(group.x, word);
    }
"""
    + TREE
)
SHARED_X = """\
var<workgroup> kept: array<f32, WORDS * PER_WORD>;

"""
PACKED_EIGHT_ROWS = """\
var<workgroup> sums: array<f32, 8 * 32>;

@compute @workgroup_size(32, 8)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
LOAD
    let row = group.x * 8u + local.y;
    var sum = 0.0;
    for (var word = local.x; word < WORDS; word += 32u) {
        sum += word_times_x(row, word);
    }
    sums[lane] = sum;
    workgroupBarrier();
    if local.x == 0u {
        var total = 0.0;
        for (var i = 0u; i < 32u; i += 1u) {
            total += sums[lane + i];
        }
        y[row] = total;
    }
}
"""
LOAD_X = """\
    for (var k = lane; k < WORDS * PER_WORD; k += 256u) {
        kept[k] = x[k];
    }
    workgroupBarrier();"""


def packed_products(scale: int) -> Iterator[Timed]:
    for bits in (4, 8):
        for size in PACKED_SIZES:
            m, k = (shrink(side, scale, 512) for side in size)
            shape, per_word = f"{m}x{k}", 32 // bits
            sizes = constants(BITS=bits, PER_WORD=per_word, WORDS=k // per_word, SCALE_WORDS=SCALE_BLOCK // per_word)
            head = sizes + PACKED_BUFFERS
            direct, kept = head + UNPACK.replace("X[", "x["), head + SHARED_X + UNPACK.replace("X[", "kept[")
            variants = {
                "8 rows per workgroup": (direct + PACKED_EIGHT_ROWS.replace("LOAD\n", ""), (m // 8, 1, 1)),
                "8 rows per workgroup, x in workgroup memory": (
                    kept + PACKED_EIGHT_ROWS.replace("LOAD", LOAD_X),
                    (m // 8, 1, 1),
                ),
            }
            for threads in (64, 256):
                text = constants(T=threads) + direct
                variants[f"row per thread of {threads}"] = text + PACKED_ROW_PER_THREAD, (m // threads, 1, 1)
                variants[f"row per workgroup of {threads}"] = text + PACKED_ROW_PER_WORKGROUP, (m, 1, 1)
            for kernel, (text, grid) in variants.items():
                rng = seeded("packed", bits, shape)
                scales = np.exp2(rng.integers(-3, 3, (m, k // SCALE_BLOCK))).astype(np.float32)
                bindings = {"w": words(rng, m, k // per_word), "scales": scales, "x": eighths(rng, k), "y": zeros(m)}
                yield Timed(f"gemv of {bits}-bit weights", kernel, shape, text, grid, bindings)

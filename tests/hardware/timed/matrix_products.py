"""Matrix products: naive, tiled, and register-blocked, with pitches of the K-tile and two buffers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, zeros

SIZES = ((512, 512, 512), (1024, 1024, 1024), (2048, 1024, 512))
K_TILE = 16
PITCHES = (16, 17, 18, 20, 32, 33)
SCALARS = buffers({"a": "f32", "b": "f32"}, {"c": "f32"})
VECTOR_B = buffers({"a": "f32", "b": "vec4f"}, {"c": "vec4f"})
VECTORS = buffers({"a": "vec4f", "b": "vec4f"}, {"c": "vec4f"})

NAIVE = """\
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let row = id.ROW;
    let col = id.COL;
    var sum = 0.0;
    for (var k = 0u; k < K; k += 1u) {
        sum += a[row * K + k] * b[k * N + col];
    }
    c[row * N + col] = sum;
}
"""
FOUR_COLUMNS = """\
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = vec4f();
    for (var k = 0u; k < K; k += 1u) {
        sum += a[id.y * K + k] * b[k * (N / 4u) + id.x];
    }
    c[id.y * (N / 4u) + id.x] = sum;
}
"""
TILED = """\
var<workgroup> a_tile: array<f32, TILE * PITCH>;
var<workgroup> b_tile: array<f32, TILE * PITCH>;

@compute @workgroup_size(TILE, TILE)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(local_invocation_id) local: vec3u,
) {
    var sum = 0.0;
    for (var first = 0u; first < K; first += TILE) {
        a_tile[local.y * PITCH + local.x] = a[id.y * K + first + local.x];
        b_tile[local.y * PITCH + local.x] = b[(first + local.y) * N + id.x];
        workgroupBarrier();
        for (var k = 0u; k < TILE; k += 1u) {
            sum += a_tile[local.y * PITCH + k] * b_tile[k * PITCH + local.x];
        }
        workgroupBarrier();
    }
    c[id.y * N + id.x] = sum;
}
"""
LOAD_SCALARS = """\
var<workgroup> a_tile: array<f32, BUFFERS * BM * PITCH>;
var<workgroup> b_tile: array<f32, BUFFERS * TK * BN>;

fn load(buffer: u32, first: u32, lane: u32, group: vec3u) {
    for (var i = lane; i < BM * TK; i += THREADS) {
        a_tile[buffer * BM * PITCH + i / TK * PITCH + i % TK] = a[(group.y * BM + i / TK) * K + first + i % TK];
    }
    for (var i = lane; i < TK * BN; i += THREADS) {
        b_tile[buffer * TK * BN + i] = b[(first + i / BN) * N + group.x * BN + i % BN];
    }
}

fn columns(at: u32) -> vec4f {
    return vec4f(b_tile[at], b_tile[at + 1u], b_tile[at + 2u], b_tile[at + 3u]);
}
"""
LOAD_VECTORS = """\
var<workgroup> a_tile: array<f32, BUFFERS * BM * PITCH>;
var<workgroup> b_tile: array<vec4f, BUFFERS * TK * BN / 4>;

fn load(buffer: u32, first: u32, lane: u32, group: vec3u) {
    for (var i = lane; i < BM * TK / 4u; i += THREADS) {
        let row = i / (TK / 4u);
        let k = i % (TK / 4u) * 4u;
        let loaded = a[((group.y * BM + row) * K + first + k) / 4u];
        let at = buffer * BM * PITCH + row * PITCH + k;
        a_tile[at] = loaded.x;
        a_tile[at + 1u] = loaded.y;
        a_tile[at + 2u] = loaded.z;
        a_tile[at + 3u] = loaded.w;
    }
    for (var i = lane; i < TK * BN / 4u; i += THREADS) {
        let k = i / (BN / 4u);
        b_tile[buffer * TK * BN / 4u + i] = b[((first + k) * N + group.x * BN) / 4u + i % (BN / 4u)];
    }
}

fn columns(at: u32) -> vec4f {
    return b_tile[at / 4u];
}
"""
BLOCKED = """\
@compute @workgroup_size(BN / 4, BM / TM)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
ACCUMULATORS
LOOP
STORES
}
"""
ONE_BUFFER = """\
    for (var first = 0u; first < K; first += TK) {
        load(0u, first, lane, group);
        workgroupBarrier();
        for (var k = 0u; k < TK; k += 1u) {
            let row = local.y * TM * PITCH + k;
            let b_row = columns(k * BN + local.x * 4u);
STEPS
        }
        workgroupBarrier();
    }"""
TWO_BUFFERS = """\
    load(0u, 0u, lane, group);
    workgroupBarrier();
    for (var step = 0u; step < K / TK; step += 1u) {
        if step + 1u < K / TK {
            load((step + 1u) % 2u, (step + 1u) * TK, lane, group);
        }
        let buffer = step % 2u;
        for (var k = 0u; k < TK; k += 1u) {
            let row = buffer * BM * PITCH + local.y * TM * PITCH + k;
            let b_row = columns(buffer * TK * BN + k * BN + local.x * 4u);
STEPS
        }
        workgroupBarrier();
    }"""
ARRAYS = """\
var<workgroup> a_tile: array<f32, BM * PITCH>;
var<workgroup> b_tile: array<f32, TK * BN>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    var sums: array<f32, 16>;
    for (var first = 0u; first < K; first += TK) {
        for (var i = lane; i < BM * TK; i += THREADS) {
            a_tile[i / TK * PITCH + i % TK] = a[(group.y * BM + i / TK) * K + first + i % TK];
            b_tile[i] = b[(first + i / BN) * N + group.x * BN + i % BN];
        }
        workgroupBarrier();
        for (var k = 0u; k < TK; k += 1u) {
            for (var i = 0u; i < 4u; i += 1u) {
                for (var j = 0u; j < 4u; j += 1u) {
                    sums[i * 4u + j] += a_tile[(local.y * 4u + i) * PITCH + k] * b_tile[k * BN + local.x * 4u + j];
                }
            }
        }
        workgroupBarrier();
    }
    for (var i = 0u; i < 4u; i += 1u) {
        for (var j = 0u; j < 4u; j += 1u) {
            c[(group.y * BM + local.y * 4u + i) * N + group.x * BN + local.x * 4u + j] = sums[i * 4u + j];
        }
    }
}
"""


def blocked(rows: int, pitch: int, *, double: bool = False, vectors: bool = False) -> str:
    """A kernel whose threads compute `rows` rows of 4 columns each; a workgroup of 256 computes 64 columns."""
    sizes = constants(TM=rows, BM=16 * rows, BN=64, TK=K_TILE, PITCH=pitch, THREADS=256, BUFFERS=1 + double)
    steps = [f"            sum{i} += a_tile[row + {i}u * PITCH] * b_row;" for i in range(rows)]
    at = "(group.y * BM + local.y * TM + {}u) * N + group.x * BN + local.x * 4u"
    if vectors:
        stores = [f"    c[({at.format(i)}) / 4u] = sum{i};" for i in range(rows)]
    else:
        stores = [f"    c[{at.format(i)} + {j}u] = sum{i}[{j}];" for i in range(rows) for j in range(4)]
    body = BLOCKED.replace("ACCUMULATORS", "\n".join(f"    var sum{i} = vec4f();" for i in range(rows)))
    body = body.replace("LOOP", TWO_BUFFERS if double else ONE_BUFFER).replace("STEPS", "\n".join(steps))
    body = body.replace("STORES", "\n".join(stores))
    return sizes + (VECTORS + LOAD_VECTORS if vectors else SCALARS + LOAD_SCALARS) + "\n" + body


def matrix_products(scale: int) -> Iterator[Timed]:
    for size in SIZES:
        m, n, k = (shrink(side, scale, 128) for side in size)
        shape = f"{m}x{n}x{k}"
        variants = {
            "naive": (SCALARS + NAIVE.replace("ROW", "y").replace("COL", "x"), (n // 16, m // 16, 1)),
            "naive, x along rows": (SCALARS + NAIVE.replace("ROW", "x").replace("COL", "y"), (m // 16, n // 16, 1)),
            "naive vec4": (VECTOR_B + FOUR_COLUMNS, (n // 64, m // 16, 1)),
        }
        for tile, pitch in ((8, 8), (16, 16), (16, 17), (32, 32)):
            text = constants(TILE=tile, PITCH=pitch) + SCALARS + TILED
            variants[f"tile {tile} pitch {pitch}"] = text, (n // tile, m // tile, 1)
        for pitch in PITCHES:
            variants[f"4x4 pitch {pitch}"] = blocked(4, pitch), (n // 64, m // 64, 1)
        for pitch in (16, 17, 33):
            variants[f"4x4 two buffers pitch {pitch}"] = blocked(4, pitch, double=True), (n // 64, m // 64, 1)
        for pitch in (16, 17):
            variants[f"8x4 pitch {pitch}"] = blocked(8, pitch), (n // 64, m // 128, 1)
            variants[f"4x4 vec4 pitch {pitch}"] = blocked(4, pitch, vectors=True), (n // 64, m // 64, 1)
        text = constants(BM=64, BN=64, TK=K_TILE, PITCH=17, THREADS=256) + SCALARS + ARRAYS
        variants["4x4 array of sums pitch 17"] = text, (n // 64, m // 64, 1)
        for kernel, (text, grid) in variants.items():
            rng = seeded("matmul", shape)
            bindings = {"a": eighths(rng, m, k), "b": eighths(rng, k, n), "c": zeros(m, n)}
            yield Timed("matmul", kernel, shape, constants(M=m, N=n, K=k) + text, grid, bindings)

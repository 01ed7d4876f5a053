"""Transposes: naive both ways, tiled with pads, and by 4x4 blocks of vec4."""

from __future__ import annotations

from collections.abc import Iterator

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, zeros

SIZES = ((1024, 2048), (2048, 2048), (4096, 4096))
SCALARS = buffers({"a": "f32"}, {"b": "f32"})
VECTORS = buffers({"a": "vec4f"}, {"b": "vec4f"})

COALESCED_READS = """\
@compute @workgroup_size(32, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    b[id.x * ROWS + id.y] = a[id.y * COLS + id.x];
}
"""
COALESCED_WRITES = """\
@compute @workgroup_size(32, 8)
fn main(@builtin(global_invocation_id) id: vec3u) {
    b[id.y * ROWS + id.x] = a[id.x * COLS + id.y];
}
"""
TILED = """\
var<workgroup> tile: array<f32, TILE * PITCH>;

@compute @workgroup_size(TILE, STEP)
fn main(@builtin(local_invocation_id) local: vec3u, @builtin(workgroup_id) group: vec3u) {
    for (var row = local.y; row < TILE; row += STEP) {
        tile[row * PITCH + local.x] = a[(group.y * TILE + row) * COLS + group.x * TILE + local.x];
    }
    workgroupBarrier();
    for (var row = local.y; row < TILE; row += STEP) {
        b[(group.x * TILE + row) * ROWS + group.y * TILE + local.x] = tile[local.x * PITCH + row];
    }
}
"""
BLOCKS = """\
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let pitch = COLS / 4u;
    let first = id.y * 4u * pitch + id.x;
    let block = transpose(mat4x4f(a[first], a[first + pitch], a[first + 2u * pitch], a[first + 3u * pitch]));
    for (var row = 0u; row < 4u; row += 1u) {
        b[(id.x * 4u + row) * (ROWS / 4u) + id.y] = block[row];
    }
}
"""
TILES = ((16, 16, 16), (16, 17, 16), (32, 32, 8), (32, 33, 8), (32, 34, 8), (32, 36, 8), (32, 33, 4))


def transposes(scale: int) -> Iterator[Timed]:
    for size in SIZES:
        rows, cols = (shrink(side, scale, 64) for side in size)
        variants = {
            "coalesced reads": (SCALARS + COALESCED_READS, (cols // 32, rows // 8, 1)),
            "coalesced writes": (SCALARS + COALESCED_WRITES, (rows // 32, cols // 8, 1)),
            "vec4 blocks": (VECTORS + BLOCKS, (cols // 64, rows // 64, 1)),
        }
        for tile, pitch, step in TILES:
            text = constants(TILE=tile, PITCH=pitch, STEP=step) + SCALARS + TILED
            variants[f"tile {tile}x{tile} by {tile}x{step} pitch {pitch}"] = text, (cols // tile, rows // tile, 1)
        shape = f"{rows}x{cols}"
        for kernel, (text, grid) in variants.items():
            bindings = {"a": eighths(seeded("transpose", shape), rows, cols), "b": zeros(cols, rows)}
            yield Timed("transpose", kernel, shape, constants(ROWS=rows, COLS=cols) + text, grid, bindings)

"""Stencils and convolutions: naive, by shapes of workgroup, and from tiles with a halo."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, zeros

STENCIL_SIZES = ((1024, 2048), (2048, 2048), (4096, 4096))
BUFFERS = buffers({"a": "f32"}, {"b": "f32"})
INTERIOR = "if col > 0u && col < COLS - 1u && row > 0u && row < ROWS - 1u"

NAIVE = f"""\
@compute @workgroup_size(WX, WY)
fn main(@builtin(global_invocation_id) id: vec3u) {{
    let row = id.ROW_AXIS;
    let col = id.COL_AXIS;
    let at = row * COLS + col;
    {INTERIOR} {{
        b[at] = 0.5 * a[at] + 0.125 * (a[at - 1u] + a[at + 1u] + a[at - COLS] + a[at + COLS]);
    }}
}}
"""
TILED = f"""\
const PITCH = WX + 2u + PAD;
var<workgroup> tile: array<f32, (WY + 2) * PITCH>;

@compute @workgroup_size(WX, WY)
fn main(
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {{
    let left = group.x * WX;
    let top = group.y * WY;
    for (var i = lane; i < (WX + 2u) * (WY + 2u); i += WX * WY) {{
        let x = i % (WX + 2u);
        let y = i / (WX + 2u);
        let from_row = clamp(top + y, 1u, ROWS) - 1u;
        let from_col = clamp(left + x, 1u, COLS) - 1u;
        tile[y * PITCH + x] = a[from_row * COLS + from_col];
    }}
    workgroupBarrier();
    let row = top + local.y;
    let col = left + local.x;
    let at = (local.y + 1u) * PITCH + local.x + 1u;
    {INTERIOR} {{
        let around = tile[at - 1u] + tile[at + 1u] + tile[at - PITCH] + tile[at + PITCH];
        b[row * COLS + col] = 0.5 * tile[at] + 0.125 * around;
    }}
}}
"""
COLUMN_PER_THREAD = """\
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let col = id.x;
    let first = id.y * STRIP;
    if col > 0u && col < COLS - 1u {
        var above = a[max(first, 1u) * COLS - COLS + col];
        var here = a[first * COLS + col];
        for (var row = first; row < first + STRIP; row += 1u) {
            let at = row * COLS + col;
            let below = a[min(row + 1u, ROWS - 1u) * COLS + col];
            if row > 0u && row < ROWS - 1u {
                b[at] = 0.5 * here + 0.125 * (a[at - 1u] + a[at + 1u] + above + below);
            }
            above = here;
            here = below;
        }
    }
}
"""


def stencils(scale: int) -> Iterator[Timed]:
    for size in STENCIL_SIZES:
        rows, cols = (shrink(side, scale, 256) for side in size)
        shape = f"{rows}x{cols}"
        variants = {}
        for x, y in ((8, 8), (16, 16), (32, 8), (64, 4), (256, 1), (4, 64)):
            head = constants(WX=x, WY=y)
            text = head + BUFFERS + NAIVE.replace("ROW_AXIS", "y").replace("COL_AXIS", "x")
            variants[f"naive {x}x{y}"] = text, (cols // x, rows // y, 1)
            if x in (16, 32, 64):
                variants[f"tile {x}x{y}"] = head + constants(PAD=0) + BUFFERS + TILED, (cols // x, rows // y, 1)
        text = constants(WX=32, WY=8) + BUFFERS + NAIVE.replace("ROW_AXIS", "x").replace("COL_AXIS", "y")
        variants["naive 32x8, x along rows"] = text, (rows // 32, cols // 8, 1)
        variants["columns of 32"] = constants(STRIP=32) + BUFFERS + COLUMN_PER_THREAD, (cols // 64, rows // 32, 1)
        for kernel, (text, grid) in variants.items():
            bindings = {"a": eighths(seeded("stencil", shape), rows, cols), "b": zeros(rows, cols)}
            yield Timed("stencil", kernel, shape, constants(ROWS=rows, COLS=cols) + text, grid, bindings)


FILTER = buffers({"x": "f32", "w": "f32"}, {"y": "f32"})
CONV1D = {
    "naive": """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var i = 0u; i < TAPS; i += 1u) {
        sum += w[i] * x[id.x + i];
    }
    y[id.x] = sum;
}
""",
    "weights in workgroup memory": """\
var<workgroup> weights: array<f32, TAPS>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < TAPS; i += 256u) {
        weights[i] = w[i];
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < TAPS; i += 1u) {
        sum += weights[i] * x[id.x + i];
    }
    y[id.x] = sum;
}
""",
    "tile with halo": """\
var<workgroup> tile: array<f32, 256 + TAPS - 1>;

@compute @workgroup_size(256)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    for (var i = lane; i < 255u + TAPS; i += 256u) {
        tile[i] = x[group.x * 256u + i];
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var i = 0u; i < TAPS; i += 1u) {
        sum += w[i] * tile[lane + i];
    }
    y[id.x] = sum;
}
""",
    "four outputs per thread": """\
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let first = id.x * 4u;
    var sums = vec4f();
    var window = vec4f(0.0, x[first], x[first + 1u], x[first + 2u]);
    for (var i = 0u; i < TAPS; i += 1u) {
        window = vec4f(window.yzw, x[first + i + 3u]);
        sums += w[i] * window;
    }
    y[first] = sums.x;
    y[first + 1u] = sums.y;
    y[first + 2u] = sums.z;
    y[first + 3u] = sums.w;
}
""",
}


def convolutions_1d(scale: int) -> Iterator[Timed]:
    for size, taps in ((1 << 22, 9), (1 << 22, 33), (1 << 20, 129), (1 << 22, 129)):
        n = shrink(size, scale, 4096)
        for kernel, text in CONV1D.items():
            rng = seeded("conv1d", n, taps)
            bindings = {"x": eighths(rng, n + taps - 1), "w": eighths(rng, taps), "y": zeros(n)}
            yield Timed(
                "conv1d", kernel, f"{n} by {taps}", constants(TAPS=taps) + FILTER + text, (n // 256, 1, 1), bindings
            )


CONV2D = {
    "thread per output": (
        (16, 16),
        1,
        """\
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var c = 0u; c < CHANNELS; c += 1u) {
        for (var i = 0u; i < 3u; i += 1u) {
            for (var j = 0u; j < 3u; j += 1u) {
                sum += w[((id.z * CHANNELS + c) * 3u + i) * 3u + j]
                    * x[(c * (SIDE + 2u) + id.y + i) * (SIDE + 2u) + id.x + j];
            }
        }
    }
    y[(id.z * SIDE + id.y) * SIDE + id.x] = sum;
}
""",
    ),
    "tile of each channel": (
        (16, 16),
        1,
        """\
var<workgroup> tile: array<f32, 18 * 18>;

@compute @workgroup_size(16, 16)
fn main(
    @builtin(global_invocation_id) id: vec3u,
    @builtin(workgroup_id) group: vec3u,
    @builtin(local_invocation_id) local: vec3u,
    @builtin(local_invocation_index) lane: u32,
) {
    var sum = 0.0;
    for (var c = 0u; c < CHANNELS; c += 1u) {
        for (var i = lane; i < 324u; i += 256u) {
            tile[i] = x[(c * (SIDE + 2u) + group.y * 16u + i / 18u) * (SIDE + 2u) + group.x * 16u + i % 18u];
        }
        workgroupBarrier();
        for (var i = 0u; i < 3u; i += 1u) {
            for (var j = 0u; j < 3u; j += 1u) {
                sum += w[((id.z * CHANNELS + c) * 3u + i) * 3u + j] * tile[(local.y + i) * 18u + local.x + j];
            }
        }
        workgroupBarrier();
    }
    y[(id.z * SIDE + id.y) * SIDE + id.x] = sum;
}
""",
    ),
    "four filters per thread": (
        (16, 16),
        4,
        """\
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sums = vec4f();
    let filters = CHANNELS * 9u;
    for (var c = 0u; c < CHANNELS; c += 1u) {
        for (var i = 0u; i < 3u; i += 1u) {
            for (var j = 0u; j < 3u; j += 1u) {
                let at = id.z * 4u * filters + (c * 3u + i) * 3u + j;
                let value = x[(c * (SIDE + 2u) + id.y + i) * (SIDE + 2u) + id.x + j];
                sums += value * vec4f(w[at], w[at + filters], w[at + 2u * filters], w[at + 3u * filters]);
            }
        }
    }
    for (var i = 0u; i < 4u; i += 1u) {
        y[((id.z * 4u + i) * SIDE + id.y) * SIDE + id.x] = sums[i];
    }
}
""",
    ),
    "filter in workgroup memory": (
        (64, 1),
        1,
        """\
var<workgroup> weights: array<f32, CHANNELS * 9>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < CHANNELS * 9u; i += 64u) {
        weights[i] = w[id.z * CHANNELS * 9u + i];
    }
    workgroupBarrier();
    var sum = 0.0;
    for (var c = 0u; c < CHANNELS; c += 1u) {
        for (var i = 0u; i < 3u; i += 1u) {
            let at = (c * (SIDE + 2u) + id.y + i) * (SIDE + 2u) + id.x;
            let first = (c * 3u + i) * 3u;
            sum += weights[first] * x[at] + weights[first + 1u] * x[at + 1u] + weights[first + 2u] * x[at + 2u];
        }
    }
    y[(id.z * SIDE + id.y) * SIDE + id.x] = sum;
}
""",
    ),
}


def convolutions_2d(scale: int) -> Iterator[Timed]:
    """Filters of 3x3 on channels of squares with a border of one, channels outermost."""
    for size, channels, filters in ((256, 16, 32), (512, 16, 16), (128, 64, 64)):
        side = shrink(size, int(np.sqrt(scale)), 64)
        channels, filters = shrink(channels, scale, 4), shrink(filters, scale, 8)
        shape = f"{channels}x{side}x{side} to {filters}"
        for kernel, ((x, y), per, text) in CONV2D.items():
            rng = seeded("conv2d", shape)
            bindings = {
                "x": eighths(rng, channels, side + 2, side + 2),
                "w": eighths(rng, filters, channels, 3, 3),
                "y": zeros(filters, side, side),
            }
            text = constants(CHANNELS=channels, SIDE=side) + FILTER + text
            yield Timed("conv2d", kernel, shape, text, (side // x, side // y, filters // per), bindings)

"""Sparse matrices by rows (CSR) times a vector: rows by thread, by lanes and by workgroup, regular and uneven rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.hardware.timed.dispatch import Timed, buffers, constants, eighths, seeded, shrink, zeros

BUFFERS = buffers({"starts": "u32", "columns": "u32", "values": "f32", "x": "f32"}, {"y": "f32"})
THREAD_PER_ROW = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0.0;
    for (var i = starts[id.x]; i < starts[id.x + 1u]; i += 1u) {
        sum += values[i] * x[columns[i]];
    }
    y[id.x] = sum;
}
"""
LANES_PER_ROW = """\
var<workgroup> sums: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let row = group.x * (T / LANES) + lane / LANES;
    let member = lane % LANES;
    let end = starts[row + 1u];
    var sum = 0.0;
    for (var i = starts[row] + member; i < end; i += LANES) {
        sum += values[i] * x[columns[i]];
    }
    sums[lane] = sum;
    workgroupBarrier();
    for (var half = LANES / 2u; half > 0u; half /= 2u) {
        if member < half {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }
    if member == 0u {
        y[row] = sums[lane];
    }
}
"""


def lengths(rng: np.random.Generator, rows: int, mean: int, kind: str) -> NDArray[np.int64]:
    """Entries in each row: equal, or few for most rows and up to 4,096 for some."""
    if kind == "regular":
        return np.full(rows, mean)
    drawn = np.minimum((rng.pareto(1.2, rows) + 1) * mean / 6, 4096)
    return drawn.astype(np.int64)


def sparse_products(scale: int) -> Iterator[Timed]:
    for size, mean in ((1 << 15, 16), (1 << 15, 64), (1 << 14, 512)):
        rows = shrink(size, scale, 512)
        for kind in ("regular", "power-law"):
            variants = {f"thread per row, {t} per workgroup": (t, 1, THREAD_PER_ROW) for t in (64, 256)}
            for lanes in (4, 32, 128):
                variants[f"{lanes} lanes per row"] = 128, lanes, LANES_PER_ROW
            for kernel, (threads, lanes, text) in variants.items():
                rng = seeded("csr", rows, mean, kind)
                starts = np.append(0, np.cumsum(lengths(rng, rows, mean, kind))).astype(np.uint32)
                entries = int(starts[-1])
                bindings = {
                    "starts": starts,
                    "columns": rng.integers(0, rows, entries, dtype=np.uint32),
                    "values": eighths(rng, entries),
                    "x": eighths(rng, rows),
                    "y": zeros(rows),
                }
                text = constants(T=threads) + (constants(LANES=lanes) if lanes > 1 else "") + BUFFERS + text
                shape = f"{rows} {kind} rows of {mean}"
                yield Timed("sparse rows", kernel, shape, text, (rows * lanes // threads, 1, 1), bindings)

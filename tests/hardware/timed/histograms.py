"""Histograms: atomics in global memory, in workgroup memory, and copies, on even and uneven data."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tests.hardware.timed.dispatch import Timed, buffers, constants, counts, seeded, shrink

PER_THREAD = 16
BUFFERS = buffers({"x": "u32"}, {"bins": "atomic<u32>"})

GLOBAL = """\
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i < PER; i += 1u) {
        atomicAdd(&bins[x[(group.x * PER + i) * 256u + lane]], 1u);
    }
}
"""
WORKGROUP = """\
var<workgroup> found: array<atomic<u32>, COPIES * BINS>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < COPIES * BINS; i += 256u) {
        atomicStore(&found[i], 0u);
    }
    workgroupBarrier();
    for (var i = 0u; i < PER; i += 1u) {
        let bin = x[(group.x * PER + i) * 256u + lane];
        atomicAdd(&found[lane % COPIES * BINS + bin], 1u);
    }
    workgroupBarrier();
    for (var bin = lane; bin < BINS; bin += 256u) {
        var sum = 0u;
        for (var copy = 0u; copy < COPIES; copy += 1u) {
            sum += atomicLoad(&found[copy * BINS + bin]);
        }
        if sum > 0u {
            atomicAdd(&bins[bin], sum);
        }
    }
}
"""
PRIVATE = """\
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var found: array<u32, BINS>;
    for (var i = 0u; i < PER; i += 1u) {
        found[x[(group.x * PER + i) * 256u + lane]] += 1u;
    }
    for (var bin = 0u; bin < BINS; bin += 1u) {
        if found[bin] > 0u {
            atomicAdd(&bins[bin], found[bin]);
        }
    }
}
"""
CASES = (
    (1 << 20, 16, "even"),
    (1 << 20, 16, "one bin"),
    (1 << 20, 256, "even"),
    (1 << 22, 256, "even"),
    (1 << 22, 256, "skewed"),
    (1 << 20, 256, "one bin"),
    (1 << 22, 4096, "even"),
    (1 << 22, 4096, "skewed"),
)


def samples(rng: np.random.Generator, n: int, bins: int, kind: str) -> NDArray[np.uint32]:
    """Bins of `n` values: each as likely, small ones likelier, or all one bin."""
    if kind == "one bin":
        return np.full(n, bins // 2, np.uint32)
    power = {"even": 1, "skewed": 4}[kind]
    return (rng.random(n, np.float32) ** power * np.float32(bins * (1 - 2**-20))).astype(np.uint32)


def histograms(scale: int) -> Iterator[Timed]:
    for size, bins, kind in CASES:
        n = shrink(size, scale, 256 * PER_THREAD)
        variants = {"global atomics": GLOBAL, "workgroup atomics": constants(COPIES=1) + WORKGROUP}
        for copies in (2, 8):
            if copies * bins * 4 <= 32768:
                variants[f"{copies} copies per workgroup"] = constants(COPIES=copies) + WORKGROUP
        if bins == 16:
            variants["bins per thread"] = PRIVATE
        for kernel, text in variants.items():
            x = samples(seeded("histogram", n, bins, kind), n, bins, kind)
            text = constants(BINS=bins, PER=PER_THREAD) + BUFFERS + text
            grid = (n // 256 // PER_THREAD, 1, 1)
            shape = f"{n} in {bins} bins, {kind}"
            yield Timed("histogram", kernel, shape, text, grid, {"x": x, "bins": counts(bins)})

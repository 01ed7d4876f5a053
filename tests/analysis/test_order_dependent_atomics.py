"""Atomic operations that may depend on the order of invocations, those most likely to matter first."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot

HEAD = """
@group(0) @binding(0) var<storage, read_write> n: array<atomic<u32>, 4>;
@group(0) @binding(1) var<storage, read_write> m: array<atomic<u32>, 4>;
@group(0) @binding(2) var<storage, read_write> y: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
_ = &n; _ = &m; y[i] = 1u;
"""
FIRST_LINE = HEAD.count("\n")

# Statements, a line each -> the lines that may depend on the order, worked out by hand.
FOUND = {
    "additions": ("atomicAdd(&n[0], i);\natomicAdd(&n[1], 1u);", []),
    "additions and subtractions": ("atomicAdd(&n[0], i);\natomicSub(&n[0], 1u);", []),
    "maxima": ("atomicMax(&n[0], i);\natomicMax(&n[0], 3u);", []),
    "bits": ("atomicOr(&n[0], i);", []),
    "stores": ("atomicStore(&n[0], i);", [0]),
    "exchanges": ("atomicExchange(&n[0], i);", [0]),
    "comparisons": ("y[i] = atomicCompareExchangeWeak(&n[0], 0u, i).old_value;", [0]),
    "a result that is used": ("y[i] = atomicAdd(&n[0], 1u);", [0]),
    "loads": ("y[i] = atomicLoad(&n[0]);", []),
    "loads beside additions": ("atomicAdd(&n[0], 1u);\ny[i] = atomicLoad(&n[0]);", [1]),
    "kinds that do not commute": ("atomicMax(&n[0], i);\natomicAdd(&n[0], i);", [0, 1]),
    "different kinds of bits": ("atomicOr(&n[0], i);\natomicAnd(&n[0], i);\natomicXor(&n[0], i);", [0, 1, 2]),
    "of different variables": ("atomicMax(&n[0], i);\natomicAdd(&m[0], i);", []),
    "results first, then changes, then loads": (
        "y[i] = atomicLoad(&n[0]);\natomicMin(&n[0], i);\ny[i] = atomicAdd(&n[0], 1u);\natomicLoad(&n[1]);",
        [2, 1, 0],
    ),
}


@pytest.mark.parametrize(("body", "lines"), FOUND.values(), ids=FOUND)
def test_atomics_that_depend_on_the_order(body, lines):
    bindings = {"n": np.zeros(4, np.uint32), "m": np.zeros(4, np.uint32), "y": np.zeros(64, np.uint32)}
    program = bankshot.simulate(HEAD + body + "}", grid=1, bindings=bindings, probes="all").program
    found = [program.sites[site].span.line - 1 - FIRST_LINE for site in program.order_dependent_atomics]
    assert found == lines

"""Which probes an access has, by what is requested, the memory that it accesses, and what it does there."""

from __future__ import annotations

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine import instruction as field
from bankshot.sim.machine import opcodes as op

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<u32, 64>;
@group(0) @binding(1) var<storage, read_write> y: array<u32, 64>;
@group(0) @binding(2) var<storage, read_write> z: array<u32, 64>;
@group(0) @binding(3) var<storage, read_write> n: array<atomic<u32>, 64>;
@group(0) @binding(4) var<uniform> u: vec4u;
var<workgroup> t: array<u32, 64>;
var<workgroup> b: atomic<u32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
    _ = &x; _ = &y; _ = &z; _ = &n; _ = &u; _ = &t; _ = &b;
    var a = i;
"""
STORAGE_LOAD, STORAGE_STORE, SHARED_STORE = "z[i] = x[i + 1u];", "y[i + 1u] = a;", "t[i + 1u] = a;"
BOTH = "y[i + 1u] = y[i];"
SHARED_LOAD = "t[0] = 1u; workgroupBarrier(); a = t[i + 1u]; workgroupBarrier(); t[1] = a;"
ATOMIC, SHARED_ATOMIC = "atomicAdd(&n[i], a);", "atomicAdd(&b, a);"
UNIFORM = "z[0] = u.x;"
WATCHES = {"watch_read", "watch_write", "watch_order"}

# A body, what is requested, and which of these instructions the program has of those that are listed last.
ROWS = [
    (STORAGE_STORE, {"bounds"}, {"bounds"}),
    (SHARED_STORE, {"bounds"}, {"bounds"}),
    ("y[3] = a;", {"bounds"}, set()),
    (UNIFORM, {"bounds", "sectors"}, {"sectors"}),
    (STORAGE_STORE, {"sectors"}, {"sectors"}),
    (SHARED_STORE, {"sectors"}, set()),
    (SHARED_STORE, {"banks"}, {"banks"}),
    (STORAGE_STORE, {"banks"}, set()),
    (SHARED_ATOMIC, {"banks"}, {"banks"}),
    (ATOMIC, {"sectors", "banks"}, {"sectors"}),
    (STORAGE_STORE, {"races"}, {"watch_write"}),
    (BOTH, {"races"}, {"watch_write", "watch_read"}),
    (SHARED_STORE, {"races"}, {"watch_write"}),
    (SHARED_LOAD, {"races"}, {"watch_write", "watch_read"}),
    (STORAGE_STORE, {"banks", "sectors", "bounds", "lanes"}, {"sectors", "bounds"}),
    (SHARED_STORE, {"banks", "sectors", "bounds", "lanes"}, {"banks", "bounds"}),
    (SHARED_STORE, {"uninit"}, {"watch_write"}),
    (SHARED_LOAD, {"uninit"}, {"watch_write", "watch_read"}),
    (BOTH, {"uninit"}, set()),
    (STORAGE_STORE, {"touched"}, {"touched"}),
    (SHARED_STORE, {"touched"}, set()),
    # atomic operations among themselves: as stores, or where updates commute, those as loads and all others as stores
    (ATOMIC, {"atomics"}, {"watch_write"}),
    ("a = atomicLoad(&n[i]); atomicStore(&n[0], a);", {"atomics"}, {"watch_read", "watch_write"}),
    (ATOMIC, {"atomics", "commuting"}, {"watch_read"}),
    ("atomicExchange(&n[i], a);", {"atomics", "commuting"}, {"watch_write"}),
    ("atomicStore(&n[i], a);", {"atomics", "commuting"}, {"watch_write"}),
    ("atomicMax(&b, a);", {"atomics", "commuting"}, {"watch_read"}),
    (STORAGE_STORE, {"atomics"}, set()),
    (ATOMIC, {"races"}, set()),
    # in program order, with or without atomic operations
    (STORAGE_STORE, {"order"}, {"watch_order"}),
    (ATOMIC, {"order"}, {"watch_order"}),
    (ATOMIC, {"order", "plain"}, set()),
    (STORAGE_STORE, {"order", "plain"}, {"watch_order"}),
]
LISTED = {"bounds", "banks", "sectors", "touched", "reach", "writers", "meets"} | WATCHES


def probes_of(body, names):
    bindings = {name: np.zeros(64, np.uint32) for name in "xyzn"} | {"u": np.zeros(4, np.uint32)}
    run = bankshot.simulate(f"{HEAD}{body} }}", grid=1, bindings=bindings, probes="none")
    launch, _ = run._dispatch.run(frozenset(names))
    return {op.NAMES[code] for code in launch.program.code[:, field.OP].tolist() if code < len(op.NAMES)} & LISTED


@pytest.mark.parametrize(("body", "names", "expected"), ROWS, ids=[f"{row[0]} {sorted(row[1])}" for row in ROWS])
def test_probes(body, names, expected):
    assert probes_of(body, names) == expected


@pytest.mark.parametrize("body", [STORAGE_LOAD, STORAGE_STORE, SHARED_LOAD, ATOMIC, UNIFORM])
def test_nothing_is_probed_that_is_not_requested(body):
    assert probes_of(body, set()) == set()


def test_what_only_one_kernel_reads_is_not_watched_for_races():
    """`x` is read-only, and nothing stores to it."""
    assert probes_of("z[0] = x[i];", {"races"}) == {"watch_write"}

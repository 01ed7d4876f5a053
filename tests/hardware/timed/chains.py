"""Latency and scheduling: dependent chains, sizes of workgroups, atomics, and barriers in loops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hardware.timed.dispatch import Timed, buffers, constants, counts, eighths, seeded, shrink, words, zeros

LINKS = buffers({"x": "u32"}, {"y": "u32"})
CHAIN = """\
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    BEFORE
    var v = x[id.x];
    for (var i = 0u; i < STEPS; i += 1u) {
        v = EXPRESSION;
    }
    y[id.x] = v;
}
"""
FILL = """\
for (var i = lane; i < 1024u; i += 64u) {
        near[i] = x[i] % 1024u;
    }
    workgroupBarrier();"""
# Each step depends on the one before. By name: declarations, what comes first, the step, and how many at full size.
STEPS = {
    "global loads": ("", "", "x[v]", 1024),
    "workgroup loads": ("var<workgroup> near: array<u32, 1024>;\n\n", FILL, "near[v % 1024u]", 4096),
    "multiply and add": ("", "", "v * 1664525u + 1013904223u", 16384),
    "f32 multiply and add": ("", "", "bitcast<u32>(bitcast<f32>(v) * 0.5 + 1.0)", 16384),
    "square root": ("", "", "bitcast<u32>(sqrt(bitcast<f32>(v) + 1.0))", 4096),
    "integer division": ("", "", "v / (i % 3u + 1u) + 1000000u", 4096),
}


def chains(scale: int) -> Iterator[Timed]:
    """The links of the chain of loads are one random cycle through 4 MiB."""
    for groups in (1, 32, 264):
        size = shrink(1 << 20, scale, 1 << 15)
        for name, (declared, before, expression, full) in STEPS.items():
            steps = shrink(full, scale, 64)
            order = seeded("chain", size).permutation(np.arange(size, dtype=np.uint32))
            x = np.empty_like(order)
            x[order] = np.roll(order, -1)
            text = constants(STEPS=steps) + LINKS + declared + CHAIN.replace("BEFORE", before)
            text = text.replace("EXPRESSION", expression).replace("    \n", "")
            bindings = {"x": x, "y": counts(groups * 64)}
            yield Timed("chain", f"{steps} {name}", f"{groups} workgroups", text, (groups, 1, 1), bindings)


SAXPY = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = id.y * ROW + id.x;
    y[at] = 0.5 * x[at] + 0.25;
}
"""
POLYNOMIAL = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let at = id.y * ROW + id.x;
    let v = x[at];
    var sum = 1.0;
    for (var i = 0u; i < 256u; i += 1u) {
        sum = sum * v * 0.5 + 0.25;
    }
    y[at] = sum;
}
"""
REVERSED = """\
var<workgroup> kept: array<f32, T>;

@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let at = id.y * ROW + id.x;
    kept[lane ^ 31u] = x[at];
    workgroupBarrier();
    y[at] = kept[lane];
}
"""


def workgroup_sizes(scale: int) -> Iterator[Timed]:
    """Jobs by workgroups of 32 to 1,024 threads."""
    jobs = {"saxpy": SAXPY, "polynomial": POLYNOMIAL, "reversal in 32s": REVERSED}
    for job, text in jobs.items():
        for size in (1 << 20, 1 << 22):
            n = shrink(size, scale, 4096)
            for threads in (32, 64, 128, 256, 512, 1024):
                bindings = {"x": eighths(seeded("sizes", n), n), "y": zeros(n)}
                head = constants(T=threads, ROW=n // 4) + buffers({"x": "f32"}, {"y": "f32"})
                grid = (n // 4 // threads, 4, 1)
                yield Timed(f"workgroup size, {job}", f"{threads} threads", str(n), head + text, grid, bindings)


ATOMICS = """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    INIT
    let v = x[id.x];
    let mask = none[0];
    var seen = 0u;
    for (var i = 0u; i < TIMES; i += 1u) {
        STATEMENT
    }
    workgroupBarrier();
    y[id.x] = seen | (atomicLoad(&z[lane]) & mask);
}
"""
TARGETS = {"same word": "0u", "word per lane": "lane", "word per thread": "id.x", "32 words": "lane % 32u"}
STATEMENTS = {
    "add": "atomicAdd(&z[AT], v);",
    "add one": "atomicAdd(&z[AT], 1u);",
    "add, result used": "seen |= atomicAdd(&z[AT], v) & mask;",
    "max": "atomicMax(&z[AT], v);",
    "or": "atomicOr(&z[AT], v);",
    "exchange": "seen |= atomicExchange(&z[AT], v) & mask;",
    "compare-exchange": "seen |= atomicCompareExchangeWeak(&z[AT], i, v).old_value & mask;",
}
WORKGROUP_ATOMICS = """\
var<workgroup> z: array<atomic<u32>, 256>;

"""


CLEAR = "atomicStore(&z[lane], 0u);\n    workgroupBarrier();\n"


def atomics(scale: int) -> Iterator[Timed]:
    """`none` holds 0, so that results are used, but `y` does not depend on the order of atomics."""
    read = {"x": "u32", "none": "u32"}
    for full in (8, 32):
        n, times = shrink(1 << 18, scale, 1024), shrink(full, scale, 4)
        for target, at in TARGETS.items():
            for name, statement in STATEMENTS.items():
                body = ATOMICS.replace("STATEMENT", statement.replace("AT", at))
                x = words(seeded("atomics", n), n)
                bindings = {"x": x, "none": counts(1), "y": counts(n)}
                kernel, shape, grid = f"{name}, {target}", f"{n}, {times} times", (n // 256, 1, 1)
                head = constants(TIMES=times)
                if full == 8 or target == "same word":
                    text = head + buffers(read, {"y": "u32", "z": "atomic<u32>"}) + body.replace("    INIT\n", "")
                    yield Timed("global atomics", kernel, shape, text, grid, {**bindings, "z": counts(n)})
                if target != "word per thread":
                    text = head + buffers(read, {"y": "u32"}) + WORKGROUP_ATOMICS + body.replace("INIT\n", CLEAR)
                    yield Timed("workgroup atomics", kernel, shape, text, grid, bindings)


ROTATION = """\
var<workgroup> ring: array<u32, 2 * T>;

@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    ring[lane] = x[id.x];
    workgroupBarrier();
    for (var i = 0u; i < STEPS; i += 1u) {
        BODY
    }
    y[id.x] = ring[lane];
}
"""
# All rotate a ring of 32 numbers by one; they differ in barriers and buffers.
BODIES = {
    "two barriers": """\
let v = ring[lane / 32u * 32u + (lane + 1u) % 32u];
        workgroupBarrier();
        ring[lane] = v;
        workgroupBarrier();""",
    "two buffers": """\
ring[(i + 1u) % 2u * T + lane] = ring[i % 2u * T + lane / 32u * 32u + (lane + 1u) % 32u];
        workgroupBarrier();""",
    "four barriers": """\
let v = ring[lane / 32u * 32u + (lane + 1u) % 32u];
        workgroupBarrier();
        workgroupBarrier();
        ring[lane] = v;
        workgroupBarrier();
        workgroupBarrier();""",
}


def barriers(scale: int) -> Iterator[Timed]:
    for size, steps in ((1 << 18, 64), (1 << 20, 64), (1 << 18, 512)):
        n, steps = shrink(size, scale, 2048), shrink(steps, scale, 16)
        for threads in (32, 64, 256, 1024):
            for kernel, body in BODIES.items():
                x = words(seeded("ring", n), n)
                text = constants(T=threads, STEPS=steps) + LINKS + ROTATION.replace("BODY", body)
                grid, shape = (n // threads, 1, 1), f"{n}, {steps} steps"
                bindings = {"x": x, "y": np.zeros_like(x)}
                yield Timed("barriers in a loop", f"{kernel}, {threads} threads", shape, text, grid, bindings)


STRIDED_LOADS = """\
var<workgroup> kept: array<u32, 4096>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    for (var i = lane; i < 4096u; i += 128u) {
        kept[i] = x[i];
    }
    workgroupBarrier();
    var sum = 0u;
    for (var i = 0u; i < STEPS; i += 1u) {
        sum += kept[(lane * STRIDE + i) % 4096u];
    }
    y[id.x] = sum;
}
"""
# Each lane has two words of its own, 1,024 apart.
STRIDED_STORES = """\
var<workgroup> kept: array<u32, 4 * 2048>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = lane / 32u * 2048u + lane % 32u * STRIDE;
    let v = x[lane];
    for (var i = 0u; i < STEPS; i += 1u) {
        kept[first + i % 2u * 1024u] = v + i;
    }
    y[id.x] = kept[first] + kept[first + 1024u];
}
"""
LANE_STRIDES = (1, 2, 3, 4, 8, 16, 32, 33)


def workgroup_strides(scale: int) -> Iterator[Timed]:
    """Loads and stores of workgroup memory whose lanes are some words apart."""
    for size in (1 << 17, 1 << 19):
        n, steps = shrink(size, scale, 4096), shrink(256, scale, 32)
        for name, body in (("loads", STRIDED_LOADS), ("stores", STRIDED_STORES)):
            for stride in LANE_STRIDES:
                text = constants(STRIDE=stride, STEPS=steps) + LINKS + body
                bindings = {"x": words(seeded("strides", n), 4096), "y": counts(n)}
                shape = f"{n}, {steps} steps"
                yield Timed(f"workgroup {name} by stride", f"stride {stride}", shape, text, (n // 128, 1, 1), bindings)

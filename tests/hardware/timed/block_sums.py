"""Sums of one array: reductions, scans of blocks, and compaction."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.hardware.timed.dispatch import Timed, buffers, constants, counts, seeded, shrink, words

SIZES = (1 << 21, 1 << 22, 1 << 23)
SUM = buffers({"x": "u32"}, {"total": "atomic<u32>"})
SUM_VECTORS = buffers({"x": "vec4u"}, {"total": "atomic<u32>"})

ATOMIC_PER_THREAD = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    atomicAdd(&total[0], x[id.x]);
}
"""
SERIAL_THEN_ATOMIC = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    for (var i = 0u; i < PER; i += 1u) {
        sum += x[AT];
    }
    atomicAdd(&total[0], sum);
}
"""
TREE = """\
var<workgroup> sums: array<u32, T>;

@compute @workgroup_size(T)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    var sum = 0u;
    for (var i = 0u; i < PER; i += 1u) {
        sum += LOADED;
    }
    sums[lane] = sum;
    workgroupBarrier();
    STEPS
    if lane == 0u {
        atomicAdd(&total[0], sums[0]);
    }
}
"""
MODULO = """\
for (var reach = 1u; reach < T; reach *= 2u) {
        if lane % (2u * reach) == 0u {
            sums[lane] += sums[lane + reach];
        }
        workgroupBarrier();
    }"""
INTERLEAVED = """\
for (var reach = 1u; reach < T; reach *= 2u) {
        let at = 2u * reach * lane;
        if at < T {
            sums[at] += sums[at + reach];
        }
        workgroupBarrier();
    }"""
SEQUENTIAL = """\
for (var half = T / 2u; half > 0u; half /= 2u) {
        if lane < half {
            sums[lane] += sums[lane + half];
        }
        workgroupBarrier();
    }"""
SUBGROUPS = """\
@compute @workgroup_size(T)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(subgroup_invocation_id) member: u32) {
    let sum = subgroupAdd(x[id.x]);
    if member == 0u {
        atomicAdd(&total[0], sum);
    }
}
"""
SCALAR_LOAD = "x[(group.x * PER + i) * T + lane]"
VECTOR_LOAD = "dot(x[(group.x * PER + i) * T + lane], vec4u(1u))"


def reductions(scale: int) -> Iterator[Timed]:
    for size in SIZES:
        n = shrink(size, scale, 8192)
        variants = {"atomic per thread": (256, 1, SUM + ATOMIC_PER_THREAD)}
        for name, steps in (("modulo", MODULO), ("interleaved", INTERLEAVED), ("sequential", SEQUENTIAL)):
            tree = TREE.replace("STEPS", steps)
            for per in (1, 8):
                text = SUM + tree.replace("LOADED", SCALAR_LOAD)
                variants[f"{name} tree, {per} per thread"] = 256, per, text
            text = SUM_VECTORS + tree.replace("LOADED", VECTOR_LOAD)
            variants[f"{name} tree, 2 vec4 per thread"] = 256, 2, text
        blocked = SERIAL_THEN_ATOMIC.replace("AT]", "id.x * PER + i]")
        strided = SERIAL_THEN_ATOMIC.replace("AT]", f"i * {n}u / PER + id.x]")
        variants["atomic of 32 neighbours"] = 256, 32, SUM + blocked
        variants["atomic of 32 strided"] = 256, 32, SUM + strided
        variants["subgroupAdd and atomic"] = 256, 1, "enable subgroups;\n" + SUM + SUBGROUPS
        for kernel, (threads, per, text) in variants.items():
            grid = (n // threads // per // (4 if "vec4" in kernel else 1), 1, 1)
            bindings = {"x": words(seeded("reduction", n), n), "total": counts(1)}
            yield Timed("reduction", kernel, str(n), text + constants(T=threads, PER=per), grid, bindings)


SCAN = buffers({"x": "u32"}, {"y": "u32"})
HILLIS_STEELE = """\
var<workgroup> sums: array<array<u32, BLOCK>, 2>;

@compute @workgroup_size(BLOCK)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    var source = 0u;
    sums[0][lane] = x[id.x];
    workgroupBarrier();
    for (var reach = 1u; reach < BLOCK; reach *= 2u) {
        var sum = sums[source][lane];
        if lane >= reach {
            sum += sums[source][lane - reach];
        }
        source = 1u - source;
        sums[source][lane] = sum;
        workgroupBarrier();
    }
    y[id.x] = sums[source][lane];
}
"""
HILLIS_STEELE_IN_PLACE = """\
var<workgroup> sums: array<u32, BLOCK>;

@compute @workgroup_size(BLOCK)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    sums[lane] = x[id.x];
    workgroupBarrier();
    for (var reach = 1u; reach < BLOCK; reach *= 2u) {
        var sum = sums[lane];
        if lane >= reach {
            sum += sums[lane - reach];
        }
        workgroupBarrier();
        sums[lane] = sum;
        workgroupBarrier();
    }
    y[id.x] = sums[lane];
}
"""
BLELLOCH = """\
var<workgroup> sums: array<u32, PLACES>;

fn place(i: u32) -> u32 {
    return PLACE;
}

@compute @workgroup_size(BLOCK / 2)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let first = group.x * BLOCK;
    sums[place(lane)] = x[first + lane];
    sums[place(lane + BLOCK / 2u)] = x[first + lane + BLOCK / 2u];
    var reach = 1u;
    for (var pairs = BLOCK / 2u; pairs > 0u; pairs /= 2u) {
        workgroupBarrier();
        if lane < pairs {
            let right = place((2u * lane + 2u) * reach - 1u);
            sums[right] += sums[place((2u * lane + 1u) * reach - 1u)];
        }
        reach *= 2u;
    }
    workgroupBarrier();
    if lane == 0u {
        sums[place(BLOCK - 1u)] = 0u;
    }
    for (var pairs = 1u; pairs < BLOCK; pairs *= 2u) {
        reach /= 2u;
        workgroupBarrier();
        if lane < pairs {
            let left = place((2u * lane + 1u) * reach - 1u);
            let right = place((2u * lane + 2u) * reach - 1u);
            let kept = sums[left];
            sums[left] = sums[right];
            sums[right] += kept;
        }
    }
    workgroupBarrier();
    y[first + lane] = sums[place(lane)] + x[first + lane];
    y[first + lane + BLOCK / 2u] = sums[place(lane + BLOCK / 2u)] + x[first + lane + BLOCK / 2u];
}
"""
SERIAL = """\
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u) {
    var sum = 0u;
    for (var i = id.x * BLOCK; i < (id.x + 1u) * BLOCK; i += 1u) {
        sum += x[i];
        y[i] = sum;
    }
}
"""
FOUR_PER_THREAD = """\
var<workgroup> sums: array<u32, BLOCK / 4>;

@compute @workgroup_size(BLOCK / 4)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let a = x[id.x * 4u];
    let b = a + x[id.x * 4u + 1u];
    let c = b + x[id.x * 4u + 2u];
    let d = c + x[id.x * 4u + 3u];
    sums[lane] = d;
    workgroupBarrier();
    for (var reach = 1u; reach < BLOCK / 4u; reach *= 2u) {
        var sum = sums[lane];
        if lane >= reach {
            sum += sums[lane - reach];
        }
        workgroupBarrier();
        sums[lane] = sum;
        workgroupBarrier();
    }
    let before = sums[lane] - d;
    y[id.x * 4u] = before + a;
    y[id.x * 4u + 1u] = before + b;
    y[id.x * 4u + 2u] = before + c;
    y[id.x * 4u + 3u] = before + d;
}
"""
BLOCKS = (256, 512)


def scans(scale: int) -> Iterator[Timed]:
    padded = BLELLOCH.replace("PLACES", "BLOCK + BLOCK / 32").replace("PLACE", "i + i / 32u")
    kernels = {
        "Hillis-Steele": (HILLIS_STEELE, 1),
        "Hillis-Steele in place": (HILLIS_STEELE_IN_PLACE, 1),
        "Blelloch": (BLELLOCH.replace("PLACES", "BLOCK").replace("PLACE", "i"), 1),
        "Blelloch padded": (padded, 1),
        "four per thread": (FOUR_PER_THREAD, 1),
        "thread per block": (SERIAL, 64),
    }
    for size in (SIZES[0], SIZES[2]):
        n = shrink(size, scale, 64 * BLOCKS[-1])
        for block in BLOCKS:
            for kernel, (text, blocks) in kernels.items():
                bindings = {"x": words(seeded("scan", n), n // block, block), "y": counts(n // block, block)}
                text = constants(BLOCK=block) + SCAN + text
                yield Timed("scan of blocks", kernel, f"{n} by {block}", text, (n // block // blocks, 1, 1), bindings)


COMPACTION = buffers({"x": "u32"}, {"count": "atomic<u32>", "kept": "u32"})
ATOMIC_SLOT = """\
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u) {
    let value = x[id.x];
    if value < LIMIT {
        kept[atomicAdd(&count[0], 1u)] = value;
    }
}
"""
WORKGROUP_SLOTS = """\
var<workgroup> found: atomic<u32>;
var<workgroup> first: u32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    if lane == 0u {
        atomicStore(&found, 0u);
    }
    workgroupBarrier();
    let value = x[id.x];
    var slot = 0u;
    if value < LIMIT {
        slot = atomicAdd(&found, 1u);
    }
    workgroupBarrier();
    if lane == 0u {
        first = atomicAdd(&count[0], atomicLoad(&found));
    }
    workgroupBarrier();
    if value < LIMIT {
        kept[first + slot] = value;
    }
}
"""
SCANNED_SLOTS = """\
var<workgroup> sums: array<u32, 256>;
var<workgroup> first: u32;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {
    let value = x[id.x];
    let keep = select(0u, 1u, value < LIMIT);
    sums[lane] = keep;
    workgroupBarrier();
    for (var reach = 1u; reach < 256u; reach *= 2u) {
        var sum = sums[lane];
        if lane >= reach {
            sum += sums[lane - reach];
        }
        workgroupBarrier();
        sums[lane] = sum;
        workgroupBarrier();
    }
    if lane == 255u {
        first = atomicAdd(&count[0], sums[lane]);
    }
    workgroupBarrier();
    if value < LIMIT {
        kept[first + sums[lane] - 1u] = value;
    }
}
"""


def compactions(scale: int) -> Iterator[Timed]:
    kernels = {
        "atomic per thread": ATOMIC_SLOT,
        "atomic per workgroup": WORKGROUP_SLOTS,
        "scan and atomic per workgroup": SCANNED_SLOTS,
    }
    for size in SIZES[:2]:
        n = shrink(size, scale, 4096)
        for percent in (5, 50, 95):
            for kernel, text in kernels.items():
                x = seeded("compaction", n).integers(0, 100, n, dtype=np.uint32)
                bindings = {"x": x, "count": counts(1), "kept": np.zeros_like(x)}
                text = constants(LIMIT=percent) + COMPACTION + text
                yield Timed("compaction", kernel, f"{n} {percent}%", text, (n // 256, 1, 1), bindings)

"""Document 003: products with f16, INT8, NF4 and Q8_0 weights, and six ideas for them, each beside its before."""

from __future__ import annotations

import numpy as np

import bankshot

from .bench import against_reference, case, only_output, run, run_case, same_bits, total
from .ledger import Decision, Verdict, claim, judge

FORMATS = ("fp16", "int8", "nf4", "q8_0")
BATCH = {"M": 64, "N": 64, "K": 256}
TOKEN = {"M": 1, "N": 64, "K": 2048}
BATCH_SHAPES = "M 64, N 64, K 256; figures scale with M * N * K"
TOKEN_SHAPES = "M 1, N 64, K 2048; figures scale with N * K"


def _words(sizes: list[tuple[int, ...]]) -> str:
    return " or ".join(" x ".join(map(str, size)) for size in sizes)


# ---- 1: as it is -------------------------------------------------------------------------------------


@claim("003.1a", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}")
def without_workgroup_memory() -> Decision:
    """Kernels for one token have 128 threads, those for many 8 x 8 and no workgroup memory."""
    many = [run(f"matmul_mat_{format_}", BATCH, probes="none") for format_ in FORMATS]
    one = [run(f"matmul_vec_{format_}", TOKEN, probes="none") for format_ in FORMATS]
    bytes_ = sum(done.counters["workgroup_memory_bytes"] for done in many)
    sizes = [sorted({done.pipeline.workgroup_size for done in runs}) for runs in (many, one)]
    return judge(
        bytes_ == 0 and sizes == [[(8, 8, 1)], [(128, 1, 1)]],
        "in {formats} formats the workgroups for many tokens are {many} with {bytes:g} bytes of workgroup memory, "
        "those for one {one} with {one_bytes:g}, for their sums",
        formats=len(FORMATS),
        many=_words(sizes[0]),
        one=_words(sizes[1]),
        bytes=bytes_,
        one_bytes=one[0].counters["workgroup_memory_bytes"],
    )


@claim("003.1b", shapes=BATCH_SHAPES)
def repeated_loads() -> Decision:
    """Kernels for many tokens load the same rows and columns several times from global memory."""
    times = {}
    for format_ in FORMATS:
        made = case(f"matmul_mat_{format_}", BATCH)
        done = run_case(made)
        times[format_] = [total(done, "global_bytes", "load", name) / made.arrays[name].nbytes for name in ("W", "X")]
    fp16 = run("matmul_mat_fp16", BATCH)
    sectors = [
        total(fp16, "global_sectors", "load", name) / total(fp16, "global_requests", "load", name)
        for name in ("W", "X")
    ]
    return judge(
        min(min(pair) for pair in times.values()) > 1,
        "each byte of W / of X is asked for {words} times; with f16 a request touches {w:g} / {x:g} sectors, of 8 "
        "rows of W and 4 tokens that neighbouring threads take",
        words=", ".join(f"{name} {w:.4g} / {x:.4g}" for name, (w, x) in times.items()),
        w=sectors[0],
        x=sectors[1],
        times=times,
    )


# ---- 2: the ideas ------------------------------------------------------------------------------------


def _pair(before: str, after: str, sizes: dict[str, int]):
    """Runs before and after, whose outputs are right."""
    runs = []
    for kernel in (before, after):
        made = case(kernel, sizes)
        runs.append(run_case(made))
        assert against_reference(made, only_output(runs[-1])).ok, kernel
    return runs


def _issued(done) -> int:
    """Operations that subgroups issue; loads of the sizes, which compilers keep in registers, left out."""
    return sum(site.executions for site in done.sites if site.name != "dims")


@claim("003.2a", shapes=BATCH_SHAPES)
def idea_1() -> Decision:
    """Idea 1: tiles in workgroup memory spare loads from global memory."""
    before, after = _pair("matmul_mat_fp16", "matmul_mat_fp16_tiled", BATCH)
    return judge(
        after.counters["global_sectors"] < before.counters["global_sectors"]
        and same_bits(only_output(before), only_output(after)),
        "{bytes_before:,} bytes asked for become {bytes_after:,}, {sectors_before:,} sectors {sectors_after:,}, for "
        "{wavefronts:,} wavefronts of workgroup memory ({ideal:,} without conflicts) and {barriers:g} barriers; the "
        "same bits",
        bytes_before=before.counters["global_bytes"],
        bytes_after=after.counters["global_bytes"],
        sectors_before=before.counters["global_sectors"],
        sectors_after=after.counters["global_sectors"],
        wavefronts=after.counters["shared_wavefronts"],
        ideal=after.counters["shared_ideal_wavefronts"],
        barriers=after.counters["barriers"],
    )


@claim("003.2b", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}")
def idea_2() -> Decision:
    """Idea 2: unpacking several weights at a time takes fewer instructions than one by one."""
    fewer, same = {}, True
    for format_ in ("int8", "nf4"):
        for shape, sizes in (("mat", BATCH), ("vec", TOKEN)):
            kernel = f"matmul_{shape}_{format_}"
            before, after = _pair(kernel, f"{kernel}_vector", sizes)
            same = same and same_bits(only_output(before), only_output(after))
            fewer[f"{shape} {format_}"] = [
                _issued(before) / _issued(after),
                before.counters["global_requests"] / after.counters["global_requests"],
            ]
    return judge(
        same and min(min(pair) for pair in fewer.values()) > 1,
        "times fewer operations issued / loads: {words}; the same bits",
        words=", ".join(f"{name} {issued:.1f} / {loads:.1f}" for name, (issued, loads) in fewer.items()),
        fewer=fewer,
    )


@claim("003.2c", shapes=f"{TOKEN_SHAPES}, in subgroups of 8 to 64")
def idea_3() -> Decision:
    """Idea 3: adding up within subgroups takes less than through workgroup memory."""
    before, after = _pair("matmul_vec_fp16", "matmul_vec_fp16_subgroup", TOKEN)
    groups = before.counters["workgroups"]
    made = case("matmul_vec_fp16_subgroup", TOKEN)
    devices = {"lavapipe": 8, "intel": 16, "nvidia": 32, "amd-cdna": 64}
    right = [against_reference(made, only_output(run_case(made, device=name, probes="none"))).ok for name in devices]
    names = ("barriers", "shared_wavefronts")
    figures = {
        f"{name}_{when}": done.counters[name] / groups
        for name in names
        for when, done in (("before", before), ("after", after))
    }
    return judge(
        all(figures[f"{name}_after"] < figures[f"{name}_before"] for name in names) and all(right),
        "{barriers_after:g} barrier a workgroup instead of {barriers_before:g}, {shared_wavefronts_after:g} wavefronts "
        "instead of {shared_wavefronts_before:g}; right in subgroups of {sizes}",
        sizes=", ".join(map(str, devices.values())),
        **figures,
    )


@claim("003.2d", shapes=BATCH_SHAPES)
def idea_4() -> Decision:
    """Idea 4: weights in a texture make better use of caches."""
    names = ("global_requests", "global_sectors", "global_bytes")
    equal = []
    for format_ in ("int8", "nf4"):
        buffer, texture = _pair(f"matmul_mat_{format_}_vector", f"matmul_mat_{format_}_texture", BATCH)
        equal.append([buffer.counters[name] == texture.counters[name] for name in names])
    return judge(
        None if all(map(all, equal)) else False,
        "requests, bytes and sectors are as many as from a buffer ({sectors:,} sectors of nf4), texels taken to lie "
        "row by row; how a GPU tiles them and what its texture cache holds is unknown",
        "hit rates of the texture cache, from a profiler of the device",
        sectors=texture.counters["global_sectors"],
    )


@claim("003.2e", shapes=BATCH_SHAPES)
def idea_5() -> Decision:
    """Idea 5: two slots of tiles, one filled while the other is used, halve the barriers of a step."""
    before, after = _pair("matmul_mat_fp16_tiled", "matmul_mat_fp16_double", BATCH)
    in_loop = max(site.barriers for site in after.sites if site.kind == "barrier")
    return judge(
        2 * in_loop == before.counters["barriers"]
        and before.counters["global_bytes"] == after.counters["global_bytes"]
        and same_bits(only_output(before), only_output(after)),
        "{in_loop:g} barriers in the loop instead of {before:g}, and {all:g} in all; {bytes_after:,} bytes of "
        "workgroup memory instead of {bytes_before:,}, for {global_bytes:,} bytes of global memory as before: what "
        "it hides is time",
        in_loop=in_loop,
        before=before.counters["barriers"],
        all=after.counters["barriers"],
        bytes_before=before.counters["workgroup_memory_bytes"],
        bytes_after=after.counters["workgroup_memory_bytes"],
        global_bytes=after.counters["global_bytes"],
    )


@claim("003.2f", shapes=TOKEN_SHAPES)
def idea_6() -> Decision:
    """Idea 6: a kernel for one token, four rows to a workgroup, shares what it reads of the token."""
    before, after = _pair("matmul_vec_fp16", "matmul_vec_fp16_single", TOKEN)
    x = [total(done, "global_bytes", "load", "X") for done in (before, after)]
    w = [total(done, "global_bytes", "load", "W") for done in (before, after)]
    return judge(
        4 * x[1] == x[0] and w[0] == w[1],
        "{x_after:,} bytes of the token instead of {x_before:,}, the weights ({w:,}) as before; {lanes_after:.0%} "
        "of the lanes issued are active instead of {lanes_before:.0%}, and {barriers_after:g} barriers are passed "
        "instead of {barriers_before:g}",
        x_before=x[0],
        x_after=x[1],
        w=w[1],
        lanes_before=before.counters["simt_efficiency"],
        lanes_after=after.counters["simt_efficiency"],
        barriers_before=before.counters["barriers"],
        barriers_after=after.counters["barriers"],
    )


# ---- 3: what is printed ------------------------------------------------------------------------------


def _is_wgsl(text: str) -> Decision:
    """Whether the front end takes it, and else what it says first, and of which words."""
    try:
        bankshot.check(text)
    except bankshot.WgslError as error:
        first = error.diagnostics[0]
        assert first.span is not None
        words = " ".join(first.span.text.split())
        said = {"line": first.span.line, "code": first.code, "words": words, "message": first.message}
        return judge(False, "the front end says at `{words}`, line {line}: {message} ({code})", **said)
    return judge(True, "the front end takes it")


# What each snippet does, in as few words as will do; the rest of it is pseudo-code by design.

TILES = """\
enable f16;
const T = 16u;
var<workgroup> a: array<vec4<f16>, T * T / 4>;
var<workgroup> b: array<vec4<f16>, T * T / 4>;
@compute @workgroup_size(T, T)
fn tiles(@builtin(local_invocation_id) at: vec3<u32>) {
    var sum = vec4<f32>();
    for (var k = 0u; k < T; k += 1u) {
        sum += a[at.y][k] * b[k][at.x];
    }
}
"""

NIBBLES = """\
fn high(packed: vec4<u32>) -> vec4<u32> {
    return (packed >> 4u) & vec4<u32>(0x0f0f0f0fu);
}
"""

ATOMIC = """\
enable subgroups;
@group(0) @binding(0) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(128)
fn reduce(@builtin(workgroup_id) group: vec3<u32>) {
    let sum = subgroupAdd(vec4<f32>(1.0));
    if subgroupElect() { atomicAdd(&y[group.x], sum); }
}
"""

TEXEL = """\
@group(0) @binding(0) var weights: texture_2d<u32>;
fn load(row: u32, column: u32) -> vec4<u32> {
    return textureLoad(weights, vec2<i32>(column / 4u, row), 0);
}
"""

POINTERS = """\
var<workgroup> first: array<f32, 256>;
var<workgroup> second: array<f32, 256>;
@compute @workgroup_size(64)
fn swap() {
    var current = &first;
    var next = &second;
    current = next;
}
"""

ROWS = """\
@group(0) @binding(0) var<storage, read> w: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> y: array<vec4<f32>>;
@compute @workgroup_size(64)
fn rows(@builtin(local_invocation_index) thread: u32) {
    var sums: array<vec4<f32>, 4>;
    for (var k = thread; k < arrayLength(&x); k += 64u) {
        for (var r = 0u; r < 4u; r += 1u) { sums[r] += w[r][k] * x[k]; }
    }
    y[thread] = sums[0] + sums[1] + sums[2] + sums[3];
}
"""


@claim("003.3a", shapes="a kernel of ten lines")
def snippet_1() -> Decision:
    """Idea 1's snippet, which indexes a flat array of vectors of f16 twice and adds products to a vector of f32, is
    WGSL."""
    return _is_wgsl(TILES)


@claim("003.3b", shapes="a function of one line")
def snippet_2() -> Decision:
    """Idea 2's snippet, which shifts a vector by a scalar, is WGSL."""
    return _is_wgsl(NIBBLES)


@claim("003.3c", shapes="a kernel of three lines")
def snippet_3() -> Decision:
    """Idea 3's snippet, which adds a vector of floats atomically, is WGSL."""
    return _is_wgsl(ATOMIC)


@claim("003.3d", shapes="a function of one line")
def snippet_4() -> Decision:
    """Idea 4's snippet, which makes signed coordinates of unsigned ones, is WGSL."""
    return _is_wgsl(TEXEL)


@claim("003.3e", shapes="a kernel of three lines")
def snippet_5() -> Decision:
    """Idea 5's snippet, which swaps pointers that it holds in variables, is WGSL."""
    return _is_wgsl(POINTERS)


@claim("003.3f", shapes="a kernel of eight lines, run on 64 vectors")
def snippet_6() -> Decision:
    """Idea 6's snippet, which indexes a flat array of vectors by row and then by k, is WGSL and multiplies a matrix."""
    accepted = _is_wgsl(ROWS)
    matrix = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    bindings = {"w": matrix.reshape(64, 4), "x": np.ones((64, 4), np.float32), "y": np.zeros((64, 4), np.float32)}
    done = bankshot.simulate(ROWS, grid=1, bindings=bindings, probes="bounds")
    right = np.asarray(done.outputs["y"])[:, 0] == matrix.sum(axis=0)
    return judge(
        accepted.verdict is Verdict.CONFIRMED and right.all(),
        "{accepted}, but `w[r][k]` is component k of vector r, and a vector has no more than 4: of 64 columns "
        "{right} get the sum of a matrix of 4 rows; the run reports {outside} reads past the fourth component",
        accepted=accepted.finding,
        right=int(right.sum()),
        outside=sum(finding.count for finding in done.findings),
    )


# ---- 4: the estimates --------------------------------------------------------------------------------


COSTS = {
    "operations issued": _issued,
    "sectors": lambda done: done.counters["global_sectors"],
    # What moves 128 bytes to or from lanes: a wavefront of workgroup memory, or four sectors.
    "passes of 128 bytes": lambda done: done.counters["global_sectors"] / 4 + done.counters["shared_wavefronts"],
    "barriers": lambda done: done.counters["barriers"],
}


def _estimate(gain: float, *pairs: tuple[str, str, dict[str, int]]) -> Decision:
    """What counts say to a gain in time of at least `gain`. They support it where none rises and one falls by as much
    (not that of barriers, whose price is not counted), contradict it where none falls and one rises, and else do not
    decide."""
    times: dict[str, list[float]] = {name: [] for name in COSTS}
    for before, after, sizes in pairs:
        runs = _pair(before, after, sizes)
        for name, cost in COSTS.items():
            less, more = cost(runs[1]), cost(runs[0])
            times[name].append(more / less if less else 1.0)
    ratios = [ratio for each in times.values() for ratio in each]
    best = [max(each) for each in zip(*(times[name] for name in COSTS if name != "barriers"), strict=True)]
    supports = min(ratios) >= 1 and min(best) >= 1 + gain
    contradicts = max(ratios) <= 1 and min(ratios) < 1
    return judge(
        True if supports else False if contradicts else None,
        "costs before per after, above 1 a gain: {words}",
        "a timer on the device",
        words="; ".join(f"{name} {', '.join(f'{ratio:.2f}' for ratio in each)}" for name, each in times.items()),
        times=times,
    )


@claim("003.4a", shapes=BATCH_SHAPES)
def tiles_for_a_batch() -> Decision:
    """Counts support that tiles gain 50 to 100% for a batch."""
    return _estimate(0.5, ("matmul_mat_fp16", "matmul_mat_fp16_tiled", BATCH))


@claim("003.4b", shapes=TOKEN_SHAPES)
def tiles_for_a_token() -> Decision:
    """Counts support that tiles gain 5% for one token."""
    return _estimate(0.05, ("matmul_mat_fp16", "matmul_mat_fp16_tiled", TOKEN))


@claim("003.4c", shapes=f"{BATCH_SHAPES}; INT8 and NF4")
def unpacking_for_a_batch() -> Decision:
    """Counts support that unpacking several weights at a time gains 10 to 20% for a batch."""
    kernels = ("matmul_mat_int8", "matmul_mat_nf4")
    return _estimate(0.1, *((kernel, f"{kernel}_vector", BATCH) for kernel in kernels))


@claim("003.4d", shapes=f"{TOKEN_SHAPES}; INT8 and NF4")
def unpacking_for_a_token() -> Decision:
    """Counts support that unpacking several weights at a time gains 10 to 20% for one token."""
    kernels = ("matmul_vec_int8", "matmul_vec_nf4")
    return _estimate(0.1, *((kernel, f"{kernel}_vector", TOKEN) for kernel in kernels))


@claim("003.4e", shapes=TOKEN_SHAPES)
def subgroups_for_a_token() -> Decision:
    """Counts support that sums within subgroups gain 10 to 15% for one token."""
    return _estimate(0.1, ("matmul_vec_fp16", "matmul_vec_fp16_subgroup", TOKEN))


@claim("003.4f", shapes=BATCH_SHAPES)
def subgroups_for_a_batch() -> Decision:
    """Counts support that sums within subgroups gain 5% for a batch."""
    counters = run("matmul_mat_fp16", BATCH).counters
    return judge(
        counters["barriers"] + counters["shared_requests"] > 0,
        "the kernels for many tokens pass {barriers:g} barriers and make {requests:g} accesses to workgroup memory: "
        "each thread has an output of its own, and there is no sum across threads to speed up",
        barriers=counters["barriers"],
        requests=counters["shared_requests"],
    )


@claim("003.4g", shapes=f"{BATCH_SHAPES}, and {TOKEN_SHAPES}; INT8 and NF4")
def textures() -> Decision:
    """Counts support that weights in textures gain 5 to 20%."""
    shapes = {"mat": BATCH, "vec": TOKEN}
    kernels = [(f"matmul_{shape}_{format_}", shapes[shape]) for shape in shapes for format_ in ("int8", "nf4")]
    return _estimate(0.05, *((f"{kernel}_vector", f"{kernel}_texture", sizes) for kernel, sizes in kernels))


@claim("003.4h", shapes=BATCH_SHAPES)
def two_slots() -> Decision:
    """Counts support that two slots of tiles gain 10 to 15% for a batch."""
    return _estimate(0.1, ("matmul_mat_fp16_tiled", "matmul_mat_fp16_double", BATCH))


@claim("003.4i", shapes=TOKEN_SHAPES)
def one_token() -> Decision:
    """Counts support that a kernel for one token gains 20 to 30%."""
    return _estimate(0.2, ("matmul_vec_fp16", "matmul_vec_fp16_single", TOKEN))

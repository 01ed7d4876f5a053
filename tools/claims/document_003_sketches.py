"""Document 003: the sketches of its six ideas, and a kernel for each.

A sketch leaves out what its reader can fill in, so it is judged by whether its idea becomes a kernel that is right, and
whether the words that are printed can stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bankshot

from .bench import against_reference, case, only_output, run_case
from .document_003 import BATCH, TOKEN
from .ledger import Decision, claim, judge

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


def _refusal(text: str) -> str:
    """What the front end says first, and of which words; nothing where it takes the text."""
    try:
        bankshot.check(text)
    except bankshot.WgslError as error:
        first = error.diagnostics[0]
        assert first.span is not None
        return f"`{' '.join(first.span.text.split())}`: {first.message} ({first.code})"
    return ""


def _sketch(text: str, kernels: Sequence[str], change: str) -> Decision:
    """Whether the idea becomes kernels that are right, and whether what is printed can stay. `change`: what the kernels
    have instead."""
    wrong = []
    for kernel in kernels:
        made = case(kernel, BATCH if "_mat_" in kernel else TOKEN)
        if not against_reference(made, only_output(run_case(made, probes="none"))).ok:
            wrong.append(kernel)
    refusal = _refusal(text)
    return judge(
        not wrong and not refusal,
        "of the kernels made of it ({names}) {right} right; as printed, {refusal}; the kernels have {change}",
        partly=not wrong,
        right="none is" if len(wrong) == len(kernels) else "all are" if not wrong else "some are",
        names=", ".join(kernels),
        refusal=f"the front end refuses {refusal}" if refusal else "the front end takes it",
        change=change,
    )


@claim("003.3a", shapes="ten lines of the sketch; kernels at M 64, N 64, K 256")
def sketch_1() -> Decision:
    """Idea 1 can be written as it is sketched: flat tiles of f16 vectors, indexed by row and column, summed in f32."""
    kernels = ["matmul_mat_fp16_sketch", "matmul_mat_fp16_tiled"]
    return _sketch(TILES, kernels, "one index, and convert to f32 before they add up")


@claim("003.3b", shapes="one line of the sketch; kernels at M 64 and N 64, K 256, and M 1, N 64, K 2048")
def sketch_2() -> Decision:
    """Idea 2 can be written as it is sketched: nibbles of four words at once, by a mask and a shift by 4."""
    kernels = [f"matmul_{shape}_{format_}_vector" for format_ in ("int8", "nf4") for shape in ("mat", "vec")]
    return _sketch(NIBBLES, kernels, "a vector of shifts")


@claim("003.3c", shapes="three lines of the sketch; kernels at M 1, N 64, K 2048")
def sketch_3() -> Decision:
    """Idea 3 can be written as it is sketched: each subgroup adds its sum to the output atomically."""
    return _sketch(
        ATOMIC,
        ["matmul_vec_fp16_atomic", "matmul_vec_fp16_subgroup"],
        "a compare and exchange of the bits of a float, or a word of workgroup memory for each subgroup and one "
        "barrier",
    )


@claim("003.3d", shapes="one line of the sketch; kernels at M 64, N 64, K 256, and M 1, N 64, K 2048")
def sketch_4() -> Decision:
    """Idea 4 can be written as it is sketched: weights loaded from a texture of u32."""
    kernels = [f"matmul_{shape}_{format_}_texture" for format_ in ("int8", "nf4") for shape in ("mat", "vec")]
    return _sketch(TEXEL, kernels, "unsigned coordinates, and no sampler")


@claim("003.3e", shapes="three lines of the sketch; kernels at M 64, N 64, K 256")
def sketch_5() -> Decision:
    """Idea 5 can be written as it is sketched: two buffers, whose pointers are swapped after each step."""
    return _sketch(POINTERS, ["matmul_mat_fp16_double"], "one array with a slot for each buffer, and an index")


@claim("003.3f", shapes="eight lines of the sketch, on 64 vectors; kernels at M 1, N 64, K 2048")
def sketch_6() -> Decision:
    """Idea 6 can be written as it is sketched: a matrix indexed by row and k, four sums, one reduction."""
    matrix = np.arange(4 * 64, dtype=np.float32).reshape(4, 64)
    bindings = {"w": matrix.reshape(64, 4), "x": np.ones((64, 4), np.float32), "y": np.zeros((64, 4), np.float32)}
    done = bankshot.simulate(ROWS, grid=1, bindings=bindings, probes="bounds")
    right = int((np.asarray(done.outputs["y"])[:, 0] == matrix.sum(axis=0)).sum())
    made = case("matmul_vec_fp16_single", TOKEN)
    kernel = against_reference(made, only_output(run_case(made, probes="none"))).ok
    return judge(
        kernel and right == 64,
        "the kernel made of it (matmul_vec_fp16_single) is {kernel}; as printed, the front end takes it, but in a "
        "flat array of vectors `w[r][k]` is component k of vector r, and a vector has no more than 4: of 64 columns "
        "{right} get the sum of a matrix of 4 rows, and the run reports {outside} reads past the fourth component; "
        "the kernel has one index",
        partly=kernel,
        kernel="right" if kernel else "wrong",
        right=right,
        outside=sum(finding.count for finding in done.findings),
    )

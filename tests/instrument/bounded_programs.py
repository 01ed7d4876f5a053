"""Programs whose outputs have error bounds, for the tests of these bounds."""

import numpy as np
from hypothesis import settings

import bankshot

DTYPES = {"f32": np.float32, "f16": np.float16}
f32 = np.float32
SLOW = settings(max_examples=30, deadline=None, derandomize=True)

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<{kind}>;
@group(0) @binding(1) var<storage, read> z: array<{kind}>;
@group(0) @binding(2) var<storage, read_write> y: array<{kind}>;
"""
ENTRY = """
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_index) lane: u32) {{
    let i = id.x;
    let a = x[i];
    let b = z[i];
    {body}
}}
"""

NEAR = np.linspace(1, 2, 64).astype(f32)
NEAR[5] = 1.5  # times 1.1 it is rounded, and compared with what it is rounded to
LIMIT = f"{float(f32(1.5) * f32(1.1))!r}f"


def run(body, a, b=None, *, kind="f32", before="", device="nvidia", out=None):
    """`body` with `i`, `lane`, `a`, `b`, on as many invocations as there are elements; a multiple of 64."""
    a = np.asarray(a, DTYPES[kind])
    b = a if b is None else np.asarray(b, DTYPES[kind])
    source = "enable f16;\n" * (kind == "f16") + HEAD.format(kind=kind) + before + ENTRY.format(body=body)
    bindings = {"x": a, "z": b, "y": np.zeros(out or len(a), a.dtype)}
    return bankshot.simulate(source, grid=len(a) // 64, bindings=bindings, probes="none", device=device)


def unbounded(done):
    return np.flatnonzero(np.isinf(done.bounds["y"])).tolist()


def assert_holds(done, other, note=""):
    """`other` is in the bounds of a run wherever there are any."""
    ours, bound = done.outputs["y"].astype(float), done.bounds["y"]
    beyond = np.isfinite(bound) & ~(np.abs(other - ours) <= bound)
    assert not beyond.any(), (note, np.flatnonzero(beyond)[:3], ours[beyond][:3], other[beyond][:3], bound[beyond][:3])

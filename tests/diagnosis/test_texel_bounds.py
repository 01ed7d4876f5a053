"""Error bounds of storage textures: what lies within them passes, and nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle.diagnosis.texel_bounds import texel_bounds
from bankshot.oracle.judge.diff import Options, diff
from bankshot.oracle.manifests.manifest_loader import load

TEXT = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var to: texture_storage_2d<FORMAT, write>;
@compute @workgroup_size(8, 4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let a = x[id.x + 8 * id.y];
    textureStore(to, id.xy, vec4f(sin(a), exp(a), a * 3.3 * 5.1, 0.5));
}
"""
X = np.random.default_rng(3).uniform(0.0, 1.0, 32).astype(np.float32)
DTYPES = {"rgba16float": np.float16, "rgba32float": np.float32, "rgba8unorm": np.uint8}
MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [1]
[bind.x]
dtype = "f32"
shape = [32]
init = "normal"
[bind.to]
dtype = "{dtype}"
shape = [4, 8, 4]
init = "zeros"
"""


@pytest.mark.parametrize("format_", DTYPES)
def test_bounds_hold_the_error_of_the_stored_values(format_: str) -> None:
    text, dtype = TEXT.replace("FORMAT", format_), DTYPES[format_]
    given = {"x": X, "to": np.zeros((4, 8, 4), dtype)}
    run = bankshot.simulate(text, grid=1, bindings=given, device="lavapipe", probes="none")

    def rerun(changed: str, extra: dict[str, np.ndarray]) -> bankshot.Run:
        return bankshot.simulate(changed, grid=1, bindings={**given, **extra}, device="lavapipe", probes="none")

    (variable,) = (v for v in run.pipeline.globals if v.name == "to")
    bound = texel_bounds(run.pipeline, variable, run.outputs["to"], rerun)
    assert bound is not None
    a = X.astype(np.float64).reshape(4, 8)
    scale = 255 if dtype == np.uint8 else 1
    exact = np.stack([np.sin(a), np.exp(a), a * 3.3 * 5.1, np.full_like(a, 0.5)], axis=-1)
    exact = np.round(np.clip(exact, 0, 1) * scale) if dtype == np.uint8 else exact
    error = np.abs(run.outputs["to"].astype(np.float64) - exact)
    assert (error <= bound).all()
    coarsest = {np.float32: 1e-2, np.float16: 4e-2, np.uint8: 3}[dtype]
    assert bound.max() < coarsest
    assert bound[..., 3].max() <= {np.float32: 0, np.float16: 2.0**-10, np.uint8: 1}[dtype]


@pytest.mark.parametrize(("format_", "dtype"), [("rgba16float", "f16"), ("rgba32float", "f32"), ("rgba8unorm", "u8")])
def test_a_texture_is_compared_with_wgpu_by_its_bounds(tmp_path: Path, format_: str, dtype: str) -> None:
    (tmp_path / "k.wgsl").write_text(TEXT.replace("FORMAT", format_))
    (tmp_path / "k.toml").write_text(MANIFEST.format(dtype=dtype))
    kernel = load(tmp_path / "k.toml")
    done = diff(kernel.case(kernel.shapes[0]), "llvmpipe", Options())
    (check,) = done.outputs
    assert done.ok
    assert not check.comparison.vacuous

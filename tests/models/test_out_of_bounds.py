"""What adapters do past the end of arrays: the policies in the profiles are those of the adapters of this machine."""

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import NoAdapter

TEXT = """
struct Uniforms { a: array<vec4u, 4>, b: vec4u }
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> u: Uniforms;
@group(0) @binding(3) var<storage, read_write> stored: array<u32>;
@group(0) @binding(4) var<storage, read_write> fixed: array<u32, 8>;
var<workgroup> shared_: array<u32, 8>;
var<private> own: array<u32, 8>;
@compute @workgroup_size(1)
fn main() {
    let n = x[0];
    var local: array<u32, 8>;
    var v = vec4u(1, 2, 3, 4);
    for (var i = 0u; i < 8; i++) { shared_[i] = 100 + i; own[i] = 200 + i; local[i] = 300 + i; }
    y[0] = x[n]; y[1] = fixed[n]; y[2] = u.a[n].x; y[3] = shared_[n]; y[4] = own[n]; y[5] = local[n]; y[6] = v[n];
    stored[n] = 77u; fixed[n] = 78u; shared_[n] = 79u; own[n] = 80u; local[n] = 81u; v[n] = 82u;
    for (var i = 0u; i < 8; i++) { y[8 + i] = shared_[i]; y[16 + i] = own[i]; y[24 + i] = local[i]; }
    for (var i = 0u; i < 4; i++) { y[32 + i] = v[i]; }
}
"""


@pytest.mark.parametrize("index", [8, 13, 1_000_000])
@pytest.mark.parametrize(("adapter", "device"), [("llvmpipe", "lavapipe"), ("swiftshader", "swiftshader")])
def test_the_policy_of_a_profile_is_that_of_its_adapter(adapter: str, device: str, index: int) -> None:
    try:
        wgpu_client.require_adapter(adapter)
    except NoAdapter:
        pytest.skip(f"no {adapter}")
    x = np.array([index, 2, 3, 4, 5, 6, 7, 55], np.uint32)
    given = {
        "x": x,
        "y": np.full(64, 999, np.uint32),
        "u": np.arange(400, 420, dtype=np.uint32),
        "stored": np.zeros(8, np.uint32),
        "fixed": np.arange(500, 508, dtype=np.uint32),
    }
    theirs = wgpu_client.run(TEXT, None, (1, 1, 1), given, adapter=adapter).outputs
    ours = bankshot.simulate(TEXT, grid=1, bindings=given, device=device, probes="none").outputs
    for name in ("y", "stored", "fixed"):
        assert ours[name].tolist() == theirs[name].tolist()


def test_an_option_overrides_the_policy_of_the_device() -> None:
    text = "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n"
    text += "@compute @workgroup_size(1) fn main() { y[0] = y[arrayLength(&y) + y[1]]; }"
    given = {"y": np.array([1, 0, 3, 4], np.uint32)}
    found = {
        policy: int(
            bankshot.simulate(text, grid=1, bindings=given, device="lavapipe", out_of_bounds=policy).outputs["y"][0]
        )
        for policy in (None, "clamp", "zero", "wrap")
    }
    assert found == {None: 0, "clamp": 4, "zero": 0, "wrap": 1}

"""What a shader reads of a texture in an array of each dtype."""

import numpy as np
import pytest

import bankshot

# Type of the channels in the shader, dtype of the array -> a stored number, and what the shader reads.
STORED = {
    ("f32", "f4"): (0.25, 0.25),
    ("f32", "f2"): (0.25, 0.25),
    ("f32", "u1"): (51, 0.2),
    ("f32", "i1"): (-127, -1.0),
    ("f32", "u2"): (13107, 0.2),
    ("f32", "i2"): (-32767, -1.0),
    ("i32", "i4"): (-70000, -70000),
    ("i32", "i2"): (-300, -300),
    ("i32", "i1"): (-128, -128),
    ("u32", "u4"): (4000000000, 4000000000),
    ("u32", "u2"): (65535, 65535),
    ("u32", "u1"): (255, 255),
}


@pytest.mark.parametrize("dtype", ["f4", "f2", "u1", "i1", "u2", "i2", "i4", "u4", "f8", "i8"])
@pytest.mark.parametrize("kind", ["f32", "i32", "u32"])
def test_what_a_shader_reads_of_each_dtype(kind, dtype):
    source = f"""
        @group(0) @binding(0) var image: texture_2d<{kind}>;
        @group(0) @binding(1) var<storage, read_write> y: array<{kind}, 4>;
        @compute @workgroup_size(1) fn main() {{
            let texel = textureLoad(image, vec2u(1, 0), 0);
            y[0] = texel.x; y[1] = texel.y; y[2] = texel.z; y[3] = texel.w;
        }}"""
    stored, read = STORED.get((kind, dtype), (1, None))
    bindings = {
        "image": np.array([[0, stored]], dtype),
        "y": np.zeros(4, {"f32": "f4", "i32": "i4", "u32": "u4"}[kind]),
    }
    if read is None:
        with pytest.raises(bankshot.WgslError, match="image"):
            bankshot.simulate(source, grid=1, bindings=bindings)
        return
    done = bankshot.simulate(source, grid=1, bindings=bindings)
    assert done.outputs["y"].tolist() == pytest.approx([read, 0, 0, 1])

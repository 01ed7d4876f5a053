"""The least size of a buffer and the axes of a texture, by type: what fits, what does not, and the words for it.

Spec: WGSL, "Memory Layout"; WebGPU, "GPUTextureDimension" and "GPUTextureViewDimension".
"""

import numpy as np
import pytest

import bankshot

TAIL = "@compute @workgroup_size(1) fn main() {"


def simulated(type_, value, declaration="var", use="_ = x;"):
    head = "enable f16; struct Tail { n: u32, rest: array<vec3f> } struct Pair { a: vec3f, b: u32, c: vec2f }"
    text = f"{head} @group(0) @binding(0) {declaration} x: {type_}; {TAIL} {use} }}"
    return bankshot.simulate(text, grid=1, bindings={"x": value}, probes="none")


# By type: bytes that it needs at least, and the words that say so.
LEAST = {
    "f32": (4, "needs 4"),
    "vec2<u32>": (8, "needs 8"),
    "vec3<f32>": (12, "needs 12"),
    "vec4<f16>": (8, "needs 8"),
    "mat2x3<f32>": (32, "needs 32"),
    "array<u32, 3>": (12, "needs 12"),
    "array<vec3<f32>, 2>": (32, "needs 32"),
    "array<f32>": (4, "needs at least 4"),
    "array<vec3<u32>>": (16, "needs at least 16"),
    "array<vec4<f32>>": (16, "needs at least 16"),
    "Pair": (32, "needs 32"),
    "Tail": (32, "needs at least 32"),
}
# Types whose elements are vec3: two of them tightly packed are a size too small.
PADDED = {"vec3<f32>": "f32", "array<vec3<f32>, 2>": "f32", "array<vec3<u32>>": "u32"}


@pytest.mark.parametrize("type_", LEAST)
def test_a_buffer_holds_its_type(type_):
    least, words = LEAST[type_]
    declaration, use = "var<storage, read_write>", "_ = &x;"
    assert len(simulated(type_, bytes(least), declaration, use).outputs["x"]) == least
    with pytest.raises(bankshot.WgslError) as caught:
        simulated(type_, bytes(least - 4), declaration, use)
    message = str(caught.value)
    assert f"x has {least - 4} bytes, and {type_} {words}\n" in message
    assert (f"a vec3<{PADDED.get(type_)}> takes the space of a vec4" in message) == (type_ in PADDED)


@pytest.mark.parametrize(("size", "fits"), [(8, True), (9, False), (10, False), (11, False), (12, True)])
def test_a_buffer_has_whole_words(size, fits):
    if fits:
        assert len(simulated("array<f16>", bytes(size), "var<storage, read_write>", "_ = &x;").outputs["x"]) == size
        return
    with pytest.raises(bankshot.WgslError, match=f"x has {size} bytes, which is not a multiple of 4"):
        simulated("array<f16>", bytes(size), "var<storage, read_write>", "_ = &x;")


# By type: a shape that fits without an axis of channels, and the names of its axes.
AXES = {
    "texture_1d<f32>": ((8,), "[width]"),
    "texture_2d<f32>": ((4, 8), "[height, width]"),
    "texture_2d_array<f32>": ((3, 4, 8), "[layers, height, width]"),
    "texture_3d<f32>": ((2, 4, 8), "[depth, height, width]"),
    "texture_cube<f32>": ((6, 4, 4), "[faces, height, width]"),
    "texture_cube_array<f32>": ((12, 4, 4), "[faces, height, width]"),
    "texture_multisampled_2d<f32>": ((4, 4, 8), "[samples, height, width]"),
    "texture_depth_2d": ((4, 8), "[height, width]"),
    "texture_depth_2d_array": ((3, 4, 8), "[layers, height, width]"),
    "texture_depth_cube": ((6, 4, 4), "[faces, height, width]"),
    "texture_depth_cube_array": ((6, 4, 4), "[faces, height, width]"),
    "texture_depth_multisampled_2d": ((4, 4, 8), "[samples, height, width]"),
    "texture_storage_1d<r32float, write>": ((8,), "[width]"),
    "texture_storage_2d<r32float, write>": ((4, 8), "[height, width]"),
    "texture_storage_2d_array<r32float, write>": ((3, 4, 8), "[layers, height, width]"),
    "texture_storage_3d<r32float, write>": ((2, 4, 8), "[depth, height, width]"),
}


@pytest.mark.parametrize("type_", AXES)
@pytest.mark.parametrize("more", [(), (1,)], ids=["no channels", "one channel"])
def test_a_texture_has_the_axes_of_its_type(type_, more):
    shape, names = AXES[type_]
    simulated(type_, np.zeros((*shape, *more), np.float32))
    for wrong in (shape[1:], (*shape, 1, 1), (0, *shape[1:])):
        with pytest.raises(bankshot.WgslError) as caught:
            simulated(type_, np.zeros(wrong, np.float32))
        assert f"x has shape {list(wrong)}, and {type_} needs {names} and channels\n" in str(caught.value)


@pytest.mark.parametrize(("type_", "shape", "fits"), [
    ("texture_cube<f32>", (6, 4, 4), True),
    ("texture_cube<f32>", (12, 4, 4), False),
    ("texture_cube<f32>", (5, 4, 4), False),
    ("texture_cube<f32>", (6, 4, 8), False),
    ("texture_cube_array<f32>", (18, 4, 4), True),
    ("texture_cube_array<f32>", (15, 4, 4), False),
    ("texture_cube_array<f32>", (12, 8, 4), False),
    ("texture_depth_cube_array", (9, 4, 4), False),
])  # fmt: skip
def test_a_cube_has_six_square_faces(type_, shape, fits):
    if fits:
        simulated(type_, np.zeros(shape, np.float32))
        return
    with pytest.raises(bankshot.WgslError) as caught:
        simulated(type_, np.zeros(shape, np.float32))
    assert f"x has shape {list(shape)}, and {type_} needs six square faces for each cube\n" in str(caught.value)


# By type and largest level: how many levels a texture may have. Spec: WebGPU, "maximum mipLevel count".
MOST_LEVELS = [
    ("texture_1d<f32>", (8,), 1),
    ("texture_2d<f32>", (8, 2), 4),
    ("texture_2d<f32>", (7, 1), 3),
    ("texture_2d_array<f32>", (16, 2, 1), 2),  # layers do not count
    ("texture_3d<f32>", (8, 2, 1), 4),
    ("texture_cube<f32>", (6, 4, 4), 3),
    ("texture_multisampled_2d<f32>", (4, 8, 8), 1),
    ("texture_storage_2d<r32float, write>", (8, 8), 1),
]


@pytest.mark.parametrize(("type_", "shape", "most"), MOST_LEVELS)
def test_a_texture_has_as_many_levels_as_halves(type_, shape, most):
    fixed = len(shape) - (1 if "1d" in type_ else 3 if "3d" in type_ else 2)  # layers, faces or samples come first

    def levels(count):
        sizes = [(*shape[:fixed], *(max(1, n // 2**level) for n in shape[fixed:])) for level in range(count)]
        return [np.zeros(size, np.float32) for size in sizes]

    simulated(type_, levels(most))
    with pytest.raises(bankshot.WgslError, match=f"x has {most + 1} levels, and .* at most {most}"):
        simulated(type_, levels(most + 1))

"""Texture kernels on a real WebGPU implementation and in the simulator: loads and stores are equal bit for
bit, samples within the precision that Vulkan requires of filters."""

import itertools
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.oracle import wgpu_client
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.diff import Options, diff
from bankshot.oracle.manifests import cases
from bankshot.oracle.wgpu_client import FALLBACK
from bankshot.sim.bindings.texture_arrays import stored_dtype
from bankshot.sim.wgsl.enumerants import TEXEL_FORMATS
from bankshot.sim.wgsl.texel_formats import format_of

KERNELS = sorted((Path(__file__).parent.parent / "files" / "textures").glob("*.toml"))
POINTS = 512
# Weights keep subTexelPrecisionBits and mipmapPrecisionBits bits, 8 with lavapipe and at least 4 anywhere.
WEIGHT = 2.0**-8
NEAREST_NORMALIZED = ("lavapipe",)  # profiles that store the nearest number, not one of the two nearest
WORDS = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_kernels_agree_as_their_manifests_say(path, any_adapter):
    for case in cases.plans([path], cases.Request())[0].cases():
        checked = diff(case, any_adapter.name, Options(worst=3))
        assert checked.outputs
        for output in checked.outputs:
            assert output.ok, (any_adapter, output)


@pytest.fixture
def textured(adapter):
    """The default adapter, unless it is known to deviate."""
    if adapter.profile == "swiftshader":
        pytest.skip(
            "SwiftShader wraps integers that a texel cannot hold and has seams in cubes; install another adapter"
        )
    return adapter


def both(source, bindings, grid, adapter):
    """The outputs of the simulator, rounding as the adapter does, and of the adapter."""
    run = bankshot.simulate(source, grid=grid, bindings=bindings, device=adapter.profile or FALLBACK, probes="none")
    bare = source.replace("requires texture_formats_tier1;", "")
    return run.outputs, wgpu_client.run(
        bare, None, grid, bindings, slots=wgpu_client.read_slots(source, None), adapter=adapter.name
    ).outputs


def some(kind, rng):
    if kind == "f32":
        return np.concatenate([(np.arange(64) + 0.5) / 255, rng.uniform(-1.5, 1.5, 192)]).astype(np.float32)
    return (rng.integers(-300 if kind == "i32" else 0, 70000, 256) // (1, 200)[rng.integers(2)]).astype(WORDS[kind])


@pytest.mark.parametrize("name", TEXEL_FORMATS)
def test_every_format_is_stored_equally(name, textured):
    kind, format_ = str(TEXEL_FORMATS[name]), format_of(name)
    source = f"""
    requires texture_formats_tier1;
    @group(0) @binding(0) var<storage, read> x: array<vec4<{kind}>>;
    @group(0) @binding(1) var t: texture_storage_2d<{name}, write>;
    @compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) i: vec3u) {{
        textureStore(t, i.xy, x[i.y * 8 + i.x]);
    }}"""
    values = some(kind, np.random.default_rng(1)).reshape(64, 4)
    channels = () if format_.packed else (len(format_.channels),)
    given = {"x": values, "t": np.zeros((8, 8, *channels), stored_dtype(format_))}
    try:
        ours, theirs = both(source, given, (1, 1, 1), textured)
    except wgpu_client.GpuError as error:
        pytest.skip(f"{textured.name} cannot store to {name}: {error}")
    # Vulkan, "Conversion From Floating-Point to Normalized Fixed-Point": one of the two nearest.
    step = 1 if format_.number.endswith("norm") and textured.profile not in NEAREST_NORMALIZED else 0
    apart = np.abs(channels_of(ours["t"], format_) - channels_of(theirs["t"], format_))
    assert apart.max() <= step


def channels_of(texels, format_):
    """Return the channels of texels as integers, unpacked from their words, so that a step is a difference of 1."""
    if not format_.packed:
        return texels.astype(np.float64)
    starts = np.cumsum((0, *format_.bits[:-1]))
    parts = [texels >> start & ((1 << bits) - 1) for start, bits in zip(starts, format_.bits, strict=True)]
    return np.stack(parts).astype(np.int64)


def texture(shape, dtype, levels=1, layers=False):
    """Make a chain of random mip levels; `shape` ends with the channels."""
    rng = np.random.default_rng(7)
    halved = range(1 if layers else 0, len(shape) - 1)
    shapes = [[max(1, n >> k) if a in halved else n for a, n in enumerate(shape)] for k in range(levels)]
    if np.dtype(dtype).kind == "f":
        return [rng.random(each).astype(dtype) for each in shapes]
    return [rng.integers(0, np.iinfo(dtype).max, each).astype(dtype) for each in shapes]


# Type, texels, and what to load around the texture and in it: `p` is i32, from -2 on.
LOADS = {
    "1d": ("texture_1d<f32>", texture((7, 4), "f4"), "p.x, 0"),
    "2d": ("texture_2d<f32>", texture((5, 6, 4), "f4"), "p.xy, 0"),
    "one channel": ("texture_2d<u32>", texture((5, 6, 1), "u4"), "p.xy, 0"),
    "layers": ("texture_2d_array<i32>", texture((3, 5, 6, 2), "i2"), "p.xy, p.z, 0"),
    "3d": ("texture_3d<f32>", texture((3, 5, 6, 2), "f2"), "p, 0"),
    "depth": ("texture_depth_2d", texture((5, 6, 1), "u2"), "p.xy, 0"),
    "levels": ("texture_2d<f32>", texture((4, 8, 4), "f4", levels=3), "p.xy, p.z"),
    "read": ("texture_storage_2d<rgba16float, read>", texture((5, 6, 4), "f2"), "p.xy"),
    "bytes": ("texture_2d<u32>", texture((5, 6, 4), "u1"), "p.xy, 0"),
}


@pytest.mark.parametrize("shape", LOADS)
def test_every_shape_is_loaded_equally_in_and_out_of_bounds(shape, textured):
    type_, levels, place = LOADS[shape]
    kind = "u32" if "<u32" in type_ else "i32" if "<i32" in type_ else "f32"
    source = f"""
    @group(0) @binding(0) var t: {type_};
    @group(1) @binding(3) var<storage, read_write> y: array<vec4<{kind}>>;
    @compute @workgroup_size(12, 10) fn main(@builtin(global_invocation_id) i: vec3u) {{
        let p = vec3i(i) - 2;
        y[(i.z * 10 + i.y) * 12 + i.x] = vec4(textureLoad(t, {place}));
    }}"""
    given = {"t": levels if len(levels) > 1 else levels[0], "y": np.zeros((6 * 120, 4), WORDS[kind])}
    ours, theirs = both(source, given, (1, 1, 6), textured)
    # Of numbers that are normalized, WGSL's division may be off by 2.5 ULP: multiplying by 1/65535 is off by one.
    np.testing.assert_allclose(ours["y"], theirs["y"], rtol=2.0**-23 if shape == "depth" else 0, atol=0)


RGBA = texture((8, 16, 4), "f4", levels=4)
SHADES = texture((7, 13, 4), "u1", levels=3)
DEPTH = texture((8, 8, 1), "u2", levels=3)
CUBE = texture((6, 8, 8, 4), "f4", levels=3, layers=True)
# Type, texels, call of `p` (from -1.5 to 2.5) and `texels` (1, 2 or 4), and how many weights it blends by at most: one
# for each axis, and one between levels.
SAMPLES = {
    "1d": ("texture_1d<f32>", texture((9, 4), "f4"), "textureSampleLevel(t, s, p.x, 0.0)", 1),
    "2d": ("texture_2d<f32>", RGBA, "textureSampleLevel(t, s, p.xy, p.z * 2)", 3),
    "bytes": ("texture_2d<f32>", SHADES, "textureSampleLevel(t, s, p.xy, 0.0)", 2),
    "offset": ("texture_2d<f32>", RGBA, "textureSampleLevel(t, s, p.xy, 1.0, vec2(-2, 3))", 2),
    "3d": ("texture_3d<f32>", texture((4, 8, 8, 2), "f2"), "textureSampleLevel(t, s, p.xyz, 0.0)", 3),
    "layers": (
        "texture_2d_array<f32>",
        texture((3, 8, 8, 4), "f4", levels=2, layers=True),
        "textureSampleLevel(t, s, p.xy, i32(p.z * 3), p.w)",
        3,
    ),
    "depth": ("texture_depth_2d", DEPTH, "textureSampleLevel(t, s, p.xy, 1)", 2),
    "base": ("texture_2d<f32>", RGBA, "textureSampleBaseClampToEdge(t, s, p.xy)", 2),
    "gradients": (
        "texture_2d<f32>",
        RGBA,
        "textureSampleGrad(t, s, p.xy, vec2(texels / 16, 0), vec2(0, texels / 16))",
        3,
    ),
    "gather": ("texture_2d<f32>", RGBA, "textureGather(2, t, s, p.xy)", 0),
    "cube": ("texture_cube<f32>", CUBE, "textureSampleLevel(t, s, p.xyz - 0.5, p.w)", 3),
    "cubes": (
        "texture_cube_array<f32>",
        texture((12, 4, 4, 1), "f2", layers=True),
        "textureSampleLevel(t, s, p.xyz - 0.5, i32(p.w * 3), 0.0)",
        2,
    ),
    "gather of a cube": ("texture_cube<f32>", CUBE, "textureGather(1, t, s, p.xyz - 0.5)", 2),
    "comparison": ("texture_depth_2d", DEPTH, "textureSampleCompareLevel(t, s, p.xy, p.z * 0.5)", 2),
    "gather of comparisons": ("texture_depth_2d", DEPTH, "textureGatherCompare(t, s, p.xy, p.z * 0.5)", 0),
}


@pytest.mark.parametrize("address", ["clamp-to-edge", "repeat", "mirror-repeat"])
@pytest.mark.parametrize("filter_", ["nearest", "linear"])
@pytest.mark.parametrize("call", SAMPLES)
def test_samples_are_equal(call, filter_, address, textured):
    type_, levels, expression, weights = SAMPLES[call]
    compare = "less-equal" if "Compare" in expression else None
    source = f"""
    @group(0) @binding(0) var t: {type_};
    @group(0) @binding(1) var s: {"sampler_comparison" if compare else "sampler"};
    @group(0) @binding(2) var<storage, read> points: array<vec4f>;
    @group(0) @binding(3) var<storage, read_write> y: array<vec4f>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) i: vec3u) {{
        let p = points[i.x];
        let texels = f32(1u << (i.x % 3));
        y[i.x] = vec4({expression});
    }}"""
    points = np.random.default_rng(5).uniform(-1.5, 2.5, (POINTS, 4)).astype(np.float32)
    sampler = bankshot.Sampler(filter_, filter_, filter_, address, compare=compare)
    given = {"t": levels, "s": sampler, "points": points, "y": np.zeros_like(points)}
    ours, theirs = both(source, given, (POINTS // 64, 1, 1), textured)
    # Each weight is off by its precision, times the contrast of texels between 0 and 1; 8-bit texels may be filtered in
    # steps of 1/255. Without weights there are the last bits of normalized numbers, and of means at corners of cubes.
    step = 1 / 255 if levels[0].dtype == np.uint8 else 0
    gathers = "Gather" in expression  # whose filter does not matter
    tolerance = 2.0**-22 if filter_ == "nearest" and not gathers else weights * WEIGHT + step + 2.0**-22
    far = np.abs(ours["y"] - theirs["y"]).max(axis=1) > tolerance
    if gathers and far.any():
        far &= ~gathered_nearby(source, given, theirs["y"], tolerance, textured)
    assert points[far].tolist() == []


def gathered_nearby(source, given, theirs, tolerance, adapter):
    """Find gathers that match those of a point within 1/256 texel, the resolution of a GPU's coordinates."""
    found = np.zeros(len(theirs), bool)
    for signs in itertools.product((-1, 1), repeat=3):
        points = given["points"] + np.float32(WEIGHT / 4) * np.array([*signs, 0], np.float32)
        device = adapter.profile or FALLBACK
        nearby = bankshot.simulate(source, grid=POINTS // 64, bindings={**given, "points": points}, device=device)
        found |= np.abs(nearby.outputs["y"] - theirs).max(axis=1) <= tolerance
    return found


# ---- textures that cannot be uploaded ----------------------------------------------------------------


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize(
    ("type_", "array", "message"),
    [
        ("texture_multisampled_2d<f32>", np.zeros((4, 2, 2), np.float32), "samples cannot be uploaded"),
        ("texture_depth_2d", np.zeros((2, 2), np.float32), "only uint16 depth can be uploaded"),
    ],
)
def test_textures_that_cannot_be_uploaded_are_named(type_, array, message):
    source = f"@group(0) @binding(0) var t: {type_}; @compute @workgroup_size(1) fn main() {{ _ = t; }}"
    with pytest.raises(UsageError, match=f"binding t is .*{message}"):
        wgpu_client.run(source, "main", (1, 1, 1), {"t": array})

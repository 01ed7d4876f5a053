"""Sampling agrees with a plain filter in float64, texel by texel.

Tolerance: two f32 roundings of a coordinate of up to 2^6 texels are off by at most 2^-17, and so are the weights along
up to three axes and between levels. Texels are between 0 and 1.
"""

import itertools
import math

import numpy as np
import pytest

import bankshot

TOLERANCE = 4 * 2.0**-17
POINTS = 96
KEPT = {
    "clamp-to-edge": lambda i, n: min(max(i, 0), n - 1),
    "repeat": lambda i, n: i % n,
    "mirror-repeat": lambda i, n: [*range(n), *reversed(range(n))][i % (2 * n)],
}


def texel_at(level, place, modes):
    """`level` is [z, y, x, channel] or less; `place` goes x first."""
    kept = [KEPT[mode](i, n) for i, n, mode in zip(place, level.shape[-2::-1], modes, strict=False)]
    return level[tuple(kept[::-1])].astype(np.float64)


def filtered(level, point, sampler, filter_, offset=(0, 0, 0)):
    """One level at a point whose coordinates go from 0 to 1."""
    extents = level.shape[-2::-1]
    if filter_ == "nearest":
        place = [math.floor(p * n) + o for p, n, o in zip(point, extents, offset, strict=False)]
        return texel_at(level, place, sampler.addresses)
    total = np.zeros(level.shape[-1])
    around = [p * n - 0.5 for p, n in zip(point, extents, strict=True)]
    for corner in itertools.product((0, 1), repeat=len(extents)):
        weight = math.prod(1 - abs(u - math.floor(u) - c) for u, c in zip(around, corner, strict=True))
        place = [math.floor(u) + c + o for u, c, o in zip(around, corner, offset, strict=False)]
        total += weight * texel_at(level, place, sampler.addresses)
    return total


def sampled(levels, point, detail, sampler, offset=(0, 0, 0)):
    """Spec: WebGPU, GPUSamplerDescriptor; magnification is where the level of detail is not above 0."""
    detail = min(max(detail, sampler.lod[0]), sampler.lod[1])
    filter_ = sampler.mag if detail <= 0 else sampler.min
    detail = min(max(detail, 0), len(levels) - 1)
    if sampler.mip == "nearest":
        return filtered(levels[math.floor(detail + 0.5)], point, sampler, filter_, offset)
    below, above = levels[math.floor(detail)], levels[math.ceil(detail)]
    weight = detail - math.floor(detail)
    one, other = (filtered(level, point, sampler, filter_, offset) for level in (below, above))
    return one * (1 - weight) + other * weight


def chain(*shape, levels=1):
    """Random arrays, each half the one before along all axes but the last, of channels."""
    rng = np.random.default_rng(sum(shape))
    return [rng.random([max(1, n >> k) for n in shape[:-1]] + [shape[-1]]).astype(np.float32) for k in range(levels)]


def points(extents, seed=3):
    """Points away from the edges of texels (of all levels, where extents are powers of two), some of them outside."""
    rng = np.random.default_rng(seed)
    finest = np.array(extents) * 2
    place = rng.integers(-finest, 2 * finest, (POINTS, len(extents)))
    return ((place + rng.uniform(0.2, 0.8, place.shape)) / finest).astype(np.float32)


def run(type_, call, levels, sampler, coordinates, details=None):
    """What `call` gives at each of `coordinates`: it is an expression of the coordinates `p` and `p.w`, the detail."""
    given = np.zeros((POINTS, 4), np.float32)
    given[:, : coordinates.shape[1]] = coordinates
    given[:, 3] = 0 if details is None else details
    source = f"""
    @group(0) @binding(0) var t: {type_};
    @group(0) @binding(1) var s: {"sampler_comparison" if sampler.compare else "sampler"};
    @group(0) @binding(2) var<storage, read> c: array<vec4f>;
    @group(0) @binding(3) var<storage, read_write> y: array<vec4f>;
    @compute @workgroup_size({POINTS}) fn main(@builtin(local_invocation_index) i: u32) {{
        let p = c[i];
        y[i] = vec4f({call});
    }}"""
    bindings = {"t": levels if len(levels) > 1 else levels[0], "s": sampler, "c": given, "y": np.zeros_like(given)}
    return bankshot.simulate(source, grid=1, bindings=bindings).outputs["y"]


def agree(actual, expected):
    np.testing.assert_allclose(actual, np.array(expected), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("mode", KEPT)
@pytest.mark.parametrize("filter_", ["nearest", "linear"])
@pytest.mark.parametrize(
    ("type_", "shape", "p"),
    [
        ("texture_1d<f32>", (8, 4), "p.x"),
        ("texture_2d<f32>", (4, 8, 4), "p.xy"),
        ("texture_3d<f32>", (2, 4, 8, 4), "p.xyz"),
    ],
)
def test_filters_and_address_modes(type_, shape, p, filter_, mode):
    levels, sampler = chain(*shape), bankshot.Sampler(mag=filter_, address=mode)
    where = points(shape[-2::-1])
    out = run(type_, f"textureSampleLevel(t, s, {p}, 0.0)", levels, sampler, where)
    agree(out, [sampled(levels, point.astype(float), 0, sampler) for point in where])


def test_each_axis_has_its_address_mode():
    levels, sampler = chain(4, 8, 4), bankshot.Sampler(mag="linear", address=("repeat", "mirror-repeat"))
    where = points((8, 4))
    out = run("texture_2d<f32>", "textureSampleLevel(t, s, p.xy, 0.0)", levels, sampler, where)
    agree(out, [sampled(levels, point.astype(float), 0, sampler) for point in where])


@pytest.mark.parametrize("mip", ["nearest", "linear"])
@pytest.mark.parametrize(("mag", "min_"), [("nearest", "linear"), ("linear", "nearest")])
@pytest.mark.parametrize("lod", [(0.0, 32.0), (0.75, 1.75)])
def test_levels_of_detail(mip, mag, min_, lod):
    levels, sampler = chain(8, 16, 4, levels=4), bankshot.Sampler(mag=mag, min=min_, mip=mip, lod=lod)
    where, details = points((16, 8)), np.linspace(-1.03, 4.1, POINTS, dtype=np.float32)
    out = run("texture_2d<f32>", "textureSampleLevel(t, s, p.xy, p.w)", levels, sampler, where, details)
    agree(out, [sampled(levels, p.astype(float), float(d), sampler) for p, d in zip(where, details, strict=True)])


def test_offsets_come_before_address_modes():
    levels, sampler = chain(4, 8, 4), bankshot.Sampler(mag="linear", address="repeat")
    where = points((8, 4))
    out = run("texture_2d<f32>", "textureSampleLevel(t, s, p.xy, 0.0, vec2(-3, 5))", levels, sampler, where)
    agree(out, [sampled(levels, point.astype(float), 0, sampler, (-3, 5)) for point in where])


def test_layers_are_clamped():
    array, sampler = chain(3, 4, 8, 4)[0], bankshot.Sampler(mag="linear")
    where, layers = points((8, 4)), np.arange(POINTS) % 7 - 2
    out = run("texture_2d_array<f32>", "textureSampleLevel(t, s, p.xy, i32(p.w), 0.0)", [array], sampler, where, layers)
    expected = [
        filtered(array[min(max(layer, 0), 2)], p.astype(float), sampler, "linear")
        for p, layer in zip(where, layers, strict=True)
    ]
    agree(out, expected)


def test_the_base_level_is_clamped_half_a_texel_inside():
    levels, sampler = chain(4, 8, 4, levels=2), bankshot.Sampler(mag="linear", address="repeat")
    where = points((8, 4))
    out = run("texture_2d<f32>", "textureSampleBaseClampToEdge(t, s, p.xy)", levels, sampler, where)
    inside = np.clip(where.astype(float), [1 / 16, 1 / 8], [15 / 16, 7 / 8])
    agree(out, [filtered(levels[0], point, sampler, "linear") for point in inside])


def test_gradients_choose_the_level():
    """Steps of 1, 2 and 4 texels along the longer one are levels 0, 1 and 2."""
    levels, sampler = chain(8, 16, 4, levels=4), bankshot.Sampler(mag="nearest", min="nearest", mip="linear")
    where, texels = points((16, 8)), 2.0 ** (np.arange(POINTS) % 3)
    call = "textureSampleGrad(t, s, p.xy, vec2(p.w / 16, 0), vec2(0, p.w / 32))"
    out = run("texture_2d<f32>", call, levels, sampler, where, texels)
    details = np.log2(texels)
    agree(out, [sampled(levels, p.astype(float), float(d), sampler) for p, d in zip(where, details, strict=True)])


def corners(level, point, modes, offset=(0, 0)):
    """Spec: WGSL, textureGather: (umin, vmax), (umax, vmax), (umax, vmin), (umin, vmin)."""
    low = [math.floor(p * n - 0.5) + o for p, n, o in zip(point, level.shape[-2::-1], offset, strict=True)]
    return [texel_at(level, (low[0] + x, low[1] + y), modes) for x, y in ((0, 1), (1, 1), (1, 0), (0, 0))]


@pytest.mark.parametrize("offset", ["", ", vec2(2, -1)"])
def test_gathering(offset):
    levels, sampler = chain(4, 8, 4), bankshot.Sampler(address="repeat")
    where = points((8, 4))
    out = run("texture_2d<f32>", f"textureGather(2, t, s, p.xy{offset})", levels, sampler, where)
    shift = (2, -1) if offset else (0, 0)
    agree(out, [[c[2] for c in corners(levels[0], p.astype(float), sampler.addresses, shift)] for p in where])


COMPARISONS = {
    "never": lambda a, b: False,
    "less": lambda a, b: a < b,
    "equal": lambda a, b: a == b,
    "less-equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "not-equal": lambda a, b: a != b,
    "greater-equal": lambda a, b: a >= b,
    "always": lambda a, b: True,
}


@pytest.mark.parametrize("compare", COMPARISONS)
def test_comparing(compare):
    depth = (np.random.default_rng(1).integers(0, 4, (4, 8, 1)) / 4).astype(np.float32)
    sampler, where, references = bankshot.Sampler(compare=compare), points((8, 4)), np.arange(POINTS) % 4 / 4
    holds = COMPARISONS[compare]
    gathered = run("texture_depth_2d", "textureGatherCompare(t, s, p.xy, p.w)", [depth], sampler, where, references)
    expected = [
        [float(holds(r, c[0])) for c in corners(depth, p.astype(float), sampler.addresses)]
        for p, r in zip(where, references, strict=True)
    ]
    np.testing.assert_array_equal(gathered, expected)
    linear = bankshot.Sampler(mag="linear", compare=compare)
    blended = run("texture_depth_2d", "textureSampleCompareLevel(t, s, p.xy, p.w)", [depth], linear, where, references)
    passed = {r: np.array([[[float(holds(r, d[0]))] for d in row] for row in depth]) for r in (0, 0.25, 0.5, 0.75)}
    expected = [filtered(passed[r], p.astype(float), linear, "linear") for p, r in zip(where, references, strict=True)]
    agree(blended[:, :1], expected)


# ---- cubes -------------------------------------------------------------------------------------------


def direction(face, right, down):
    """Of a point on a face, -1 to 1 both. Spec: Vulkan, "Cube Map Face Selection"."""
    return {
        0: (1, -down, -right),
        1: (-1, -down, right),
        2: (right, 1, down),
        3: (right, -1, -down),
        4: (right, -down, 1),
        5: (-right, -down, -1),
    }[face]


def test_each_direction_has_its_texel():
    cube = np.arange(6 * 4 * 4, dtype=np.float32).reshape(6, 4, 4)
    places = list(np.ndindex(6, 4, 4))
    where = np.array([direction(f, (2 * x + 1) / 4 - 1, (2 * y + 1) / 4 - 1) for f, y, x in places], np.float32)
    out = run("texture_cube<f32>", "textureSampleLevel(t, s, p.xyz * 3, 0.0)", [cube], bankshot.Sampler(), where)
    assert out[:, 0].tolist() == list(range(POINTS))


def test_filters_go_over_the_edges_of_a_cube():
    """On an edge both faces count for half; in a corner, where there is no fourth texel, each of three for a third."""
    shades = np.array([1, 2, 4, 8, 16, 32], np.float32) / 64
    cube = np.tile(shades[:, None, None, None], (1, 4, 4, 1))
    meeting = [d for d in itertools.product((-1, 0, 1), repeat=3) if any(d)]  # middles of faces, edges, corners
    where = np.array(meeting * 4, np.float32)[:POINTS]
    out = run(
        "texture_cube<f32>", "textureSampleLevel(t, s, p.xyz, 0.0)", [cube], bankshot.Sampler(mag="linear"), where
    )
    faces = [[shades[2 * axis + (part < 0)] for axis, part in enumerate(d) if part] for d in where]
    agree(out[:, 0], [np.mean(each) for each in faces])


def test_a_tap_over_an_edge_is_the_neighbour_of_the_texel():
    """Between a texel of an edge and the one beside it on the next face, found by walking in the direction's terms."""
    cube, step = chain(6, 4, 4, 4)[0], 1 / 4
    where, expected = [], []
    for face, along in itertools.product(range(6), (-3 * step, -step, step, 3 * step)):
        inside = direction(face, 1 - step, along)  # the middle of a texel at the right edge
        axis, out = face // 2, next(a for a, part in enumerate(inside) if abs(part) == 1 - step and a != face // 2)
        if abs(along) == 1 - step:
            continue  # both coordinates look alike
        beside = list(inside)
        beside[out], beside[axis] = np.sign(inside[out]), np.sign(inside[axis]) * (1 - step)
        edge = list(inside)
        edge[out] = np.sign(inside[out])
        where.append(edge)
        expected.append((cube[texel_of(inside)].astype(float) + cube[texel_of(beside)]) / 2)
    padded = np.resize(np.array(where, np.float32), (POINTS, 3))
    out = run(
        "texture_cube<f32>", "textureSampleLevel(t, s, p.xyz, 0.0)", [cube], bankshot.Sampler(mag="linear"), padded
    )
    agree(out[: len(expected)], expected)


def texel_of(toward):
    """Face, row and column of the texel of a 4 x 4 cube whose middle lies nearest to a direction."""
    middles = [(f, y, x) for f, y, x in np.ndindex(6, 4, 4)]
    rays = np.array([direction(f, (2 * x + 1) / 4 - 1, (2 * y + 1) / 4 - 1) for f, y, x in middles])
    nearness = rays @ np.array(toward) / np.linalg.norm(rays, axis=1)
    return middles[int(np.argmax(nearness))]


def test_gradients_of_cubes_are_unsupported():
    with pytest.raises(bankshot.WgslError, match=r"cannot sample a texture_cube<f32> by gradients"):
        run(
            "texture_cube<f32>",
            "textureSampleGrad(t, s, p.xyz, p.xyz, p.xyz)",
            [np.zeros((6, 4, 4), np.float32)],
            bankshot.Sampler(),
            points((1, 1, 1)),
        )

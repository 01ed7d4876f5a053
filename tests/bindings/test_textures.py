"""Textures in the simulator: every format and shape in and out, what is outside, what is counted, and what is refused.

Expected texels come from exact arithmetic on the format's own definition (WGSL, "Texel Formats").
"""

import re
import struct
from fractions import Fraction

import numpy as np
import pytest

import bankshot

# Channels in memory order, shader type, number format and bits of each channel.
_SIZES = (("8", "unorm f32"), ("8", "snorm f32"), ("8", "uint u32"), ("8", "sint i32"))
_SIZES += (("16", "unorm f32"), ("16", "snorm f32"), ("16", "uint u32"), ("16", "sint i32"), ("16", "float f32"))
_SIZES += (("32", "float f32"), ("32", "uint u32"), ("32", "sint i32"))
FORMATS = {
    f"{channels}{bits}{kind.split()[0]}": (channels, kind.split()[1], kind.split()[0], [int(bits)] * len(channels))
    for channels in ("r", "rg", "rgba")
    for bits, kind in _SIZES
}
FORMATS["bgra8unorm"] = ("bgra", "f32", "unorm", [8] * 4)
FORMATS["rgb10a2unorm"] = ("rgba", "f32", "unorm", [10, 10, 10, 2])
FORMATS["rgb10a2uint"] = ("rgba", "u32", "uint", [10, 10, 10, 2])
FORMATS["rg11b10ufloat"] = ("rgb", "f32", "ufloat", [11, 11, 10])
PACKED = ("rgb10a2unorm", "rgb10a2uint", "rg11b10ufloat")
LETTERS = {"unorm": "u", "snorm": "i", "uint": "u", "sint": "i", "float": "f"}
WORDS = {"f32": np.float32, "u32": np.uint32, "i32": np.int32}
NEAREST = bankshot.devices.NVIDIA.with_(texel_f16="nearest")


def small_float(code, bits):
    """The value of a float of 5 bits of exponent and no sign. Not of infinities and NaN."""
    fraction = bits - 5
    exponent, mantissa = divmod(code, 1 << fraction)
    if exponent == 0:
        return Fraction(mantissa, 1 << (14 + fraction))
    return (1 + Fraction(mantissa, 1 << fraction)) * Fraction(2) ** (exponent - 15)


def value_of(code, number, bits):
    """What a shader reads of a stored number, exactly."""
    match number:
        case "unorm":
            return Fraction(code, 2**bits - 1)
        case "snorm":
            return max(Fraction(code, 2 ** (bits - 1) - 1), Fraction(-1))
        case "ufloat":
            return small_float(code, bits)
        case "float":
            return Fraction(float(code))
        case _:
            return code


def code_of(value, number, bits):
    """What is stored of a shader's value: to nearest, ties to even; of floats without a sign, toward zero."""
    value = Fraction(float(value))
    match number:
        case "unorm":
            return round(min(max(value, Fraction(0)), Fraction(1)) * (2**bits - 1))
        case "snorm":
            return round(min(max(value, Fraction(-1)), Fraction(1)) * (2 ** (bits - 1) - 1))
        case "uint":
            return int(min(value, 2**bits - 1))
        case "sint":
            return int(min(max(value, -(2 ** (bits - 1))), 2 ** (bits - 1) - 1))
        case "ufloat":
            return max((c for c in range(31 << (bits - 5)) if small_float(c, bits) <= value), default=0)
        case _:
            return struct.unpack("e" if bits == 16 else "f", struct.pack("e" if bits == 16 else "f", float(value)))[0]


def packed(codes, bits):
    return sum(code << sum(bits[:i]) for i, code in enumerate(codes))


def dtype_of(name):
    _, _, number, bits = FORMATS[name]
    return np.uint32 if name in PACKED else np.dtype(f"{LETTERS[number]}{bits[0] // 8}")


def texel(codes, name):
    """One element of an array in this format, from stored numbers in memory order."""
    return [packed(codes, FORMATS[name][3])] if name in PACKED else codes


def simulated(body, declarations, bindings, *, grid=1, workgroup="1", **options):
    """A run whose entry point is `body`; `i` is the global invocation id."""
    source = f"""
    requires texture_formats_tier1, readonly_and_readwrite_storage_textures;
    {declarations}
    @compute @workgroup_size({workgroup}) fn main(@builtin(global_invocation_id) i: vec3u) {{ {body} }}
    """
    return bankshot.simulate(source, grid=grid, bindings=bindings, **options)


# ---- formats -----------------------------------------------------------------------------------------


def test_every_storage_format_is_here():
    from bankshot.sim.wgsl.enumerants import TEXEL_FORMATS

    assert {name: str(channel) for name, channel in TEXEL_FORMATS.items()} == {n: f[1] for n, f in FORMATS.items()}


def some_values(kind):
    rng = np.random.default_rng(1)
    if kind == "f32":
        edges = [0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2**-15, 3 * 2**-20, 65000, 1 / 3]
        return np.concatenate([np.array(edges, np.float32), rng.uniform(-1.2, 1.2, 20).astype(np.float32)]).reshape(
            8, 4
        )
    limits = np.iinfo(WORDS[kind])
    edges = [0, 1, 3, 4, 127, 128, 255, 256, 1023, 1024, 32767, 32768, 65535, 65536, limits.max, limits.min]
    return (
        np.concatenate([edges, -np.array(edges) % 2**31 if kind == "u32" else -np.array(edges)])
        .reshape(8, 4)
        .astype(WORDS[kind])
    )


@pytest.mark.parametrize("name", FORMATS)
def test_storing(name):
    channels, kind, number, bits = FORMATS[name]
    values = some_values(kind)
    expected = [
        texel([code_of(row["rgba".index(c)], number, b) for c, b in zip(channels, bits, strict=True)], name)
        for row in values
    ]
    width = 1 if name in PACKED else len(channels)
    declarations = f"""
    @group(0) @binding(0) var<storage, read> x: array<vec4<{kind}>>;
    @group(0) @binding(1) var t: texture_storage_1d<{name}, write>;"""
    given = {"x": values, "t": np.zeros((8, width), dtype_of(name))}
    store = "textureStore(t, i.x, x[i.x]);"
    out = simulated(store, declarations, given, workgroup="8", device=NEAREST).outputs["t"]
    assert (out.dtype, out.shape) == (dtype_of(name), (8, width))
    np.testing.assert_array_equal(out, np.array(expected, dtype_of(name)))


@pytest.mark.parametrize("name", FORMATS)
def test_loading(name):
    channels, kind, number, bits = FORMATS[name]
    rng = np.random.default_rng(2)

    def code(b):
        if number == "float":
            return struct.unpack("e" if b == 16 else "f", struct.pack("e" if b == 16 else "f", rng.normal()))[0]
        signed = number in ("snorm", "sint")
        top = 31 << (b - 5) if number == "ufloat" else 2 ** (b - signed)
        return int(rng.integers(-top if signed else 0, top))

    codes = [[code(b) for b in bits] for _ in range(16)]
    expected = np.tile(np.array([0, 0, 0, 1], WORDS[kind]), (16, 1))
    for row, each in zip(expected, codes, strict=True):
        for channel, one, b in zip(channels, each, bits, strict=True):
            row["rgba".index(channel)] = value_of(one, number, b)
    array = np.array([texel(each, name) for each in codes], dtype_of(name))
    declarations = f"""
    @group(0) @binding(0) var t: texture_storage_1d<{name}, read>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4<{kind}>>;"""
    given = {"t": array, "y": np.zeros((16, 4), WORDS[kind])}
    out = simulated("y[i.x] = textureLoad(t, i.x);", declarations, given, workgroup="16").outputs["y"]
    np.testing.assert_array_equal(out, expected)


def test_halves_are_cut_where_the_device_cuts_them():
    declarations = "@group(0) @binding(0) var t: texture_storage_1d<r16float, write>;"
    values = (1 + 3 * 2**-12, -1 - 3 * 2**-12, 2**-24 * 1.75, 1e6, 65519)
    body = " ".join(f"textureStore(t, {n}, vec4(f32({v!r})));" for n, v in enumerate(values))
    given = {"t": np.zeros(5, np.float16)}
    near = simulated(body, declarations, given, device=NEAREST).outputs["t"]
    cut = simulated(body, declarations, given, device="lavapipe").outputs["t"]
    assert [float(v) for v in near[:3]] == [1 + 2**-10, -1 - 2**-10, 2**-23]
    assert [float(v) for v in cut] == [1, -1, 2**-24, 65504, 65504]


def test_what_is_stored_is_read_back_as_the_format_holds_it():
    declarations = """
    @group(0) @binding(0) var t: texture_storage_2d<r8unorm, read_write>;
    @group(0) @binding(1) var<storage, read_write> y: f32;"""
    given = {"t": np.zeros((1, 1), np.uint8), "y": np.zeros(1, np.float32)}
    body = "textureStore(t, vec2(0, 0), vec4(0.5)); textureBarrier(); y = textureLoad(t, vec2(0, 0)).x;"
    run = simulated(body, declarations, given)
    assert run.outputs["y"][0] == np.float32(128) / np.float32(255)
    assert run.outputs["t"][0, 0] == 128


# ---- shapes ------------------------------------------------------------------------------------------

PLACES = np.arange(4 * 3 * 5).reshape(4, 3, 5)  # [z, y, x]
LOADS = {
    "texture_1d<u32>": (PLACES[0, 0], "(t, i.x, 0).x", np.uint32),
    "texture_2d<u32>": (PLACES[0], "(t, i.xy, 0).x", np.uint32),
    "texture_2d<i32>": (PLACES[0], "(t, vec2i(i.xy), 0u).x", np.int16),
    "texture_2d<f32>": (PLACES[0], "(t, vec2i(i.xy), 0).x", np.float32),
    "texture_2d_array<u32>": (PLACES, "(t, i.xy, i.z, 0).x", np.uint16),
    "texture_3d<u32>": (PLACES, "(t, i, 0).x", np.uint8),
    "texture_multisampled_2d<f32>": (PLACES, "(t, i.xy, i.z).x", np.float16),
    "texture_depth_2d": (PLACES[0], "(t, i.xy, 0)", np.float32),
    "texture_depth_2d_array": (PLACES, "(t, i.xy, i32(i.z), 0)", np.float32),
    "texture_depth_multisampled_2d": (PLACES, "(t, i.xy, i.z)", np.float32),
    "texture_storage_1d<r32uint, read>": (PLACES[0, 0], "(t, i.x).x", np.uint32),
    "texture_storage_2d<r32float, read_write>": (PLACES[0], "(t, i.xy).x", np.float32),
    "texture_storage_2d_array<r32sint, read>": (PLACES, "(t, i.xy, i.z).x", np.int32),
    "texture_storage_3d<r16float, read>": (PLACES, "(t, i).x", np.float16),
}


@pytest.mark.parametrize("type_", LOADS)
def test_a_texel_is_where_the_array_has_it(type_):
    array, arguments, dtype = LOADS[type_]
    z, y, x = (1, 1, 1, *array.shape)[-3:]
    declarations = f"""
    @group(0) @binding(0) var t: {type_};
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;"""
    body = f"y[(i.z * {y} + i.y) * {x} + i.x] = u32(textureLoad{arguments});"
    given = {"t": array.astype(dtype), "y": np.zeros(array.size, np.uint32)}
    run = simulated(body, declarations, given, grid=(x, y, z))
    assert run.outputs["y"].tolist() == array.ravel().tolist()
    assert not run.findings


@pytest.mark.parametrize(
    ("shape", "coordinates", "extent"),
    [("1d", "i.x", (5,)), ("2d", "i.xy", (3, 5)), ("2d_array", "i.xy, i.z", (4, 3, 5)), ("3d", "vec3i(i)", (4, 3, 5))],
)
def test_a_texel_is_stored_where_it_was_meant(shape, coordinates, extent):
    z, y, x = (1, 1, 1, *extent)[-3:]
    declarations = f"@group(0) @binding(0) var t: texture_storage_{shape}<r32uint, write>;"
    body = f"textureStore(t, {coordinates}, vec4((i.z * {y} + i.y) * {x} + i.x));"
    out = simulated(body, declarations, {"t": np.zeros(extent, np.uint32)}, grid=(x, y, z)).outputs["t"]
    np.testing.assert_array_equal(out, np.arange(np.prod(extent)).reshape(extent))


def test_the_least_snorm_stays_until_it_is_stored_over():
    """-128 and -127 are both -1.0: a texel that is not touched keeps its byte, one that is stored gets the greater."""
    given = {"t": np.full((1, 3, 4), -128, np.int8)}
    declarations = "@group(0) @binding(0) var t: texture_storage_2d<rgba8snorm, write>;"
    out = simulated("if i.x == 1u { textureStore(t, i.xy, vec4(-1.0)); }", declarations, given, grid=(3, 1, 1))
    assert out.outputs["t"].tolist() == [[[-128] * 4, [-127] * 4, [-128] * 4]]


def test_the_least_snorm_is_loaded_as_minus_one():
    declarations = """
    @group(0) @binding(0) var t: texture_storage_2d<rgba16snorm, read>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4f>;"""
    given = {"t": np.array([[[-32768, -32767, 0, 32767]]], np.int16), "y": np.zeros(4, np.float32)}
    run = simulated("y[0] = textureLoad(t, i.xy);", declarations, given)
    assert run.outputs["y"].tolist() == [-1, -1, 0, 1]


QUESTIONS = [
    ("texture_1d<f32>", (7,), "textureDimensions(t), textureNumLevels(t)", [7, 1]),
    ("texture_2d<f32>", (5, 7), "textureDimensions(t), textureDimensions(t, 2)", [7, 5, 1, 1]),
    (
        "texture_2d_array<f32>",
        (3, 5, 7),
        "textureDimensions(t, 1), textureNumLayers(t), textureNumLevels(t)",
        [3, 2, 3, 3],
    ),
    ("texture_3d<f32>", (4, 5, 7), "textureDimensions(t), textureDimensions(t, 1u).z", [7, 5, 4, 2]),
    ("texture_cube<f32>", (6, 4, 4), "textureDimensions(t), textureNumLevels(t)", [4, 4, 3]),
    ("texture_cube_array<f32>", (12, 4, 4), "textureDimensions(t, 1), textureNumLayers(t)", [2, 2, 2]),
    ("texture_multisampled_2d<f32>", (4, 5, 7), "textureDimensions(t), textureNumSamples(t)", [7, 5, 4]),
    ("texture_depth_2d_array", (3, 5, 7), "textureDimensions(t), textureNumLayers(t)", [7, 5, 3]),
    ("texture_storage_3d<r32float, write>", (4, 5, 7), "textureDimensions(t)", [7, 5, 4]),
    ("texture_storage_2d_array<r32float, read>", (4, 5, 7), "textureDimensions(t), textureNumLayers(t)", [7, 5, 4]),
]


@pytest.mark.parametrize(("type_", "shape", "asked", "answers"), QUESTIONS)
def test_what_a_texture_tells_of_itself(type_, shape, asked, answers):
    levelled = not re.search("storage|multi|1d", type_)
    halved = range(1 if "array" in type_ or "cube" in type_ else 0, len(shape))
    levels = [[max(1, n >> k) if a in halved else n for a, n in enumerate(shape)] for k in range(3 if levelled else 1)]
    arrays = [np.zeros(level, np.float32) for level in levels]
    parts = []
    for call in re.findall(r"\w+\(.*?\)(?:\.z)?", asked):
        vector = call.startswith("textureDimensions") and "1d" not in type_ and not call.endswith(".z")
        parts += [f"{call}.{axis}" for axis in ("xyz" if "3d" in type_ else "xy")] if vector else [call]
    declarations = f"""
    @group(0) @binding(0) var t: {type_};
    @group(0) @binding(1) var<storage, read_write> y: array<u32>;"""
    body = " ".join(f"y[{n}] = {part};" for n, part in enumerate(parts))
    given = {"t": arrays if levelled else arrays[0], "y": np.zeros(len(parts), np.uint32)}
    assert simulated(body, declarations, given).outputs["y"].tolist() == answers


def test_a_level_is_chosen_when_the_shader_runs():
    levels = [np.full((4 >> k, 8 >> k), k, np.uint8) + 10 for k in range(3)]
    declarations = """
    @group(0) @binding(0) var t: texture_2d<u32>;
    @group(0) @binding(1) var<storage, read_write> y: array<vec4u>;"""
    body = "y[i.x] = vec4(textureLoad(t, vec2(0u), i.x).x, textureDimensions(t, i.x), 0);"
    out = simulated(body, declarations, {"t": levels, "y": np.zeros(12, np.uint32)}, workgroup="3").outputs["y"]
    assert out.reshape(3, 4).tolist() == [[10, 8, 4, 0], [11, 4, 2, 0], [12, 2, 1, 0]]


def test_textures_are_passed_and_named():
    declarations = """
    @group(0) @binding(0) var one: texture_2d<u32>;
    @group(0) @binding(1) var two: texture_2d<u32>;
    @group(0) @binding(2) var<storage, read_write> y: array<u32>;
    fn first(t: texture_2d<u32>) -> u32 { let again = t; return textureLoad(again, vec2(0, 0), 0).x; }"""
    given = {"one": np.full((1, 1), 5, np.uint8), "two": np.full((1, 1), 7, np.uint8), "y": np.zeros(2, np.uint32)}
    assert simulated("y[0] = first(one); y[1] = first(two);", declarations, given).outputs["y"].tolist() == [5, 7]


# ---- outside -----------------------------------------------------------------------------------------

AROUND = """
@group(0) @binding(0) var t: texture_2d_array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4f>;
"""
AROUND_BODY = "let p = vec3i(i) - 1; y[(i.z * 5 + i.y) * 5 + i.x] = textureLoad(t, p.xy, p.z, LEVEL);"


def around(array, device, level="0"):
    given = {"t": array, "y": np.full((4, 5, 5, 4), 9, np.float32)}
    run = simulated(AROUND_BODY.replace("LEVEL", level), AROUND, given, grid=(5, 5, 4), device=device)
    return run.outputs["y"], run.findings


def test_a_load_outside_gives_zeros_with_the_alpha_of_the_format():
    one, four = np.arange(1, 19, dtype=np.float32).reshape(2, 3, 3), np.ones((2, 3, 3, 4), np.float32)
    expected = np.zeros((4, 5, 5, 4), np.float32)
    expected[..., 3] = 1
    expected[1:3, 1:4, 1:4, 0] = one
    np.testing.assert_array_equal(around(one, "nvidia")[0], expected)
    np.testing.assert_array_equal(around(four, "nvidia")[0], np.pad(four, ((1, 1), (1, 1), (1, 1), (0, 0))))


def test_a_load_outside_gives_the_nearest_texel_where_the_device_does():
    one = np.arange(1, 19, dtype=np.float32).reshape(2, 3, 3)
    out, _ = around(one, bankshot.devices.NVIDIA.with_(texel_outside="nearest"))
    np.testing.assert_array_equal(out[..., 0], np.pad(one, 1, mode="edge"))


@pytest.mark.parametrize("level", ["1", "-1", "i32(i.x) - 100"])
def test_a_level_that_is_not_there_is_outside(level):
    out, findings = around(np.ones((2, 3, 3), np.float32), "nvidia", level)
    assert not out[..., :3].any()
    assert findings[0].count == 100


def test_a_load_outside_is_found():
    _, findings = around(np.ones((2, 3, 3), np.float32), "nvidia")
    (finding,) = findings
    assert (finding.code, finding.count) == ("out-of-bounds", 4 * 5 * 5 - 2 * 3 * 3)
    assert finding.message == "textureLoad of a texel that t does not have"
    assert finding.span is not None
    assert finding.span.text == "textureLoad(t, p.xy, p.z, 0)"


@pytest.mark.parametrize("outside", ["zero", "nearest"])
def test_a_store_outside_is_found_and_not_done(outside):
    """Also where the device loads the nearest texel."""
    declarations = "@group(0) @binding(0) var t: texture_storage_2d<r32uint, write>;"
    run = simulated(
        "textureStore(t, vec2i(i.xy) - 1, vec4(i.x + 10u * i.y));",
        declarations,
        {"t": np.zeros((2, 2), np.uint32)},
        grid=(3, 4),
        device=bankshot.devices.NVIDIA.with_(texel_outside=outside),
    )
    assert run.outputs["t"].tolist() == [[11, 12], [21, 22]]
    (finding,) = run.findings
    assert (finding.message, finding.count) == ("textureStore of a texel that t does not have", 8)


# ---- counters ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("format_", "array", "bytes_", "sectors"),
    [
        ("r8unorm", np.zeros((2, 64), np.uint8), 1, 1),
        ("rgba8unorm", np.zeros((2, 64, 4), np.uint8), 4, 4),
        ("rgba32float", np.zeros((2, 64, 4), np.float32), 16, 16),
    ],
)
def test_texels_are_counted_as_their_format_packs_them(format_, array, bytes_, sectors):
    """32 lanes of a subgroup load neighbours and store to a column: sectors are 32 bytes, and rows 64 texels."""
    declarations = f"""
    @group(0) @binding(0) var t: texture_2d<f32>;
    @group(0) @binding(1) var o: texture_storage_2d<{format_}, write>;"""
    body = "textureStore(o, i.yx, textureLoad(t, i.xy, 0));"
    given = {"t": array, "o": np.zeros((64, *array.shape[1:]), array.dtype)}
    run = simulated(body, declarations, given, workgroup="32")
    load, store = sorted(run.sites, key=lambda site: site.kind)
    assert (load.name, load.space, load.bytes_per_lane, load.global_requests) == ("t", "texture", bytes_, 1)
    assert (load.global_sectors, load.global_ideal_sectors, load.global_bytes) == (sectors, sectors, 32 * bytes_)
    assert (store.global_sectors, store.global_bytes) == (32, 32 * bytes_)


@pytest.mark.parametrize(("filter_", "requests"), [("nearest", 1), ("linear", 4)])
def test_a_filtered_sample_is_an_access_for_each_texel(filter_, requests):
    declarations = """
    @group(0) @binding(0) var t: texture_2d<f32>;
    @group(0) @binding(1) var s: sampler;
    @group(0) @binding(2) var<storage, read_write> y: array<vec4f>;"""
    body = "y[i.x] = textureSampleLevel(t, s, vec2f(i.xy) / 32, 0.0);"
    given = {"t": np.zeros((8, 8), np.float32), "s": bankshot.Sampler(mag=filter_), "y": np.zeros((32, 4), np.float32)}
    site = next(site for site in simulated(body, declarations, given, workgroup="32").sites if site.name == "t")
    assert (site.executions, site.global_requests) == (1, requests)


def test_who_wrote_a_texel():
    declarations = "@group(0) @binding(0) var t: texture_storage_2d<rgba8uint, write>;"
    run = simulated(
        "if i.x < 3 { textureStore(t, i.xy, vec4u(1)); }",
        declarations,
        {"t": np.zeros((2, 4, 4), np.uint8)},
        grid=(4, 2),
    )
    place = np.ravel_multi_index((1, 2, 3), (2, 4, 4))
    assert str(run.writer("t", int(place))) == "workgroup (2, 1, 0), lane 0, line 4"
    assert run.writer("t", int(np.ravel_multi_index((1, 3, 0), (2, 4, 4)))) is None


# ---- what is refused ---------------------------------------------------------------------------------

IMAGE = np.zeros((4, 4, 4), np.uint8)
REFUSED = {
    "missing": ("texture_2d<f32>", None, ("nothing is bound to t", "@binding(0), texture_2d<f32>")),
    "no array": ("texture_2d<f32>", b"1234", ("t is a bytes", "NumPy array")),
    "rank": ("texture_2d<f32>", np.zeros(4, np.uint8), ("t has shape [4]", "[height, width]")),
    "rank of an array": ("texture_2d_array<f32>", np.zeros((4, 4), np.uint8), ("[layers, height, width]",)),
    "empty": ("texture_2d<f32>", np.zeros((0, 4), np.uint8), ("t has shape [0, 4]",)),
    "three channels": ("texture_2d<f32>", IMAGE[..., :3], ("t has 3 channels of uint8", "1 or 2 or 4")),
    "double": ("texture_2d<f32>", IMAGE.astype(np.float64), ("4 channels of float64", "float16")),
    "big-endian": ("texture_2d<f32>", IMAGE.astype(">f4"), ("4 channels of >f4",)),
    "floats as integers": ("texture_2d<u32>", IMAGE.astype(np.float32), ("float32", "uint32 or uint16 or uint8")),
    "depth": ("texture_depth_2d", IMAGE, ("t has 4 channels of uint8", "1 of float32 or uint16")),
    "format's dtype": ("texture_storage_2d<rgba8snorm, write>", IMAGE, ("rgba8snorm is stored as 4 of int8",)),
    "format's channels": ("texture_storage_2d<rg8unorm, write>", IMAGE, ("rg8unorm is stored as 2 of uint8",)),
    "packed": ("texture_storage_2d<rgb10a2unorm, write>", IMAGE, ("rgb10a2unorm is stored as 1 of uint32",)),
    "levels of a storage texture": ("texture_storage_2d<rgba8unorm, write>", [IMAGE, IMAGE[:2, :2]], ("2 levels",)),
    "too many levels": ("texture_2d<f32>", [IMAGE, IMAGE[:2, :2], IMAGE[:1, :1], IMAGE[:1, :1]], ("at most 3",)),
    "a level's shape": ("texture_2d<f32>", [IMAGE, IMAGE[:2, :3]], ("level 1 of t is uint8[2, 3, 4]", "[2, 2, 4]")),
    "cube": ("texture_cube<f32>", np.zeros((12, 4, 4), np.uint8), ("six square faces",)),
    "oblong cube": ("texture_cube<f32>", np.zeros((6, 4, 5), np.uint8), ("six square faces",)),
    "external": ("texture_external", IMAGE, ("cannot bind t (texture_external)",)),
    "sampler": ("sampler", IMAGE, ("t is given a ndarray", "bankshot.Sampler")),
    "sampler's fields": ("sampler", {"magg": "linear"}, ("t is given magg", "mag, min, mip, address, lod, compare")),
    "sampler's filter": ("sampler", {"mag": "cubic"}, ("t: mag must be one of nearest, linear, not 'cubic'",)),
    "sampler's mode": ("sampler", {"address": ["repeat", "wrap"]}, ("address must be one of", "'wrap'")),
    "a list for a filter": ("sampler", {"mag": ["linear"]}, ("t: mag must be one of",)),
    "comparison": ("sampler_comparison", bankshot.Sampler(), ("t is a sampler_comparison, which compares",)),
    "no comparison": ("sampler", bankshot.Sampler(compare="less"), ("which does not compare",)),
}


@pytest.mark.parametrize(("type_", "value", "words"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_by_name(type_, value, words):
    declarations = f"@group(0) @binding(0) var t: {type_};"
    with pytest.raises(bankshot.WgslError) as caught:
        simulated("_ = t;", declarations, {} if value is None else {"t": value})
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"mip": "cubic"}, "mip must be one of nearest, linear"),
        ({"address": ()}, "address has 0 modes"),
        ({"address": ("repeat",) * 4}, "address has 4 modes"),
        ({"lod": (2.0, 1.0)}, "lod must be the lowest and the highest"),
        ({"compare": "more"}, "compare must be one of never, less"),
    ],
)
def test_samplers_that_cannot_be(fields, words):
    with pytest.raises(ValueError, match=words):
        bankshot.Sampler(**fields)

"""What `init` writes for each type of binding, and the inputs that it invents."""

import tomllib

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import invented_inputs
from bankshot.oracle.guesses.array_sizes import CONTENTS, Extent
from bankshot.oracle.guesses.invented_inputs import COUNTER, HALF, PADDING, SINGLE, WHOLE, Recipe
from bankshot.oracle.guesses.manifest_text import _key, _toml, manifest_text, reference_text
from bankshot.oracle.guesses.new_manifest import Draft
from bankshot.oracle.guesses.size_uses import size_uses


def drafted(declared, body="", entry="main", **given):
    """A draft in which each runtime-sized array has N elements."""
    text = f"""enable f16; requires immediate_address_space;
        struct Pair {{ weight: f32, at: u32 }}
        struct Flat {{ v: vec3<f32>, n: u32 }}
        struct Nested {{ flat: Flat, m: u32 }}
        struct Tail {{ head: vec4<u32>, tail: array<vec2<f32>> }}
        struct Counted {{ total: atomic<u32>, rest: array<u32, 3> }}
        {declared}
        @compute @workgroup_size(1) fn {entry}() {{ {body} }}"""
    pipeline = bankshot.check(text).pipeline()
    uses = size_uses(pipeline)
    facts = {"contents": CONTENTS[0], "overrides": {}, "dims": {}, "dispatch": [1, 1, 1]} | given
    extents = {v: Extent(("N",), True) for v in pipeline.globals}
    return Draft(pipeline, uses, extents=extents, **facts)


def written(declared, body, **given):
    return tomllib.loads(manifest_text(drafted(declared, body, **given), "k.wgsl", {}, "k.py:f"))


def storage(type_, access="read"):
    return f"@group(0) @binding(0) var<storage, {access}> b: {type_};"


UNIFORM = "@group(0) @binding(0) var<uniform> b: "
BINDINGS = {
    "floats": (storage("array<f32>"), {"dtype": "f32", "shape": ["N"], "init": "normal"}),
    "integers": (storage("array<i32>"), {"dtype": "i32", "shape": ["N"], "init": "uniform"}),
    "halves": (storage("array<f16>"), {"dtype": "f16", "shape": ["2 * ceil(N / 2)"], "init": "normal"}),
    "pairs of halves": (storage("array<vec2<f16>>"), {"dtype": "f16", "shape": ["N", 2], "init": "normal"}),
    "vectors": (storage("array<vec4<f32>>"), {"dtype": "f32", "shape": ["N", 4], "init": "normal"}),
    "padded vectors": (storage("array<vec3<u32>>"), {"dtype": "u32", "shape": ["N", 4], "init": "uniform"}),
    "matrices": (storage("array<mat2x3<f32>>"), {"dtype": "f32", "shape": ["N", 8], "init": "normal"}),
    "fixed": (storage("array<f32, 12>"), {"dtype": "f32", "shape": [12], "init": "normal"}),
    "an odd number of halves": (storage("array<f16, 3>"), {"dtype": "f16", "shape": [4], "init": "normal"}),
    "structs": (storage("array<Pair>"), {"dtype": "u32", "shape": ["N", 2], "init": "zeros"}),
    "a tail": (storage("Tail"), {"dtype": "u32", "shape": ["4 + N * 2"], "init": "zeros"}),
    "atomics": (storage("array<atomic<u32>>", "read_write"), {"dtype": "u32", "shape": ["N"], "init": "zeros"}),
    "an atomic": (storage("atomic<i32>", "read_write"), {"dtype": "i32", "shape": [1], "init": "zeros"}),
    "an atomic member": (storage("Counted", "read_write"), {"dtype": "u32", "shape": [4], "init": "zeros"}),
    "a number": (storage("f32"), {"dtype": "f32", "shape": [1], "init": "normal"}),
    "a struct that is only read": (storage("Pair"), {"struct": {"weight": 0.5, "at": 0}}),
    "a uniform number": (f"{UNIFORM}u32;", {"dtype": "u32", "values": [0]}),
    "a uniform vector": (f"{UNIFORM}vec4<f32>;", {"dtype": "f32", "values": [0.5] * 4}),
    "a uniform vector with padding": (f"{UNIFORM}vec3<f32>;", {"dtype": "f32", "values": [0.5] * 3}),
    "a uniform struct": (f"{UNIFORM}Flat;", {"struct": {"v": [0.5] * 3, "n": 0}}),
    "a uniform struct in a struct": (f"{UNIFORM}Nested;", {"dtype": "u32", "shape": [8], "init": "zeros"}),
    "a uniform matrix": (f"{UNIFORM}mat2x2<f32>;", {"dtype": "f32", "shape": [4], "init": "normal"}),
    "many uniform numbers": (f"{UNIFORM}array<vec4<f32>, 11>;", {"dtype": "f32", "shape": [44], "init": "normal"}),
    "immediates": ("var<immediate> b: Pair;", {"struct": {"weight": 0.5, "at": 0}}),
    "a sampler": ("@group(0) @binding(0) var b: sampler;", {"sampler": {}}),
    "a comparison sampler": ("@group(0) @binding(0) var b: sampler_comparison;", {"sampler": {"compare": "less"}}),
    "a texture": (
        "@group(0) @binding(0) var b: texture_2d<f32>;",
        {"dtype": "u8", "shape": [64, 64, 4], "init": "uniform", "levels": 3},
    ),
    "a texture of integers": (
        "@group(0) @binding(0) var b: texture_2d<u32>;",
        {"dtype": "u32", "shape": [64, 64, 4], "init": "uniform", "levels": 3},
    ),
    "layers": (
        "@group(0) @binding(0) var b: texture_2d_array<i32>;",
        {"dtype": "i32", "shape": [4, 64, 64, 4], "init": "uniform", "levels": 3},
    ),
    "a cube": (
        "@group(0) @binding(0) var b: texture_cube<f32>;",
        {"dtype": "u8", "shape": [6, 64, 64, 4], "init": "uniform", "levels": 3},
    ),
    "a volume": (
        "@group(0) @binding(0) var b: texture_3d<f32>;",
        {"dtype": "u8", "shape": [32, 32, 32, 4], "init": "uniform", "levels": 3},
    ),
    "a line of texels": (
        "@group(0) @binding(0) var b: texture_1d<f32>;", {"dtype": "u8", "shape": [64, 4], "init": "uniform"}
    ),
    "samples": (
        "@group(0) @binding(0) var b: texture_multisampled_2d<f32>;",
        {"dtype": "u8", "shape": [4, 64, 64, 4], "init": "uniform"},
    ),
    "depths": (
        "@group(0) @binding(0) var b: texture_depth_2d;",
        {"dtype": "u16", "shape": [64, 64, 1], "init": "uniform", "levels": 3},
    ),
    "texels to store": (
        "@group(0) @binding(0) var b: texture_storage_2d<rgba8unorm, write>;",
        {"dtype": "u8", "shape": [64, 64, 4], "init": "ones"},
    ),
    "texels to load": (
        "@group(0) @binding(0) var b: texture_storage_2d<rgba32float, read>;",
        {"dtype": "f32", "shape": [64, 64, 4], "init": "ones"},
    ),
    "integers to load": (
        "@group(0) @binding(0) var b: texture_storage_2d<r32uint, read>;",
        {"dtype": "u32", "shape": [64, 64, 1], "init": "uniform"},
    ),
    "channels to load": (
        "@group(0) @binding(0) var b: texture_storage_2d<rg32sint, read_write>;",
        {"dtype": "i32", "shape": [64, 64, 2], "init": "ones"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in BINDINGS if name != "channels to load"])
def test_what_is_written_for_a_binding(name):
    declared, expected = BINDINGS[name]
    use = "_ = textureDimensions(b);" if "texture" in declared else "_ = b;" if "sampler" in declared else "_ = &b;"
    assert written(declared, use)["bind"] == {"b": expected}


@pytest.mark.parametrize(
    ("body", "access", "init"),
    [
        ("b[0] = 1.0;", "read_write", "unwritten"),
        ("b[0] += 1.0;", "read_write", "normal"),
        ("b[0] = b[1];", "read_write", "normal"),
        ("_ = b[0];", "read_write", "normal"),
        ("_ = b[0];", "read", "normal"),
        ("let p = &b[0]; *p = 1.0;", "read_write", "normal"),
        ("var other = array<f32, 2>(); other[0] += 1.0; b[0] = other[0];", "read_write", "unwritten"),
        ("put(3.0);", "read_write", "unwritten"),
        ("add(3.0);", "read_write", "normal"),
    ],
)
def test_an_array_holds_something_before_where_it_may_be_read(body, access, init):
    functions = "fn put(x: f32) { b[0] = x; } fn add(x: f32) { b[0] += x; }" if "(3.0)" in body else ""
    declared = storage("array<f32>", access) + functions
    assert written(declared, body)["bind"]["b"]["init"] == init


@pytest.mark.parametrize("contents", CONTENTS)
def test_integers_start_as_they_did_in_trial_runs(contents):
    declared = storage("array<u32>") + "@group(0) @binding(1) var<storage> f: array<f32>;"
    made = written(declared, "_ = &b; _ = &f;", contents=contents)["bind"]
    assert (made["b"]["init"], made["f"]["init"]) == (contents.init, "normal")


def test_keys_of_the_kernel_are_written_where_they_say_something():
    declared = storage("array<u32>", "read_write")
    plain = written(declared, "b[0] = 1u;")
    assert plain["kernel"] == {"source": "k.wgsl", "entry": "main", "reference": "k.py:f", "dispatch": [1, 1, 1]}
    assert {*plain} == {"kernel", "bind"}
    more = drafted(declared, "b[0] = 1u;", dims={"n": 5, "m": 6}, overrides={"W": 4, "7": True}, dispatch=["n", 2, 1],
                   edges={"n": [1, 4], "m": []}, questions=["how many?", 'which "n"?'])  # fmt: skip
    text = manifest_text(more, "k.wgsl", {"defines": {"A": "1"}, "include": []}, "k.py:f")
    made = tomllib.loads(text)
    assert made["kernel"] == {
        "source": "k.wgsl", "entry": "main", "defines": {"A": "1"}, "reference": "k.py:f", "dims": {"n": 5, "m": 6},
        "dispatch": ["n", 2, 1], "overrides": {"W": 4, "7": True},
    }  # fmt: skip
    assert made["questions"] == ["how many?", 'which "n"?']
    assert made["sweep"] == [{"n": 5}, {"n": [1, 4]}]
    assert text.endswith("n = [1, 4]\n")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"a": 1, "b c": [2, "x"]}, '{ a = 1, "b c" = [2, "x"] }'),
        (True, "true"),
        (0.5, "0.5"),
        ("größe", '"größe"'),
        ([], "[]"),
    ],
)
def test_values_of_toml(value, text):
    assert _toml(value) == text
    assert tomllib.loads(f"x = {text}")["x"] == value


def test_keys_that_toml_does_not_take_are_quoted():
    assert [_key(text) for text in ("n", "7", "a_b", "a b")] == ["n", '"7"', "a_b", '"a b"']
    assert tomllib.loads(f"{_key('größe')} = 1") == {"größe": 1}
    assert _key("größe").isascii()


# ---- the stub of the reference -------------------------------------------------------------------------


def test_the_stub_describes_arrays_and_converts_what_is_read():
    declared = """
        @group(0) @binding(0) var<uniform> p: Flat;
        @group(0) @binding(1) var<uniform> k: u32;
        @group(0) @binding(2) var<storage> x: array<vec2<f32>>;
        @group(0) @binding(3) var<storage> np: array<u32>;
        @group(0) @binding(4) var<storage, read_write> y: array<f32>;
        @group(0) @binding(5) var t: texture_2d<f32>;"""
    made = drafted(declared, "_ = &p; _ = &k; _ = &x; _ = &np; y[0] = 1.0; _ = textureDimensions(t);")
    lines = reference_text(made, "k.toml", "f").splitlines()
    assert lines[8:] == [
        "    dims: none. arrays, as they are before the run:", "", "    p: a struct of v, n", "    k: u32, [0]",
        "    x: f32 [N, 2]", "    np: u32 [N]", "    y: f32 [N]", '    """',
        '    x = arrays["x"].astype(np.float64)', '    np_ = arrays["np"]', '    return NotImplemented  # {"y": …}',
    ]  # fmt: skip
    assert "    dims: n, m. arrays" in reference_text(drafted(declared, "y[0] = 1.0;", dims={"n": 1, "m": 2}), "k", "f")


@pytest.mark.parametrize("name", ["np", "arrays", "dims", "lambda", "x"])
def test_names_in_the_stub_are_names_of_python(name):
    declared = f"""@group(0) @binding(0) var<storage> {name}: array<u32>;
        @group(0) @binding(1) var<storage, read_write> b: array<u32>;"""
    text = reference_text(drafted(declared, f"_ = &{name}; b[0] = 1u;"), "k", "f")
    assert f'    {name}{"" if name == "x" else "_"} = arrays["{name}"]\n' in text


# ---- invented inputs -----------------------------------------------------------------------------------

W, S, H, C, P = WHOLE, SINGLE, HALF, COUNTER, PADDING
LAYOUTS = {
    "u32": [W, W],
    "vec3<f32>": [S] * 6,
    "array<vec3<f32>, 2>": ([S] * 6 + [P] * 2) * 2,
    "array<f16, 2>": [H, H],
    "atomic<u32>": [C, C],
    "mat2x3<f32>": ([S] * 6 + [P] * 2) * 2,
    "Pair": [S, S, W, W],
    "Flat": [S] * 6 + [W] * 2,
    "Nested": [S] * 6 + [W] * 2 + [W] * 2 + [P] * 6,
    "Counted": [C, C] + [W] * 6,
    "array<u32>": [W] * 6,  # the recipe's 3 elements
    "Tail": [W] * 8 + [S] * 12,
    "array<Pair>": [S, S, W, W] * 3,
}


@pytest.mark.parametrize("type_", LAYOUTS)
def test_the_kinds_of_elements_in_a_buffer(type_):
    (stored,) = drafted(storage(type_, "read_write"), "_ = &b;").pipeline.store_types.values()
    assert invented_inputs.layout(stored, Recipe("", (1,), 1, 3)).tolist() == LAYOUTS[type_]


def test_contents_follow_the_kinds_of_elements():
    codes = np.array([W, W] * 500 + [S, S] * 500 + [H] * 1000 + [C, C] * 500 + [P] * 1000, np.uint8)
    recipe = Recipe("", (4, 8), 16, 3)
    for space, least in (("storage", -1.0), ("uniform", 0.0), ("immediate", 0.0)):
        made = invented_inputs.contents("b", codes, recipe, space)
        whole, single, half = (
            made[:2000].view(np.uint32),
            made[2000:4000].view(np.float32),
            made[4000:6000].view(np.float16),
        )
        assert {*whole.tolist()} == ({4, 8} if space != "storage" else {*range(16)})
        for floats in (single, half):
            assert least <= floats.min() < least + 0.1
            assert 0.9 < floats.max() <= 1
        assert not made[6000:].any()
        assert (made == invented_inputs.contents("b", codes, recipe, space)).all()
        assert (made != invented_inputs.contents("c", codes, recipe, space)).any()


def test_the_bindings_that_are_generated():
    declared = """@group(0) @binding(0) var<storage> x: array<u32>;
        var<immediate> k: u32; var<workgroup> w: array<u32, 4>;
        var<private> v: u32; @group(0) @binding(1) var s: sampler; @group(0) @binding(2) var c: sampler_comparison;
        @group(0) @binding(3) var t: texture_2d<f32>;"""
    body = "_ = &x; _ = &k; w[0] = 1u; v = 1u; _ = s; _ = c; _ = textureDimensions(t);"
    made = invented_inputs.bindings(drafted(declared, body).pipeline, Recipe("", (7,), 4, 5))
    assert {*made} == {"x", "k", "s", "c", "t"}
    assert (made["s"], made["c"], made["x"].nbytes) == ({}, {"compare": "less"}, 20)
    assert made["k"].view(np.uint32).tolist() == [7]
    assert [level.shape for level in made["t"]] == [(64, 64, 4), (32, 32, 4), (16, 16, 4)]


def test_values_of_overrides_without_a_default():
    module = bankshot.check("""enable f16; override a: u32; override b: bool; override c: f32; override d: f16;
        override e = 3u; @id(7) override f: i32; @compute @workgroup_size(1) fn main() {}""")
    assert invented_inputs.override_values(module) == {"a": 4, "b": True, "c": 0.5, "d": 0.5, "7": 4}
    assert invented_inputs.override_values(module, 9)["a"] == 9


@pytest.mark.parametrize(
    ("body", "grid"),
    [
        ("", (1, 1, 1)), ("_ = id.x;", (6, 1, 1)), ("_ = id.y;", (1, 6, 1)), ("_ = id.z;", (1, 1, 6)),
        ("_ = id.xy;", (3, 2, 1)), ("_ = id.xz;", (3, 1, 2)), ("_ = id.y + id.z;", (1, 3, 2)), ("_ = id;", (3, 2, 2)),
    ],
)  # fmt: skip
def test_workgroups_lie_along_the_axes_whose_ids_are_read(body, grid):
    text = f"@compute @workgroup_size(1) fn main(@builtin(global_invocation_id) id: vec3<u32>) {{ {body} }}"
    assert invented_inputs.grid(bankshot.check(text).pipeline().entry) == grid


def test_external_textures_are_refused():
    declared = "@group(0) @binding(0) var b: texture_external;"
    (stored,) = drafted(declared, "_ = textureDimensions(b);").pipeline.store_types.values()
    with pytest.raises(UsageError, match="b is a texture_external"):
        invented_inputs.texels("b", stored, Recipe("", (1,), 1, 1))


def test_an_array_takes_as_many_elements_as_fit_and_the_least_that_it_needs():
    (stored,) = drafted(storage("array<vec4<u32>>"), "_ = &b;").pipeline.store_types.values()
    for tail, elements in ((3, 3), (1 << 20, 1 << 20), (1 << 21, 1 << 20)):
        assert invented_inputs._size(stored, tail) == (16 * elements, elements)
    (halves,) = drafted(storage("array<f16>"), "_ = &b;").pipeline.store_types.values()
    assert [invented_inputs._size(halves, tail) for tail in (1, 2, 3)] == [(4, 2), (4, 2), (8, 4)]

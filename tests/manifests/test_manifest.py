"""Manifests: what they mean, and the errors of invalid ones."""

import numpy as np
import pytest

import bankshot
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests import inputs, manifest_loader
from bankshot.oracle.manifests.manifest_files import is_manifest

GOOD = """\
[kernel]
source = "k.wgsl"
entry = "main"
dims = { M = 6, N = 4 }
dispatch = ["ceil(N / 3)", "M"]
overrides = { WG = 8 }

[bind.A]
var = "src"
dtype = "f32"
shape = ["M", "2 * N"]
init = "normal"

[bind.size]
dtype = "u32"
values = ["M", "N", 0]

[[sweep]]
M = [1, 2]
N = [3, 4]

[[sweep]]
M = 100
cost = "heavy"

[expect]
A = { rule = "ulp", max = 2 }
barriers = "2 * M"
allow = ["out-of-bounds"]
"""


SIZED = """\
override COLUMNS: u32;
override HALF = false;
struct Sizes { rows: u32, columns: u32, offset: u32, scale: f32 }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3u) {
    y[id.y * COLUMNS + id.x + sizes.offset] = select(1.0, 0.5, HALF) * f32(sizes.rows) * (sizes.scale + 1.0);
}
"""
SIZED_MANIFEST = """\
[kernel]
source = "k.wgsl"
dims = { M = 2, N = 3 }
dispatch = ["2 * N", "M"]
overrides = { COLUMNS = "2 * N", HALF = true }
[bind.sizes]
struct = { rows = "M", columns = "2 * N" }
[bind.y]
dtype = "f32"
shape = ["M", "2 * N"]
init = "unwritten"
[[sweep]]
N = [3, 5]
"""


@pytest.fixture
def sized(write):
    path = write(SIZED_MANIFEST)
    (path.parent / "k.wgsl").write_text(SIZED)
    return manifest_loader.load(path)


def test_folders_of_includes_are_relative_to_the_manifest(write, tmp_path, monkeypatch):
    for folder, columns in (("headers", 3), (".", 5)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "columns.wgsl").write_text(f"const N = {columns};\n")
    path = write(GOOD.replace('entry = "main"', 'include_dirs = ["headers"]'))
    monkeypatch.chdir(tmp_path.parent)
    assert manifest_loader.load(path).include_dirs == (tmp_path / "headers",)


@pytest.mark.parametrize("size", ["M - 6", "M - 7"])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_each_size_of_a_grid_is_at_least_1(write, size, axis):
    sizes = ["2", "2", "2"]
    sizes[axis] = size
    kernel = manifest_loader.load(write(GOOD.replace('["ceil(N / 3)", "M"]', str(sizes).replace("'", '"'))))
    with pytest.raises(UsageError, match="and each size must be at least 1"):
        kernel.case(kernel.shape({}))


def test_overrides_depend_on_dims(sized):
    from bankshot.oracle.judge.case_run import simulate

    assert [sized.case(shape).overrides for shape in sized.shapes] == [
        {"COLUMNS": 6, "HALF": True},
        {"COLUMNS": 10, "HALF": True},
    ]
    for shape in sized.shapes:
        run = simulate(sized.case(shape), "nvidia", "none")
        assert run.outputs["y"].tolist() == [[1.0] * 2 * shape.dims["N"]] * 2


def test_members_without_a_value_are_zero_and_an_audit_says_so(sized):
    from bankshot.oracle.audit import Options, audit

    case = sized.case(sized.shapes[0])
    assert case.unset == ["sizes.offset", "sizes.scale"]
    notes = audit(case, Options(gpu=False)).notes
    assert "0, as the manifest gives no value: sizes.offset, sizes.scale" in notes


VECTORS = """
struct Inner { a: u32 }
struct Sizes { rows: u32, place: vec3f, taps: array<vec4u, 2>, inner: Inner }
@group(0) @binding(0) var<uniform> sizes: Sizes;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() {
    y[0] = sizes.place.x; y[1] = sizes.place.y; y[2] = sizes.place.z; y[3] = f32(sizes.taps[1].y);
}
"""


def with_struct(write, text):
    path = write(SIZED_MANIFEST.replace('overrides = { COLUMNS = "2 * N", HALF = true }\n', "").replace(
        'struct = { rows = "M", columns = "2 * N" }', f"struct = {text}"
    ))  # fmt: skip
    (path.parent / "k.wgsl").write_text(VECTORS)
    kernel = manifest_loader.load(path)
    return kernel.case(kernel.shapes[0])


def test_members_of_several_numbers_take_lists(write):
    from bankshot.oracle.judge.case_run import simulate

    case = with_struct(write, '{ place = ["N", 0.5, -2], taps = [1, 2, 3, 4, 5, "2 * N", 7, 8] }')
    assert simulate(case, "nvidia", "none").outputs["y"].reshape(-1)[:4].tolist() == [3.0, 0.5, -2.0, 6.0]
    case = with_struct(write, "{ place = 4 }")
    assert simulate(case, "nvidia", "none").outputs["y"].reshape(-1)[:4].tolist() == [4.0, 4.0, 4.0, 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{ place = [1, 2] }", "sizes.place is given 2 numbers, and holds 3"),
        ("{ rows = [1, 2] }", "sizes.rows is given 2 numbers, and holds 1"),
        ("{ place = [[1, 2, 3]] }", r"`struct` holds \[1, 2, 3\] in a list, which is no number and no expression"),
        ('{ place = ["Q", 2, 3] }', "`Q` is no dimension"),
        ("{ inner = 3 }", "sizes.inner is a struct itself; give all of sizes as u32 `values`"),
    ],
)
def test_lists_that_do_not_fit(write, text, message):
    with pytest.raises(UsageError, match=message):
        with_struct(write, text)


def test_a_manifest_is_read(write):
    kernel = manifest_loader.load(write(GOOD))
    assert [str(s) for s in kernel.shapes] == ["M=1 N=3", "M=1 N=4", "M=2 N=3", "M=2 N=4", "M=100 N=4"]
    assert [s.cost for s in kernel.shapes] == ["quick"] * 4 + ["heavy"]
    case = kernel.case(kernel.shapes[1])
    assert case.grid == (2, 1, 1)
    assert {name: (a.shape, a.dtype.name) for name, a in case.bindings.items()} == {
        "src": ((1, 8), "float32"),
        "size": ((3,), "uint32"),
    }
    assert case.bindings["size"].tolist() == [1, 4, 0]
    assert (kernel.overrides, kernel.counters, kernel.allow) == ({"WG": 8}, {"barriers": "2 * M"}, {"out-of-bounds"})
    assert str(kernel.rules["A"]) == "ulp max 2"
    assert case.name_of("src") == "A"


@pytest.mark.parametrize("text", ['A = "exact"', 'A = { rule = "exact" }'])
def test_a_rule_without_limits_for_short(write, text):
    kernel = manifest_loader.load(write(GOOD.replace('A = { rule = "ulp", max = 2 }', f"{text}\ngpu.{text}")))
    assert (str(kernel.rules["A"]), str(kernel.gpu_rules["A"])) == ("exact", "exact")
    with pytest.raises(UsageError, match=r"`A`: rule must be one of exact, ulp, .*, not 'close-ish'"):
        manifest_loader.load(write(GOOD.replace('{ rule = "ulp", max = 2 }', '"close-ish"')))


def test_a_dim_that_is_no_size_may_be_zero(write):
    """Such a dim is a switch or an offset."""
    text = GOOD.replace("M = 6", "BEGIN = 0, M = 6").replace('["M", "N", 0]', '["M", "N", "BEGIN"]')
    kernel = manifest_loader.load(write(text.replace("M = 100", "M = 100\nBEGIN = [0, 2]")))
    assert [str(s) for s in kernel.shapes][-2:] == ["BEGIN=0 M=100 N=4", "BEGIN=2 M=100 N=4"]
    assert [kernel.case(s).bindings["size"].tolist() for s in kernel.shapes[-2:]] == [[100, 4, 0], [100, 4, 2]]


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("[kernel]\nsource = 'k.wgsl'\n", True),
        ("[ kernel ] # ours\nsource = 'k.wgsl'\n", True),
        ("kernel.source = 'k.wgsl'\n", True),
        ("kernel = { source = 'k.wgsl' }\n", True),
        ("[kernel\nsource = 'k.wgsl'\n", True),  # no TOML, which an audit is to tell
        ("[kernel]\nsource = \n", True),
        ("[tool.kernel]\nsource = 'k.wgsl'\n", False),
        ("kernel = 'k.wgsl'\n", True),
        ("# [kernel]\n[tool\n", False),
        ("", False),
    ],
)
def test_manifests_are_found_among_other_files(tmp_path, text, is_one):
    (tmp_path / "some.toml").write_text(text)
    assert is_manifest(tmp_path / "some.toml") == is_one


def test_without_a_sweep_the_default_sizes_are_the_shape(write):
    kernel = manifest_loader.load(write(GOOD[: GOOD.index("[[sweep]]")]))
    assert [str(s) for s in kernel.shapes] == ["M=6 N=4"]
    assert str(kernel.shape({"M": 9})) == "M=9 N=4"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('entry = "main"', "entry = 3", "k.toml:3: `entry` must be a string, not 3"),
        ('init = "normal"', 'init = "normal"\nseed = -1', "k.toml:8: `seed` must be 0 or more, not -1"),
        ('entry = "main"', "schedules = 1", "k.toml:3: `schedules` must be an integer of at least 2, not 1"),
        ('entry = "main"', "schedules = 1048577", "k.toml:3: `schedules` is 1048577, and the largest"),
        ('entry = "main"', "schedules = 2\nseed = -1", "k.toml:4: `seed` must be a non-negative integer, not -1"),
        ('entry = "main"', "budget = 0", "k.toml:3: `budget` must be "),
        ('entry = "main"', 'entri = "main"', "k.toml:3: [kernel] has an unknown key `entri`; did you mean `entry`?"),
        ("source =", "sauce =", "k.toml:1: [kernel] lacks `source`; is `sauce` meant to be it?"),
        ('"k.wgsl"', '"x.wgsl"', "x.wgsl does not exist"),
        ("M = 6", "M = -6", "k.toml:4: `M` must be a non-negative integer, not -6"),
        ("M = 6", "M = true", "k.toml:4: `M` must be a non-negative integer, not True"),
        ("M = 6", "M = 6.0", "k.toml:4: `M` must be a non-negative integer, not 6.0"),
        ('"M"]\noverrides', '"Q"]\noverrides', "k.toml:5: `Q` is no dimension; [kernel] dims has M"),
        ("{ WG = 8 }", '{ WG = "2 * Q" }', "k.toml:6: `2 * Q` uses Q, which is no dimension; [kernel] dims has M"),
        ('"ceil(N / 3)"', '"ceil(N /"', "k.toml:5: `ceil(N /` is not arithmetic"),
        (
            'dtype = "f32"',
            'dtype = "f33"',
            "k.toml:10: `dtype` must be one of f32, f16, i32, u32, i16, u16, i8, u8, i4, u4, not 'f33'",
        ),
        ('init = "normal"', 'init = "gauss"', "k.toml:12: `init` must be one of normal,"),
        ('init = "normal"', "", "k.toml:8: a binding is made by exactly one of init, file, values, struct"),
        ('shape = ["M", "2 * N"]', "", "k.toml:8: [bind.A] lacks `shape`"),
        ('var = "src"', 'vra = "src"', "k.toml:9: [bind.A] has an unknown key `vra`; did you mean `var`?"),
        ("M = 100", "K = 100", "k.toml:23: [[sweep]] has an unknown key `K`"),
        ('cost = "heavy"', 'cost = "huge"', "k.toml:24: `cost` must be quick or heavy, not 'huge'"),
        ('rule = "ulp"', 'rule = "ulps"', "`A`: rule must be one of exact, ulp,"),
        ("max = 2", "mx = 2", "[expect.A] has an unknown key `mx`; did you mean `max`?"),
        (
            "[expect]",
            '[expect]\nunchecked = { B = "x" }',
            "[expect.unchecked] has an unknown key `B`; known are A, size",
        ),
        ("[expect]", '[expect]\nunchecked = { A = " " }', "`unchecked` needs the reason why nothing checks A"),
        ('"M", "2 * N"', '"K", "2 * N"', "k.toml:11: `K` is no dimension; [kernel] dims has M, N"),
        (
            '"2 * N"]\ninit',
            '"2 * K"]\ninit',
            "k.toml:11: `2 * K` uses K, which is no dimension; [kernel] dims has M, N",
        ),
        ('"2 * M"', '"2 * K"', "k.toml:28: `2 * K` uses K, which"),
        ("[expect]", "[expext]", "the file has an unknown key `expext`; did you mean `expect`?"),
        ("[kernel]", "[kernel", "k.toml:1: expected"),
        ("[[sweep]]\nM = [1, 2]\nN = [3, 4]\n\n[[sweep]]", "[sweep]", "`sweep` must be a list"),
    ],
)
def test_a_mistake_is_named_with_its_line(write, old, new, message):
    assert GOOD.count(old) == 1
    with pytest.raises(UsageError) as caught:
        manifest_loader.load(write(GOOD.replace(old, new)))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("", (None, None, 0)),
        ("schedules = 2\nseed = 0", (None, 2, 0)),
        ("schedules = 1048576\nseed = 7\nbudget = 1", (1, 1 << 20, 7)),
    ],
)
def test_the_schedules_and_the_budget_of_a_kernel(write, lines, expected):
    kernel = manifest_loader.load(write(GOOD.replace('entry = "main"', lines)))
    assert (kernel.budget, kernel.schedules, kernel.seed) == expected


# The keys of tables, as docs/manifests.md lists them.
KEYS = {
    'entry = "main"': (
        *("source", "entry", "name", "reference", "dims", "dispatch", "overrides", "defines", "include_dirs"),
        *("preprocess", "budget", "schedules", "seed"),
    ),
    'var = "src"': ("var", "dtype", "shape", "init", "file", "values", "struct", "sampler", "seed", "levels"),
}


@pytest.mark.parametrize(("line", "key"), [(line, key) for line, keys in KEYS.items() for key in keys])
def test_each_key_is_proposed_for_one_that_resembles_it(write, line, key):
    with pytest.raises(UsageError, match=rf"has an unknown key `{key}x`; did you mean `{key}`\?"):
        manifest_loader.load(write(GOOD.replace(line, f"{line}\n{key}x = 1")))


def test_the_largest_size_is_one_that_floats_hold(write):
    kernel = manifest_loader.load(write(GOOD))
    assert kernel.shape({"M": 2**53 - 1}).dims["M"] == 2**53 - 1
    with pytest.raises(UsageError, match=r"M=9007199254740992 is over 9,007,199,254,740,991"):
        kernel.shape({"M": 2**53})


def test_free_outputs(write):
    text = GOOD.replace('entry = "main"', 'entry = "main"\nreference = "r"') + 'free = ["A"]\n'
    assert manifest_loader.load(write(text)).free == {"A"}
    with pytest.raises(UsageError, match=r"k.toml:31: `free` names B, which is no binding"):
        manifest_loader.load(write(text.replace('["A"]', '["B"]')))
    with pytest.raises(UsageError, match="outputs that are `free` need a reference to be compared with"):
        manifest_loader.load(write(text.replace('reference = "r"', "")))


TEXTURED = """\
[kernel]
source = "k.wgsl"
dims = { W = 8 }
dispatch = [1]

[bind.image]
dtype = "u8"
shape = [3, 5, "W", 4]
init = "uniform"
levels = 3

[bind.s]
sampler = { mag = "linear", address = ["repeat", "mirror-repeat"] }

[expect.gpu]
image = { rule = "close", rtol = 0, atol = 0.5 }
"""
IMAGES = """
@group(0) @binding(0) var image: texture_2d_array<f32>;
@group(0) @binding(1) var s: sampler;
@group(0) @binding(2) var<storage> buffer: array<u32>;
@compute @workgroup_size(1) fn main() {}
"""


@pytest.fixture
def images(write, tmp_path):
    (tmp_path / "k.wgsl").write_text(IMAGES)
    return write


def test_textures_and_samplers(images):
    kernel = manifest_loader.load(images(TEXTURED))
    case = kernel.case(kernel.shapes[0])
    assert [(a.shape, a.dtype.name) for a in case.arrays["image"]] == [
        ((3, 5, 8, 4), "uint8"),
        ((3, 2, 4, 4), "uint8"),
        ((3, 1, 2, 4), "uint8"),
    ]
    assert bankshot.Sampler("linear", address=("repeat", "mirror-repeat")) == bankshot.Sampler(
        **{**case.arrays["s"], "address": tuple(case.arrays["s"]["address"])}
    )
    assert str(kernel.gpu_rules["image"]) == "close rtol 0 atol 0.5"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("levels = 3", "levels = 0", "k.toml:10: `levels` must be a positive integer, not 0"),
        (
            "[bind.image]",
            '[bind.image]\nvar = "buffer"',
            "binding buffer is a array<u32>, and only textures have levels",
        ),
        ("[expect.gpu]\nimage", "[expect.gpu]\nimagine", "has an unknown key `imagine`; did you mean `image`?"),
        ('init = "uniform"', 'file = "x.npy"', "k.toml:10: only `init` makes `levels`"),
        ('sampler = { mag = "linear"', 'dtype = "f32"\nsampler = { mag = "linear"', "has an unknown key `dtype`"),
    ],
)
def test_mistakes_with_textures(images, old, new, message):
    def make():
        kernel = manifest_loader.load(path)
        return kernel.case(kernel.shapes[0])

    path = images(TEXTURED.replace(old, new))
    with pytest.raises(UsageError) as caught:
        make()
    assert message in str(caught.value)


def test_an_expression_that_fails_at_one_shape_names_it(write):
    kernel = manifest_loader.load(write(GOOD.replace('"ceil(N / 3)"', '"N / 3"')))
    with pytest.raises(UsageError, match=r"k.toml: at M=6 N=4: `N / 3` is 4/3, not an integer"):
        kernel.case(kernel.shape({}))


def test_an_unknown_dim_is_named(write):
    with pytest.raises(UsageError, match="no dimension is named Q; there are M, N"):
        manifest_loader.load(write(GOOD)).shape({"Q": 1})


SCALES = """\
[bind.scales]
dtype = "u32"
shape = ["M", "2 * N"]
init = "nf4.absmax"
of = "A"

[bind.size]"""
PACKED = GOOD.replace('dtype = "f32"', 'dtype = "u32"').replace('"normal"', '"nf4"').replace("[bind.size]", SCALES)


def test_packed_weights_and_their_scales_come_from_one_matrix(write):
    kernel = manifest_loader.load(write(PACKED))
    arrays = kernel.case(kernel.shape({})).arrays
    for name, kind in (("A", "nf4"), ("scales", "nf4.absmax")):
        assert np.array_equal(arrays[name], inputs.generate(kind, "A", (6, 8), "u32"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('of = "A"', 'of = "B"', "k.toml:14: `of` of scales names B, which is no binding"),
        (
            '"u32"\nshape = ["M", "2 * N"]\ninit = "nf4"',
            '"f32"\nshape = ["M"]\ninit = "nf4"',
            "`nf4` makes u32, not f32",
        ),
    ],
)
def test_a_mistake_about_packed_weights_is_named(write, old, new, message):
    assert PACKED.count(old) == 1
    with pytest.raises(UsageError) as caught:
        manifest_loader.load(write(PACKED.replace(old, new)))
    assert message in str(caught.value)


def test_a_missing_manifest(tmp_path):
    with pytest.raises(UsageError, match="there is no such file"):
        manifest_loader.load(tmp_path / "none.toml")


def test_a_file_must_fit(write, tmp_path):
    text = GOOD.replace('init = "normal"', 'file = "a.npy"')
    np.save(tmp_path / "a.npy", np.arange(48, dtype=np.float32))
    kernel = manifest_loader.load(write(text))
    assert kernel.case(kernel.shape({})).arrays["A"].shape == (6, 8)
    with pytest.raises(UsageError, match=r"holds float32\[48\], binding A is f32\[7, 8\]"):
        kernel.case(kernel.shape({"M": 7}))


# ---- goldens -----------------------------------------------------------------------------------------


def test_each_sweep_may_have_a_golden_or_not(write):
    def wanted(text):
        return [shape.golden for shape in manifest_loader.load(write(text)).shapes]

    assert wanted(GOOD) == [False] * 5
    assert wanted(GOOD + "golden = true\n") == [True] * 5
    assert wanted(GOOD.replace("M = 100", 'M = 100\ngolden = "outputs"')) == [False] * 4 + ["outputs"]
    assert wanted(GOOD.replace("M = 100", "M = 100\ngolden = false") + "golden = true\n") == [True] * 4 + [False]
    with pytest.raises(UsageError, match=r"k\.toml:\d+: `golden` must be true, false or 'outputs', not 'yes'"):
        wanted(GOOD + 'golden = "yes"\n')

"""`bankshot init`: manifests for shaders that have none, which run at once."""

import json
import tomllib

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot import check
from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.guesses import new_manifest
from bankshot.oracle.guesses.manifest_text import manifest_text, reference_text
from bankshot.oracle.guesses.new_manifest import draft

SCALE = """
struct Params { n: u32, factor: f32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= params.n { return; }
    y[id.x] = params.factor * x[id.x];
}
"""
MATMUL = """
@group(0) @binding(0) var<storage, read> A: array<f32>;
@group(0) @binding(1) var<storage, read> B: array<f32>;
@group(0) @binding(2) var<storage, read_write> C: array<f32>;
@group(0) @binding(3) var<uniform> dims: vec4<u32>;
@compute @workgroup_size(16, 16)
fn multiply(@builtin(global_invocation_id) id: vec3<u32>) {
    let M = dims.x; let N = dims.y; let K = dims.z;
    let row = id.y; let col = id.x;
    if row >= M || col >= N { return; }
    var sum = 0.0;
    for (var k = 0u; k < K; k++) { sum += A[row * K + k] * B[k * N + col]; }
    C[row * N + col] = sum;
}
"""
ROWS = """
override WIDTH: u32;
@group(0) @binding(0) var<uniform> cols: u32;
@group(0) @binding(1) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> sums: array<f32>;
@compute @workgroup_size(32)
fn rows(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    if lane > 0u { return; }
    for (var k = 0u; k < cols; k++) { sums[id.x] += f32(WIDTH) * dot(x[id.x * cols + k], vec4(1.0)); }
}
"""
LENGTH = """
@group(0) @binding(0) var<storage, read_write> x: array<vec2<f32>>;
@compute @workgroup_size(32)
fn double(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.y * 512u + id.x;
    if i < arrayLength(&x) { x[i] *= 2.0; }
}
"""
GATHER = """
@group(0) @binding(0) var<storage, read> at: array<u32>;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> n: u32;
@compute @workgroup_size(8)
fn gather(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < n { y[id.x] = x[at[id.x]]; }
}
"""
TILED = """
@group(0) @binding(0) var<uniform> width: u32;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
fn store(column: u32, row: u32) { if column < width { y[row * width + column] = x[row * width + column]; } }
@compute @workgroup_size(32)
fn copy(@builtin(workgroup_id) wid: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    for (var i = 0u; i < 4u; i++) { store(wid.x * 128u + i * 32u + lane, wid.y); }
}
"""
SWIZZLED = """
struct Size { width: u32, height: u32 }
@group(0) @binding(0) var<uniform> size: Size;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8, 4)
fn copy(@builtin(global_invocation_id) gid: vec3<u32>) {
    let id = gid;
    let p = vec2u(id.xy);
    if any(p >= vec2u(size.width, size.height)) { return; }
    y[p.y * size.width + p.x] = x[p.y * size.width + p.x];
}
"""
IMAGE = """
@group(0) @binding(0) var image: texture_2d<f32>;
@group(0) @binding(1) var mirrored: texture_storage_2d<rgba8unorm, write>;
@compute @workgroup_size(16, 4)
fn mirror(@builtin(global_invocation_id) id: vec3<u32>) {
    textureStore(mirrored, id.xy, textureLoad(image, vec2(textureDimensions(image).x - 1 - id.x, id.y), 0));
}
"""
VOLUME = """
@group(0) @binding(0) var volume: texture_storage_3d<r32float, write>;
@compute @workgroup_size(4, 4, 4)
fn fill(@builtin(global_invocation_id) id: vec3<u32>) { textureStore(volume, id, vec4f(1.0)); }
"""

WRONG_ROW = """
struct Size { width: u32, height: u32 }
@group(0) @binding(0) var<uniform> size: Size;
@group(0) @binding(1) var<storage, read> source: array<f32>;
@group(0) @binding(2) var<storage, read_write> copied: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(8, 8)
fn copy(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    if id.x >= size.width || id.y >= size.height { return; }
    tile[i] = source[id.y * size.height + id.x];
    copied[id.y * size.width + id.x] = tile[i];
}
"""


def drafted(text):
    module = check(text)
    (entry,) = module.entry_points
    made = draft(module, entry.name)
    return made, {variable.name: each.factors for variable, each in made.extents.items()}


@pytest.mark.parametrize(
    ("text", "dims", "dispatch", "shapes"),
    [
        (SCALE, ["n"], ["ceil(n / 64)", 1, 1], {"x": ("n",), "y": ("n",)}),
        (
            MATMUL,
            ["M", "N", "K"],
            ["ceil(N / 16)", "ceil(M / 16)", 1],
            {"A": ("M", "K"), "B": ("K", "N"), "C": ("M", "N")},
        ),
        (ROWS, ["cols", "groups_x"], ["groups_x", 1, 1], {"x": ("groups_x", "cols"), "sums": ("groups_x",)}),
        (LENGTH, ["N"], ["ceil(N / 32)", 1, 1], {}),
        (GATHER, ["n"], ["ceil(n / 8)", 1, 1], {"at": ("n",), "x": ("n",), "y": ("n",)}),
        (
            TILED,
            ["width", "groups_y"],
            ["ceil(width / 128)", "groups_y", 1],
            {"x": ("groups_y", "width"), "y": ("groups_y", "width")},
        ),
        (
            SWIZZLED,
            ["width", "height"],
            ["ceil(width / 8)", "ceil(height / 4)", 1],
            {"x": ("height", "width"), "y": ("height", "width")},
        ),
        (IMAGE, [], [4, 16, 1], {}),
        (VOLUME, [], [8, 8, 8], {}),
    ],
    ids=["guard", "matmul", "rows", "arrayLength", "gather", "function", "swizzles", "image", "volume"],
)
def test_sizes_and_dispatch_follow_from_comparisons_and_accesses(text, dims, dispatch, shapes):
    made, found = drafted(text)
    assert ([*made.dims], made.dispatch, found) == (dims, dispatch, shapes)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (SCALE, ["which values does the host pass for params.factor? 0.5 is invented"]),
        (MATMUL, []),
        (ROWS, ["how many workgroups does the host dispatch?", "WIDTH = 4 is invented"]),
        (GATHER, ["what do integers in storage hold? `arange` keeps every access in bounds"]),
        (
            SCALE.replace("x[id.x];", "x[id.x + 1];"),
            ["accesses 1 more than n elements of x: is it larger, or is an index out of bounds?", "params.factor"],
        ),
        (
            SCALE.replace("y[id.x] =", "y[id.x - params.n % 64u] ="),
            ["sizes are multiples of the tiles here, because the kernel fails with others", "params.factor"],
        ),
        (
            MATMUL.replace("C[row * N + col]", "C[row * N + col + (N - M) * 65536u]"),
            ["sizes are equal multiples of 64 here, because the kernel fails with others"],
        ),
        (SCALE.replace("if id.x >= params.n { return; }", "loop { if params.n == 7 { break; } }"), ["every loop ends"]),
    ],
    ids=["floats", "none", "groups and overrides", "indices", "off by one", "multiples", "equal", "endless"],
)
def test_what_no_run_can_tell_is_a_question(text, words):
    made, _ = drafted(text)
    for each in words:
        assert sum(each in question for question in made.questions) == 1, made.questions
    assert len(made.questions) == len(words) or "loop {" in text


NESTED = """
struct Inner { a: f32, b: u32 }
struct Outer { inner: Inner, n: u32 }
@group(0) @binding(0) var<uniform> p: Outer;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(1) fn main() { if p.n > 3u { y[0] = p.inner.a + f32(p.inner.b); } }
"""
FLAT = NESTED.replace("inner: Inner", "inner: vec2<f32>").replace("p.inner.a + f32(p.inner.b)", "p.inner.x")


@pytest.mark.parametrize(("text", "key"), [(FLAT, "struct"), (NESTED, "init")])
def test_a_struct_is_written_by_member_if_none_is_a_struct(text, key):
    made, _ = drafted(text)
    written = tomllib.loads(manifest_text(made, "k.wgsl", {}, "k.py:expected"))["bind"]["p"]
    assert {"struct", "init"} & {*written} == {key}


MANIFEST = """\
# Written by `bankshot init`. An audit repeats the questions: delete each that you have answered.
questions = [
    "which values does the host pass for params.factor? 0.5 is invented",
]

[kernel]
source = "k.wgsl"
entry = "scale"
reference = "k.py:expected"
dims = { n = 131 }
dispatch = ["ceil(n / 64)", 1, 1]

[bind.params]
struct = { n = "n", factor = 0.5 }

[bind.x]
dtype = "f32"
shape = ["n"]
init = "normal"

[bind.y]
dtype = "f32"
shape = ["n"]
init = "unwritten"

[[sweep]]
n = 131

[[sweep]]
n = [1, 63, 64, 65]
"""
STUB = '''\
"""What the kernel of k.toml should compute, in NumPy."""

import numpy as np


def expected(arrays, dims):
    """Return the expected value of each output.

    dims: n. arrays, as they are before the run:

    params: a struct of n, factor
    x: f32 [n]
    y: f32 [n]
    """
    x = arrays["x"].astype(np.float64)
    return NotImplemented  # {"y": …}
'''


def test_the_whole_texts():
    made, _ = drafted(SCALE)
    assert manifest_text(made, "k.wgsl", {}, "k.py:expected") == MANIFEST
    assert reference_text(made, "k.toml", "expected") == STUB
    plain, _ = drafted(MATMUL)
    assert manifest_text(plain, "k.wgsl", {}, "k.py:expected").startswith("# Written by `bankshot init`.\n\n[kernel]")


def test_an_entry_point_that_is_too_large_with_every_size_needs_a_hand(monkeypatch):
    monkeypatch.setattr(new_manifest, "MOST_INVOCATIONS", 0)
    with pytest.raises(UsageError, match="scale does not end with any sizes tried; write its manifest by hand"):
        drafted(SCALE)


def test_immediates_are_sizes():
    text = SCALE.replace("@group(0) @binding(0) var<uniform>", "var<immediate>")
    assert [*drafted(f"requires immediate_address_space; {text}")[0].dims] == ["n"]


def test_overrides_are_written():
    made, _ = drafted(ROWS)
    assert tomllib.loads(manifest_text(made, "k.wgsl", {}, "k.py:expected"))["kernel"]["overrides"] == {"WIDTH": 4}


def test_only_arrays_of_floats_alone_are_converted_in_the_stub(folder):
    (folder / "k.wgsl").write_text("""
struct Pair { weight: f32, at: u32 }
@group(0) @binding(0) var<storage, read> pairs: array<Pair, 4>;
@group(0) @binding(1) var<storage, read> x: array<f32, 4>;
@group(0) @binding(2) var<storage, read_write> y: array<f32, 4>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    y[i] = pairs[i].weight * x[pairs[i].at % 4];
}""")
    assert bankshot("init", "k.wgsl").exit_code == 0
    lines = [line.strip() for line in (folder / "k_reference.py").read_text().splitlines()]
    assert 'x = arrays["x"].astype(np.float64)' in lines
    assert 'pairs = arrays["pairs"]' in lines


def test_the_first_sizes_stay_where_all_are_as_wrong():
    """131 = 2 * 64 + 3, tried first; the index wraps for the first invocation with every size."""
    made, _ = drafted(SCALE.replace("x[id.x];", "x[id.x - 1];"))
    assert made.dims == {"n": 131}


@pytest.mark.parametrize(("text", "init"), [("y[id.x] = ", "unwritten"), ("y[id.x] += ", "normal")])
def test_an_array_that_is_only_written_holds_nothing_before(text, init):
    made, _ = drafted(SCALE.replace("y[id.x] = ", text))
    assert tomllib.loads(manifest_text(made, "k.wgsl", {}, "k.py:expected"))["bind"]["y"]["init"] == init
    other = SCALE.replace("y[id.x] = ", "var sum = 1.0; sum += 2.0; y[id.x] = sum * ")
    made, _ = drafted(other)
    assert tomllib.loads(manifest_text(made, "k.wgsl", {}, "k.py:expected"))["bind"]["y"]["init"] == "unwritten"


def test_a_comparison_sampler_is_bound():
    made, _ = drafted("""
@group(0) @binding(0) var depths: texture_depth_2d;
@group(0) @binding(1) var nearer: sampler_comparison;
@group(0) @binding(2) var<storage, read_write> y: array<f32, 4>;
@compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
    y[i] = textureSampleCompareLevel(depths, nearer, vec2f(0.5), f32(i) * 0.25);
}""")
    assert made.outputs == ["y"]


def test_a_wrong_stride_keeps_the_shape_of_the_sizes_and_raises_a_question():
    made, found = drafted(WRONG_ROW)
    assert {*found["source"]} == {"width", "height"}
    assert found["copied"] == ("height", "width")
    (question,) = made.questions
    assert "accesses more elements of source than " in question


def test_outputs_are_bindings():
    assert drafted(WRONG_ROW)[0].outputs == ["copied"]


def test_numbers_that_the_shader_never_reads_raise_no_question():
    made, _ = drafted(MATMUL)
    assert made.questions == []
    made, _ = drafted(MATMUL.replace("sum += ", "sum += f32(dims.w) + "))
    assert made.questions == ["which values does the host pass for dims.w? 0 is invented"]


# ---- the command ----


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bankshot(*arguments):
    return CliRunner().invoke(main, [str(each) for each in arguments])


def test_a_new_manifest_runs_and_its_audit_repeats_the_questions(folder):
    (folder / "scale.wgsl").write_text(SCALE)
    done = bankshot("init", "scale.wgsl")
    assert done.exit_code == 0, done.output
    question = "scale.toml: question: which values does the host pass for params.factor? 0.5 is invented"
    assert question in bankshot("audit", "scale.wgsl", "--no-gpu").stderr.splitlines()
    audit = bankshot("audit", "scale.wgsl", "--no-gpu", "-v")
    assert audit.exit_code == 1, audit.output
    assert "which values does the host pass for params.factor? 0.5 is invented" in " ".join(audit.output.split())
    assert "scale_reference.py:scale returns NotImplemented" in " ".join(audit.output.split())
    assert "0 of 5 cases clean; 5 unchecked" in audit.output


def test_a_filled_in_reference_makes_it_clean_or_finds_the_fault(folder):
    (folder / "scale.wgsl").write_text(SCALE)
    assert bankshot("init", "scale.wgsl").exit_code == 0
    stub = folder / "scale_reference.py"
    filled = 'return {"y": np.float64(arrays["params"]["factor"][0]) * x}'
    stub.write_text(stub.read_text().replace("return NotImplemented", filled))
    assert bankshot("audit", "scale.toml", "--no-gpu").exit_code == 0
    (folder / "scale.wgsl").write_text(SCALE.replace("= params.factor * x[id.x]", "= params.factor * x[id.x / 2]"))
    audit = bankshot("audit", "scale.toml", "--no-gpu")
    assert audit.exit_code == 1
    assert "1 of 5 cases clean; 4 failed" in audit.output  # n = 1 agrees


@pytest.mark.parametrize("there", ["scale.toml", "scale_reference.py"])
def test_no_file_is_overwritten(folder, there):
    (folder / "scale.wgsl").write_text(SCALE)
    (folder / there).write_text("mine\n")
    done = bankshot("init", "scale.wgsl")
    assert (done.exit_code, done.output) == (
        2,
        f"error: {there}: exists already; choose another name with -o, or delete it\n",
    )
    assert sorted(path.name for path in folder.iterdir()) == sorted(["scale.wgsl", there])
    assert (folder / there).read_text() == "mine\n"


def test_a_wrong_shader_is_an_error_of_its_text(folder):
    (folder / "scale.wgsl").write_text(SCALE.replace("params.n ", "params.m "))
    done = bankshot("init", "scale.wgsl")
    assert done.exit_code == 2
    assert "scale.wgsl:8:" in done.output
    assert [path.name for path in folder.iterdir()] == ["scale.wgsl"]


def test_of_several_entry_points_one_must_be_named(folder):
    (folder / "two.wgsl").write_text(SCALE + "@compute @workgroup_size(1) fn other() { y[0] = 1.0; }")
    done = bankshot("init", "two.wgsl")
    assert done.exit_code == 2
    assert "choose one of scale, other" in done.output
    assert bankshot("init", "two.wgsl", "--entry", "other").exit_code == 0
    assert tomllib.loads((folder / "two_other.toml").read_text())["kernel"]["entry"] == "other"


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (
            "@vertex fn corner() -> @builtin(position) vec4<f32> { return vec4(0.0); }",
            ["scale.toml", "scale_reference.py"],
        ),
        ("@fragment fn colour() {}", ["scale.toml", "scale_reference.py"]),
        ("@compute @workgroup_size(1) fn other() {}", ["scale_scale.toml", "scale_scale_reference.py"]),
    ],
    ids=["vertex", "fragment", "compute"],
)
def test_files_are_named_by_the_shader_and_by_the_entry_point_if_there_are_several(folder, more, names):
    (folder / "scale.wgsl").write_text(SCALE + more)
    done = bankshot("init", "scale.wgsl", *(["--entry", "scale"] if "compute" in more else []))
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in folder.iterdir()) == sorted([*names, "scale.wgsl"])


@pytest.mark.parametrize(("text", "said"), [(SCALE, "with 1 question to"), (MATMUL, "with 0 questions to")])
def test_init_says_what_it_wrote_and_what_is_next(folder, text, said):
    (folder / "k.wgsl").write_text(text)
    outputs = "y" if text is SCALE else "C"
    assert bankshot("init", "k.wgsl", "-o", "made.toml").output.splitlines() == [
        f"made.toml: written, {said} answer",
        f"made_reference.py: compute {outputs} there",
        "next: bankshot audit made.toml",
    ]


def test_the_stub_of_an_entry_point_that_python_cannot_name(folder):
    (folder / "k.wgsl").write_text(SCALE.replace("fn scale", "fn lambda"))
    assert bankshot("init", "k.wgsl").exit_code == 0
    assert tomllib.loads((folder / "k.toml").read_text())["kernel"]["reference"] == "k_reference.py:expected"
    assert "def expected(" in (folder / "k_reference.py").read_text()


def test_a_file_that_is_not_there(folder):
    done = bankshot("init", "none.wgsl")
    assert (done.exit_code, done.output) == (2, "error: none.wgsl: there is no such file\n")
    (folder / "k.wgsl").write_text(SCALE)
    done = bankshot("init", "k.wgsl", "-o", "no/k.toml")
    assert (done.exit_code, done.output) == (2, "error: no/k.toml: cannot be written: No such file or directory\n")


def test_json_names_the_files_and_the_questions(folder):
    (folder / "scale.wgsl").write_text(SCALE)
    (written,) = json.loads(bankshot("init", "scale.wgsl", "--json").stdout)["cases"]
    assert (written["manifest"], written["reference"]) == ("scale.toml", "scale_reference.py")
    assert written["questions"] == ["which values does the host pass for params.factor? 0.5 is invented"]


def test_defines_are_kept_in_the_manifest(folder):
    (folder / "scale.wgsl").write_text(SCALE.replace("@workgroup_size(64)", "@workgroup_size(TILE)"))
    assert bankshot("init", "scale.wgsl", "-D", "TILE=8", "-o", "small.toml").exit_code == 0
    kernel = tomllib.loads((folder / "small.toml").read_text())["kernel"]
    assert (kernel["defines"], kernel["dispatch"]) == ({"TILE": "8"}, ["ceil(n / 8)", 1, 1])
    assert bankshot("audit", "small.toml", "--no-gpu").exit_code == 1


def test_names_that_are_keywords_of_python_make_a_stub_that_runs(folder):
    text = SCALE.replace("fn scale", "fn lambda").replace("x[", "in[").replace("> x:", "> in:")
    (folder / "scale.wgsl").write_text(text)
    assert bankshot("init", "scale.wgsl").exit_code == 0
    assert "unchecked" in bankshot("audit", "scale.toml", "--no-gpu").output


def test_edges_stay_where_ids_are_compared_with_the_size(folder):
    wrong = SCALE.replace("x[id.x];", "x[id.x + 1];")
    (folder / "scale.wgsl").write_text(wrong)
    assert bankshot("init", "scale.wgsl").exit_code == 0
    assert tomllib.loads((folder / "scale.toml").read_text())["sweep"][1] == {"n": [1, 63, 64, 65]}
    audit = bankshot("audit", "scale.toml", "--no-gpu")
    assert audit.exit_code == 1
    assert "0 of 5 cases clean; 5 failed" in audit.output
    assert "scale.wgsl:9:" in audit.output


def test_how_far_buffers_are_accessed():
    import bankshot as b

    given = {"params": {"n": 5, "factor": 1.0}, "x": np.ones(40, np.float32), "y": np.zeros(40, np.float32)}
    assert b.simulate(SCALE, grid=1, bindings=given).reach == {"x": 20, "y": 20}

"""Changes that are not layouts of one array: their text, and what a run of it costs, worked out by hand."""

import subprocess

import numpy as np
import pytest

import bankshot
from bankshot.oracle.advise.array_layouts import Layouts
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.advise.rewrites import rewrites
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.sim.wgsl.text_edits import replaced
from tests.advise.test_advise import command
from tests.conftest import ROOT

HEAD = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 1024>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 1024>;
"""
POINTS = (
    HEAD
    + """\
struct Point { place: f32, speed: f32 }
var<workgroup> points: array<Point, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    points[i].place = x[i];
    points[i].speed = x[i + 64u];
    workgroupBarrier();
    y[i] = points[63u - i].place + points[i].speed;
}
"""
)
QUADS = (
    HEAD
    + """\
var<workgroup> tile: array<f32, 256>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    tile[i * 4u] = x[i];
    tile[i * 4u + 1u] = x[i + 64u];
    tile[1u + i * 4u + 1u] = x[i + 128u];
    tile[i * 4u + 3u] = x[i + 192u];
    workgroupBarrier();
    let a = tile[i * 4u];
    let b = tile[i * 4u + 1u];
    let c = tile[i * 4u + 2u];
    let d = tile[i * 4u + 3u];
    let all = vec4f(tile[i * 4u], tile[i * 4u + 1u], tile[i * 4u + 2u], tile[i * 4u + 3u]);
    y[i] = a + b + c + d + dot(all, vec4f(2.0));
}
"""
)
COLUMNS = (
    HEAD
    + """\
var<workgroup> tile: array<f32, 512>;
@compute @workgroup_size(16, 8)
fn main(@builtin(local_invocation_id) at: vec3<u32>, @builtin(local_invocation_index) i: u32,
        @builtin(global_invocation_id) all: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    tile[at.x * 32u + at.y] = x[all.x * 16u + all.y];
    workgroupBarrier();
    y[all.x * 16u + all.y] = tile[at.x * 32u + at.y] + f32(i);
}
"""
)


def changes(module):
    """The change of each rewrite, by its words."""
    pipeline = module.pipeline()
    arrays = [v.name for v in pipeline.store_types if v.space == "workgroup"]
    layouts = [Layouts(module, pipeline, array) for array in arrays]
    return {each.words: each.change for each in rewrites(layouts, pipeline)}


def found(text):
    module = bankshot.check(text)
    return {words: change.module(module).source.text for words, change in changes(module).items()}


def lines(text, *numbers):
    return [text.splitlines()[number - 1].strip() for number in numbers]


def simulate(text, grid=(1, 1, 1)):
    x = np.arange(1024, dtype=np.float32)
    return bankshot.simulate(text, grid=grid, bindings={"x": x, "y": np.zeros_like(x)})


def costs(text, grid=(1, 1, 1)):
    run = simulate(text, grid)
    return run.counters["shared_wavefronts"], run.counters["global_sectors"]


def same(one, other, grid=(1, 1, 1)):
    return (simulate(one, grid).outputs["y"] == simulate(other, grid).outputs["y"]).all()


def report(text, tmp_path, **options):
    file = tmp_path / "kernel.wgsl"
    file.write_text(text)
    (plan,) = plans([file], Request(grid=(1, 1, 1)))
    return advise(plan.case(plan.shapes[0]), Options(values=(0, 0), by="wavefronts", **options))


def test_members_apart():
    """Two subgroups make four requests of 4 bytes each, 8 bytes apart: two wavefronts each, else one."""
    (text,) = found(POINTS).values()
    assert lines(text, 4, 6, 7, 9) == [
        "var<workgroup> points_place: array<f32, 64>; var<workgroup> points_speed: array<f32, 64>;",
        "points_place[i] = x[i];",
        "points_speed[i] = x[i + 64u];",
        "y[i] = points_place[63u - i] + points_speed[i];",
    ]
    assert same(POINTS, text)
    assert (costs(POINTS)[0], costs(text)[0]) == (2 * 4 * 2, 2 * 4)


def test_whole_structures_go_through_functions():
    """Indices within indices and values that read the array are changed, too."""
    text = POINTS.replace("points[i].place = x[i];", "points[i] = Point(x[i], 1.0);").replace(
        "y[i] = points[63u - i].place",
        "var both = points[u32(points[i32(i)].place) % 64u]; points[i] = points[i]; points[i].speed += 1.0; "
        "y[i] = both.place",
    )
    (changed,) = found(text).values()
    assert "points_set(u32(i), Point(x[i], 1.0));" in changed
    assert "points_get(u32(u32(points_place[i32(i)]) % 64u)); points_set(u32(i), points_get(u32(i)));" in changed
    assert same(text, changed)


def test_adjacent_accesses_become_vectors():
    """Of two subgroups, 12 requests of 4 bytes, 16 bytes apart, take 4 wavefronts each; 3 of 16 bytes take 4 each."""
    text = found(QUADS)["tile in vectors of 4"]
    assert lines(text, 3, 5, 6, 10, 11, 13) == [
        "var<workgroup> tile: array<vec4<f32>, (256) / 4>;",
        "tile[(i * 4u) / 4] = vec4<f32>(x[i], x[i + 64u], x[i + 128u], x[i + 192u]);",
        ";",
        "let tile_wide0 = tile[(i * 4u) / 4]; let a = tile_wide0.x;",
        "let b = tile_wide0.y;",
        "let d = tile_wide0.w;",
    ]
    assert "let all = tile[(i * 4u) / 4];" in text
    assert same(QUADS, text)
    assert (costs(QUADS)[0], costs(text)[0]) == (2 * 12 * 4, 2 * 3 * 4)
    assert "vec4f(tile[" in QUADS
    assert (
        "let all = tile[(i * 4u) / 4];"
        in found(QUADS.replace("vec4f(tile[", "vec4<f32>(tile["))["tile in vectors of 4"]
    )


def test_in_the_files_statements_have_lines_of_their_own():
    """A store that is too long for one line, statements that share a line, and one with a comment."""
    long = QUADS.replace("= x[i];", "= x[i] + 0.0 * x[(i * 3u + 1u) % 1024u] + 0.0 * x[(i * 5u) % 1024u];").replace(
        "    let b = tile[i * 4u + 1u];\n    ", "    let b = tile[i * 4u + 1u]; "
    )
    long = long.replace("x[i + 128u];", "x[i + 128u]; // the third")
    change = changes(bankshot.check(long))["tile in vectors of 4"]
    assert replaced(long, change.replacements()).splitlines()[4:17] == [
        "    tile[(i * 4u) / 4] = vec4<f32>(",
        "        x[i] + 0.0 * x[(i * 3u + 1u) % 1024u] + 0.0 * x[(i * 5u) % 1024u],",
        "        x[i + 64u],",
        "        x[i + 128u],",
        "        x[i + 192u],",
        "    );",
        "    // the third",
        "    workgroupBarrier();",
        "    let tile_wide0 = tile[(i * 4u) / 4];",
        "    let a = tile_wide0.x;",
        "    let b = tile_wide0.y; let c = tile_wide0.z;",
        "    let d = tile_wide0.w;",
        "    let all = tile[(i * 4u) / 4];",
    ]


def test_accesses_of_other_elements_take_a_component():
    text = QUADS.replace("y[i] = a", "tile[255u - i] += 1.0; y[i] = tile[(i + 1u) * 3u] + a")
    changed = found(text)["tile in vectors of 4"]
    assert "tile[(255u - i) / 4][(255u - i) % 4] += 1.0;" in changed
    assert "tile[((i + 1u) * 3u) / 4][((i + 1u) * 3u) % 4] + a" in changed


ALL = "vec4f(tile[i * 4u], tile[i * 4u + 1u], tile[i * 4u + 2u], tile[i * 4u + 3u])"


@pytest.mark.parametrize(
    ("scalar", "widths"),
    [("f32", [4, 2]), ("i32", [4, 2]), ("u32", [4, 2]), ("f16", []), ("Number", []), ("vec2f", []), ("mat2x2f", [])],
)
def test_arrays_of_numbers_of_a_word_become_vectors(scalar, widths):
    """An alias hides its type, two f16 are one word, and there are no vectors of vectors."""
    assert ALL in QUADS
    text = f"enable f16; {QUADS.replace('array<f32, 256>', f'array<{scalar}, 256>')} alias Number = f32;"
    text = text.replace(f"let all = {ALL};", "").replace("a + b + c + d + dot(all, vec4f(2.0))", "1.0")
    for n in range(4):
        text = text.replace(f"= x[i + {64 * n}u];" if n else "= x[i];", f"= {scalar}();")
    assert [words for words in found(text) if "vectors" in words] == [f"tile in vectors of {n}" for n in widths]
    for words in found(text):
        bankshot.check(found(text)[words])


@pytest.mark.parametrize("vector", ["vec4f", "vec4u", "vec4i", "vec4", "vec2", "vec2f", "vec2u", "vec2i"])
def test_the_arguments_of_a_vector_become_one_access(vector):
    scalar = {"u": "u32", "i": "i32"}.get(vector[-1], "f32")
    width = int(vector[3])
    args = ", ".join(f"tile[i * 4u + {n}u]" for n in range(width))
    text = f"""{HEAD} var<workgroup> tile: array<{scalar}, 256>;
        @compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {{
            let all = {vector}({args}); y[i] = f32(all.x); }}"""
    ((words, changed),) = found(text).items()
    assert words == f"tile in vectors of {width}"
    assert f"let all = tile[(i * 4u + 0u) / {width}];" in changed


@pytest.mark.parametrize(
    "other",
    ["tile[i * 4u + 3u]", "tile[i * 2u + 2u]", "x[i * 4u + 2u]", "tile[i * 4u + i + 2u]"],
)
def test_accesses_that_are_not_adjacent_stay(other):
    text = QUADS.replace("c = tile[i * 4u + 2u]", f"c = {other}")
    assert "tile_wide" not in found(text)["tile in vectors of 4"]


def test_a_vector_of_unaligned_elements_is_refused_by_its_run(tmp_path):
    """tile[i * 4 + 1] to tile[i * 4 + 4] are parts of two vectors."""
    text = QUADS.replace("let a = tile[i * 4u];\n    ", "").replace(
        "let d = tile[i * 4u + 3u];", "let d = tile[i * 4u + 3u]; let a = tile[i * 4u + 4u];"
    )
    result = {each.words: each.refused for each in report(text, tmp_path).rewrites}
    assert result["tile in vectors of 4"] == "outputs differ"


def test_exchanged_invocations_keep_all_ids():
    """A workgroup of 16 x 8: each pair of x and y is that of one invocation, as are the index and the global id."""
    text = found(COLUMNS)["x and y of the invocations exchanged"]
    assert lines(text, 4, 5)[0] == "@compute @workgroup_size(8, 16)"
    assert same(COLUMNS, text, (2, 3, 1))
    tall = COLUMNS.replace("(16, 8)", "(4, 8, 2)").replace("at.y]", "at.y + at.z * 16u]").replace(
        "all.y]", "all.y + all.z * 8u]")  # fmt: skip
    assert same(tall, found(tall)["x and y of the invocations exchanged"], (2, 1, 1))


def test_exchanged_invocations_access_rows():
    """As written, 16 lanes of a row meet in one bank, and 32 lanes load from 16 rows. Exchanged, 8 lanes of each of
    four rows load 8 words, which are a sector: 4 sectors a request, of which there are 4 each of loads and stores."""
    text = found(COLUMNS)["x and y of the invocations exchanged"]
    assert costs(COLUMNS) == (2 * 4 * 16, 2 * 4 * 16)
    assert costs(text) == (2 * 4 * 4, 2 * 4 * 4)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("(16, 8)", "(16)"),
        ("(16, 8)", "(1, 16)"),
        ("(16, 8)", "(WIDTH, 8)"),
        ("f32(i)", "subgroupAdd(f32(i))"),
        ("@builtin(workgroup_id) group", "@builtin(subgroup_size) size: u32, @builtin(workgroup_id) group"),
        ("(@builtin(local_invocation_id) at: vec3<u32>,", "(input: Input,"),
    ],
)
def test_invocations_that_are_not_exchanged(before, after):
    """A workgroup of one row or column, of an override's size, or whose lanes matter; and inputs in a structure."""
    text = COLUMNS.replace(before, after)
    if "subgroup" in text:
        text = f"enable subgroups;\n{text}"
    if "Input" in text:
        text = text.replace("{\n", "{\n    let at = input.at;\n", 1)
        text += "struct Input { @builtin(local_invocation_id) at: vec3<u32> }"
    if "WIDTH" in text:
        text += "override WIDTH = 16u;"
    assert "x and y of the invocations exchanged" not in found(text)


# ---- in the search -----------------------------------------------------------------------------------------


def test_what_saves_nothing_is_refused(tmp_path):
    """A single invocation has no bank conflicts."""
    text = POINTS.replace("@workgroup_size(64)", "@workgroup_size(1)")
    (each,) = report(text, tmp_path).rewrites
    assert each.refused == "no fewer wavefronts and sectors"
    assert report(text, tmp_path).ok


@pytest.mark.parametrize("text", [POINTS, QUADS, COLUMNS])
def test_the_report_has_the_costs_of_a_run_of_the_changed_text(text, tmp_path):
    result = report(text, tmp_path)
    better = [each for each in result.rewrites if each.refused is None]
    assert better
    for each in better:
        changed = found(text)[each.words]
        assert (each.wavefronts, each.sectors) == costs(changed)
        assert each.bytes == simulate(changed).counters["workgroup_memory_bytes"]
    assert not result.ok


def test_the_cheapest_change_is_the_patch(tmp_path):
    """Vectors take an eighth of the wavefronts; no layout of 4-byte accesses takes fewer than a quarter."""
    file = tmp_path / "kernel.wgsl"
    file.write_text(QUADS)
    told = command("advise", file, "--grid", "1", "--pads", "0..0", "--by", "wavefronts", "--patch")
    diff = told.stdout.replace(str(file)[1:], "kernel.wgsl")
    applied = subprocess.run(["git", "apply"], cwd=tmp_path, input=diff, text=True, capture_output=True)
    assert applied.returncode == 0, applied.stderr
    assert same(QUADS, file.read_text())
    least = min(costs(text)[0] for text in found(QUADS).values())
    assert costs(file.read_text())[0] == least
    again = command("advise", file, "--grid", "1", "--pads", "0..0", "--by", "wavefronts")
    assert (again.exit_code, "better:" in again.stdout) == (0, False)


def test_rewrites_are_shown(tmp_path):
    file = tmp_path / "kernel.wgsl"
    file.write_text(COLUMNS)
    told = command("advise", file, "--grid", "1", "--pads", "0..0", "--by", "wavefronts").output
    assert "better: x and y of the invocations exchanged: 128 wavefronts become 32 and 128 sectors become 32" in told
    assert "2,048 bytes" in told


def test_a_search_of_one_array_tries_no_rewrites(tmp_path):
    assert report(POINTS, tmp_path, array="points").rewrites == ()
    assert len(report(POINTS, tmp_path).rewrites) == 1


def test_the_number_of_buffers_costs_barriers_and_memory_only():
    """So that it is no rewrite: double-buffered and single, the matmul takes the same wavefronts and sectors."""
    runs = []
    for kernel in ("matmul", "matmul_single"):
        request = Request(kernel=kernel, dims={"M": 64, "N": 64, "K": 64})
        (plan,) = plans([ROOT / "shaders" / "matmul.toml"], request)
        runs.append(advise(plan.case(plan.shapes[0]), Options(array="b_tile", values=(64, 64))).run.counters)
    double, single = runs
    for name in ("shared_wavefronts", "global_sectors"):
        assert double[name] == single[name]
    assert double["barriers"] < single["barriers"]
    assert double["workgroup_memory_bytes"] == 2 * single["workgroup_memory_bytes"]

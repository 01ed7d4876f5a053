"""Two buffers of a tile, however the text says where the second begins: another pitch takes the second one along.

Each kernel stores 16 rows of 16 and loads them by column, in one buffer and then in the other. With a pitch of P, both
take 32 * P floats; rows of 16 have no conflict if they are swizzled.
"""

import re

import pytest

from bankshot.oracle.advise.array_layouts import Change, Layouts
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.advise.swizzles import Swizzle, Term
from bankshot.oracle.advise.value_flow import Flow
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.sim.front_end import check
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.parser import parse
from tests.advise.test_advise import command

TEXT = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 1024>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 256>;
{declared}
@compute @workgroup_size(16, 16)
fn main(@builtin(local_invocation_index) i: u32, @builtin(local_invocation_id) at: vec3<u32>) {{
    for (var k = 0u; k < 4u; k += 1u) {{
        {first}
        {stored} = x[k * 256u + i];
        workgroupBarrier();
        y[i] += {loaded};
    }}
}}
"""
FLAT = "var<workgroup> tile: array<f32, 544>;"


def kernel(index, first="", declared=FLAT):
    """`index`: of the element in row R and column C."""

    def at(row, column):
        return re.sub(r"\bC\b", column, re.sub(r"\bR\b", row, index))

    return TEXT.format(declared=declared, first=first, stored=at("at.y", "at.x"), loaded=at("at.x", "at.y"))


HELPER = "fn place(b: u32, r: u32, c: u32) -> u32 { let row = r * 17u; return b * 272u + row + c; }"
FORMS = {
    "a constant times the number of the buffer": kernel(
        "tile[HALF * (k & 1u) + R * 17u + C]", declared=f"const HALF = 272u; {FLAT}"
    ),
    "a number times a flag": kernel("tile[u32(odd) * 272u + R * 17u + C]", "let odd = (k & 1u) == 1u;"),
    "a let times the number of the buffer": kernel("tile[half * (k & 1u) + R * 17u + C]", "let half = 272u;"),
    "a variable": kernel("tile[half * (k & 1u) + R * 17u + C]", "var half = 272u;"),
    "an assignment": kernel("tile[half + R * 17u + C]", "var half = 0u; if k % 2u == 1u { half = 272u; }"),
    "select": kernel("tile[select(0u, 272u, odd) + R * 17u + C]", "let odd = (k & 1u) == 1u;"),
    "select in a let": kernel("tile[half + R * 17u + C]", "let half = select(0u, 272u, (k & 1u) == 1u);"),
    "a constant for the pitch alone": kernel(
        "tile[272u * (k & 1u) + R * PITCH + C]",
        declared="const PITCH = 17u; var<workgroup> tile: array<f32, 32 * PITCH>;",
    ),
    "an override for the pitch alone": kernel(
        "tile[272u * (k & 1u) + R * PITCH + C]",
        declared="override PITCH = 17u; var<workgroup> tile: array<f32, 32 * PITCH>;",
    ),
    "constants for the pitch and a buffer": kernel(
        "tile[HALF * (k & 1u) + R * PITCH + C]",
        declared="const PITCH = 17u; const HALF = 272u; var<workgroup> tile: array<f32, 2 * HALF>;",
    ),
    "a pad": kernel(
        "tile[half * (k & 1u) + R * (W + PAD) + C]",
        "let half = 272u;",
        "const W = 16u; const PAD = 1u; var<workgroup> tile: array<f32, 2 * W * (W + PAD)>;",
    ),
    "a helper function": kernel("tile[place(k & 1u, R, C)]", declared=f"{FLAT} {HELPER}"),
    "a start and a helper function": kernel(
        "tile[half + place(0u, R, C)]", "let half = k % 2u * 272u;", f"{FLAT} {HELPER}"
    ),
    "an array of buffers": kernel(
        "tile[k & 1u][R * 17u + C]", declared="var<workgroup> tile: array<array<f32, 272>, 2>;"
    ),
    "an array of buffers of rows": kernel(
        "tile[k & 1u][R][C]", declared="var<workgroup> tile: array<array<array<f32, 17>, 16>, 2>;"
    ),
    "signed numbers": kernel("tile[half * b + i32(R) * 17 + i32(C)]", "let half = 272; let b = i32(k & 1u);"),
}


def case_of(folder, text):
    file = folder / "kernel.wgsl"
    file.write_text(text)
    (plan,) = plans([file], Request(grid=(1, 1, 1)))
    return plan.case(plan.shapes[0])


@pytest.mark.parametrize("form", FORMS)
def test_both_buffers_move(form, tmp_path):
    """Every pitch that holds a row is accepted, and the best has no conflict in the least memory."""
    report = advise(case_of(tmp_path, FORMS[form]), Options(values=(16, 19), by="wavefronts"))
    plain = [
        {trial.pitch: (trial.refused, trial.bytes) for trial in each.trials if trial.swizzle is None}
        for each in report.advice
    ]
    assert {pitch: (None, 4 * 32 * pitch) for pitch in (17, 16, 18, 19)} in plain
    best = min(report.advice, key=lambda each: (each.best.wavefronts, each.best.bytes)).best
    assert (best.excess, best.bytes, best.pitch) == (0, 4 * 32 * 16, 16)
    wide = [trial for each in report.advice for trial in each.trials if trial.pitch > each.written.pitch]
    assert not [trial for trial in wide if trial.refused == "outputs differ"]


@pytest.mark.parametrize("form", ["a let times the number of the buffer", "an override for the pitch alone", "a pad"])
def test_the_diff_has_the_best_of_an_array_with_several_pitches(form, tmp_path):
    """And the changed file is as good: nothing is left to do."""
    file = tmp_path / "kernel.wgsl"
    file.write_text(FORMS[form])
    first = command("advise", file, "--grid", "1", "--pads", "16..19", "--by", "wavefronts", "--apply")
    assert (first.exit_code, f"changed: {file}" in first.output) == (1, True)
    again = command("advise", file, "--grid", "1", "--pads", "16..19", "--by", "wavefronts", "--json")
    assert again.exit_code == 0, again.output
    assert "array<f32, 512>" in file.read_text() or "/ 17 * 16" in file.read_text()


def test_a_pitch_that_moves_one_buffer_alone_is_said_to_be_a_part(tmp_path):
    """`PAD` moves rows within a buffer, and the second one stays at 272."""
    report = advise(case_of(tmp_path, FORMS["a pad"]), Options(values=(1, 2), by="wavefronts"))
    pad = next(each for each in report.advice if each.pitch == "PAD")
    assert [trial.refused for trial in pad.trials if trial.pitch == 2] == ["PAD is only a part of what places the rows"]


def test_rows_that_overlap_are_refused_for_what_they_are(tmp_path):
    """15 columns of 16: neither form of the change can keep them apart."""
    (advice,) = advise(
        case_of(tmp_path, FORMS["a let times the number of the buffer"]), Options(values=(15, 17), by="wavefronts")
    ).advice
    refused = {trial.pitch: trial.refused for trial in advice.trials if trial.swizzle is None}
    assert refused == {17: None, 15: "outputs differ", 16: None}


# ---- what the text says ----


def layouts(declared, index, first=""):
    module = check(kernel(index, first, declared))
    return Layouts(module, module.pipeline(), "tile")


def test_the_text_of_rows_that_a_function_moves():
    found = layouts(FLAT, "tile[R * 17u + C]")
    (pitch,) = found.pitches()
    text = pitch.moved(18).module(found.module).source.text
    assert "fn tile_packed(index: u32) -> u32 { return index / 17u * 18u + index % 17u; } var<workgroup> tile" in text
    assert "tile: array<f32, 576>" in text
    assert "tile[tile_packed(at.x * 17u + at.y)]" in text
    assert (pitch.by_function.to(18), pitch.by_function.moved) == (pitch.moved(18), None)


@pytest.mark.parametrize(
    ("size", "changed"),
    [
        ("544", "576"),
        ("2 * 272", "576"),
        ("550", "594"),  # the last row is not whole
        ("N", "((N)) / 17 * 18"),
        ("N + 6", "((N + 6) + 16) / 17 * 18"),
    ],
)
def test_the_size_of_moved_rows(size, changed):
    """It stays an expression of the constants that it has."""
    found = layouts(f"override N = 544u; var<workgroup> tile: array<f32, {size}>;", "tile[R * 17u + C]")
    (pitch,) = found.pitches()
    assert f"tile: array<f32, {changed}>" in pitch.moved(18).module(found.module).source.text


def test_a_swizzle_of_arrays_of_arrays_counts_rows_over_all():
    found = layouts("var<workgroup> tile: array<array<array<f32, 16>, 16>, 2>;", "tile[k & 1u][R][C]")
    change = found.swizzled(Change(), Swizzle((Term(4, 1),)), 16)
    text = change.module(found.module).source.text
    assert "tile[k & 1u][at.y][tile_at((k & 1u) * 16u + at.y, at.x)]" in text


@pytest.mark.parametrize(
    ("index", "first", "declared", "factors"),
    [
        ("tile[R * 17u + C]", "", FLAT, {17}),
        ("tile[17u * R + C]", "", FLAT, {17}),
        ("tile[(R << 4u) + C]", "", FLAT, {16}),
        ("tile[place(k & 1u, R, C)]", "", f"{FLAT} {HELPER}", {17, 272}),
        ("tile[row + R * 17u + C]", "let row = k * 3u * 0u;", FLAT, {17, 3}),
        ("tile[row + R * 17u + C]", "var row = 0u; row = k % 2u * 5u;", FLAT, {17, 5}),
        ("tile[u32(f32(R) * 17.0) + C]", "", FLAT, set()),
        ("tile[R * W + C]", "", f"const W = 17u; {FLAT}", {17}),
        ("tile[R * W + C]", "let W = 17u;", FLAT, set()),
    ],
)
def test_the_factors_on_the_way_to_an_index(index, first, declared, factors):
    assert layouts(declared, index, first).factors == factors


def test_sources_are_what_decides_an_index():
    """Through names, calls, parameters and results; nothing of another array."""
    text = """
        var<workgroup> tile: array<f32, 9>;
        var<workgroup> other: array<f32, 9>;
        const P = 3u;
        fn place(row: u32) -> u32 { return row * P; }
        fn main(a: u32) { let b = a + 1u; other[a * 5u] = 1.0; tile[place(b)] = 2.0; }
    """
    found = [each.span.text for each in Flow(parse(Source(text))).sources("tile")]
    assert sorted(found) == ["3u", "a + 1u", "b", "place(b)", "row * P"]


@pytest.mark.parametrize(
    ("index", "first", "declared", "reason"),
    [
        ("load(&tile, R * 17u + C)", "tile[i] = 1.0;",
         FLAT + " fn load(p: ptr<workgroup, array<f32, 544>>, i: u32) -> f32 { return (*p)[i]; }",
         "shader.wgsl:10 uses tile as a whole, by a pointer or as a value: no index is changed"),
        ("tile[R][C]", "let row = &tile[at.y];", "var<workgroup> tile: array<array<f32, 16>, 16>;",
         "shader.wgsl:7 uses an array in tile as a whole, by a pointer or as a value: no index is changed"),
        ("tile[R * 17u + C]", "", FLAT + " fn other() { var tile = 1u; }",
         "shader.wgsl:3 declares another tile, so no index is changed"),
        ("tile[R * 17u + C]", "", FLAT + " fn other(tile: u32) { }",
         "shader.wgsl:3 declares another tile, so no index is changed"),
        ("tile[R].values[C]", "", "struct Row { values: array<f32, 17> } var<workgroup> tile: array<Row, 16>;",
         "tile has structures: layouts of arrays in a structure are not searched"),
    ],
)  # fmt: skip
def test_what_the_search_cannot_change_is_said(index, first, declared, reason):
    text = kernel(index, first, declared)
    if "load(" in index:
        text = text.replace("load(&tile, at.y * 17u + at.x) = ", "y[0] = ")
    module = check(text)
    found = Layouts(module, module.pipeline(), "tile")
    assert [pitch for pitch in found.pitches() if not pitch.of_rows] == []
    assert found.reasons == [reason]


def test_an_array_in_a_structure_is_said_to_be_left_out(tmp_path):
    declared = "struct Tile { values: array<f32, 272> } var<workgroup> tile: Tile;"
    report = advise(
        case_of(tmp_path, kernel("tile.values[R * 17u + C]", "workgroupBarrier();", declared)), Options(by="wavefronts")
    )
    assert report.reasons == ("tile is a structure: layouts of arrays in a structure are not searched",)


def test_changes_of_one_place_are_not_made_together(tmp_path):
    """The index of `tile` has one of `rows` in it; each layout alone is fine, and the diff has one of them."""
    declared = "var<workgroup> rows: array<u32, 256>; var<workgroup> tile: array<f32, 544>;"
    first = "workgroupBarrier(); rows[at.x * 16u + at.y] = at.y; workgroupBarrier();"
    text = kernel("tile[rows[R * 16u + C] % 16u * 17u + C]", first, declared)
    module = check(text)
    outer, inner = (Layouts(module, module.pipeline(), name) for name in ("tile", "rows"))
    (wide,), (narrow,) = outer.pitches(), inner.pitches()
    both = wide.to(18) + narrow.to(17)
    assert both.overlaps
    assert not wide.to(18).overlaps
    assert not narrow.to(17).overlaps
    assert not (wide.moved(18) + narrow.moved(17)).overlaps

"""`bankshot advise`: which layouts of a shader can change, and the costs of the changed ones."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.advise import layout_search
from bankshot.oracle.advise.array_layouts import Change, Layouts
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.advise.swizzles import Swizzle, Term
from bankshot.oracle.advise.value_flow import Flow
from bankshot.oracle.cli.main import main
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.sim.wgsl.source import Source
from bankshot.sim.wgsl.syntax.parser import parse
from tests.conftest import ROOT

TRANSPOSE = """\
@group(0) @binding(0) var<storage, read> x: array<f32, 4096>;
@group(0) @binding(1) var<storage, read_write> y: array<f32, 4096>;
const TILE = 32u;
{declared}
@compute @workgroup_size(32, 8)
fn transpose(@builtin(local_invocation_id) at: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {{
    for (var row = at.y; row < TILE; row += 8u) {{
        tile{stored} = x[(group.y * TILE + row) * 64u + group.x * TILE + at.x];
    }}
    workgroupBarrier();
    for (var row = at.y; row < TILE; row += 8u) {{
        y[(group.x * TILE + row) * 64u + group.y * TILE + at.x] = tile{loaded};
    }}
}}
"""


def flat(pitch, declared):
    return TRANSPOSE.format(declared=declared, stored=f"[row * {pitch} + at.x]", loaded=f"[at.x * {pitch} + row]")


NAMED = "var<workgroup> tile: array<f32, TILE * PITCH>;"
FORMS = {
    "const": flat("PITCH", f"const PITCH = 32u;\n{NAMED}"),
    "typed const": flat("PITCH", f"const PITCH: u32 = TILE;\n{NAMED}"),
    "override": flat("PITCH", f"override PITCH: u32 = 32u;\n{NAMED}"),
    "pad": flat("(TILE + PAD)", "const PAD = 0u;\nvar<workgroup> tile: array<f32, TILE * (TILE + PAD)>;"),
    "pad-of-one": flat("(31u + PAD)", "const PAD = 1u;\nvar<workgroup> tile: array<f32, TILE * (31u + PAD)>;"),
    "written": flat("TILE", "var<workgroup> tile: array<f32, TILE * TILE>;"),
    "number": flat("32u", "var<workgroup> tile: array<f32, 1024>;"),
    "nested": TRANSPOSE.format(
        declared="var<workgroup> tile: array<array<f32, TILE>, TILE>;", stored="[row][at.x]", loaded="[at.x][row]"
    ),
}
WORKGROUPS = 4
SUBGROUPS = WORKGROUPS * 32  # that store a row of a tile, and that load a column


def case_of(folder, text, **given):
    file = folder / "transpose.wgsl"
    file.write_text(text)
    (plan,) = plans([file], Request(grid=(2, 2, 1), **given))
    return plan.case(plan.shapes[0])


@cache
def advised(form):
    """The advice for a form of the transpose, with all pitches."""
    with TemporaryDirectory() as folder:
        (advice,) = advise(case_of(Path(folder), FORMS[form]), Options(by="wavefronts")).advice
    return advice


def command(*arguments):
    return CliRunner().invoke(main, [str(a) for a in arguments])


@pytest.mark.parametrize("form", FORMS)
def test_a_transposing_tile_needs_one_more_word_per_row(form):
    advice = advised(form)
    best = advice.best_pad
    assert best.pitch - advice.written.pitch == 1
    assert (best.words, best.bytes) == (32 * 33, 4 * 32 * 33)
    # All 32 lanes of a load meet in one bank; with a word more, every access is one wavefront.
    assert advice.written.sites == (SUBGROUPS, 32 * SUBGROUPS)
    assert best.sites == (SUBGROUPS, SUBGROUPS)
    assert (advice.written.excess, best.excess) == (31 * SUBGROUPS, 0)
    assert not advice.ok


@pytest.mark.parametrize("form", FORMS)
def test_a_swizzle_achieves_the_same_without_more_memory(form):
    advice = advised(form)
    assert advice.best.swizzle == Swizzle((Term(5, 5),))  # column ^ row
    assert (advice.best.bytes, advice.best.excess) == (4096, 0)


def test_overlapping_rows_are_refused(tmp_path):
    (advice,) = advise(case_of(tmp_path, FORMS["const"]), Options(values=(0, 33))).advice
    refused = {trial.pitch: trial.refused for trial in advice.trials if trial.refused}
    assert refused[0] == "an array length must be at least 1, not 0"
    assert {pitch: refused[pitch] for pitch in range(1, 32)} == dict.fromkeys(range(1, 32), "outputs differ")
    assert refused.keys() == set(range(32))


def test_trials_run_the_changed_text(tmp_path):
    """The row for 33 has the counters of the simulator for a text with 33."""
    (advice,) = advise(case_of(tmp_path, FORMS["const"]), Options(values=(33, 33))).advice
    x = np.zeros(4096, np.float32)
    run = bankshot.simulate(
        FORMS["const"].replace("PITCH = 32u", "PITCH = 33u"), grid=(2, 2), bindings={"x": x, "y": x}
    )
    assert advice.best_pad.wavefronts == run.counters["shared_wavefronts"]
    assert advice.best_pad.bytes == run.counters["workgroup_memory_bytes"]


def test_a_kernel_with_a_manifest_agrees_with_direct_counts():
    """If the pitch is an override, each row is a run with that override."""
    request = Request(kernel="matmul_at", dims={"K": 64, "M": 32, "N": 64})
    (plan,) = plans([ROOT / "shaders" / "matmul_at.toml"], request)
    case = plan.case(plan.shapes[0])
    (advice,) = advise(case, Options(array="a_tile", values=(16, 20), most_bytes=32_768)).advice
    padded = [trial for trial in advice.trials if trial.swizzle is None]
    assert [trial.pitch for trial in padded] == [17, 16, 18, 19, 20]
    for trial in padded:
        run = bankshot.simulate(case.kernel.source, entry=case.kernel.entry, grid=case.grid, bindings=case.bindings,
                           overrides={"TK_PAD": trial.pitch})  # fmt: skip
        mine = [site.shared_wavefronts for site in run.sites if site.name == "a_tile"]
        assert trial.sites == tuple(mine)
        assert trial.bytes == run.counters["workgroup_memory_bytes"]


# ---- pitches and swizzles ----


def layouts(text):
    module = bankshot.check(text)
    return Layouts(module, module.pipeline(), "tile")


def test_a_constant_with_other_uses_is_not_a_pitch():
    found = layouts(FORMS["written"])
    (pitch,) = found.pitches()
    assert (pitch.name, pitch.now) == ("TILE in indices of tile", 32)
    assert found.reasons == ["TILE is not only a pitch of tile: shader.wgsl:7 uses it otherwise"]
    (named,) = found.pitches("TILE")
    assert named.name == "TILE"


USES = """\
const P = 3u;
var<workgroup> tile: array<f32, P * 4u>;
var<workgroup> other: array<f32, 64>;
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
fn place(row: u32, column: u32) -> u32 {{ return row * P + column; }}
fn put(at: u32, next: u32) {{ tile[at] = 1.0; tile[at + next] = 2.0; }}
@compute @workgroup_size(1)
fn main(@builtin(local_invocation_index) lane: u32) {{
    let at = place(lane, 1u);
    var far = at;
    far += P;
    put(at, P);
    tile[far] = 0.0;
    {more}
}}
"""


def elsewhere(more):
    reach = Flow(parse(Source(USES.format(more=more)))).reach("P", "tile")
    assert reach.sized
    assert reach.indexed
    assert reach.multiplied
    return [span.text for span in reach.elsewhere]


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ("", []),
        ("other[far] = 1.0;", ["far"]),
        ("y[0] = f32(P);", ["P"]),
        ("if far < 9u { y[0] = 1.0; }", ["far"]),
        ("let c = lane % P; tile[c] = 1.0;", ["P"]),
        ("let c = lane / P; tile[c] = 1.0;", ["P"]),
        ("let c = P % 4u; tile[c] = 1.0;", []),
        ("let c = at / 4u; tile[c] = 1.0;", []),
        ("for (var i = 0u; i < P; i += 1u) { tile[i * P] = 1.0; }", ["P"]),
        ("other[place(0u, 0u)] = 1.0;", ["place"]),
    ],
)
def test_values_are_followed_through_names_calls_and_results(more, found):
    assert elsewhere(more) == found


def test_an_array_of_a_function_with_the_same_name_is_another():
    text = USES.format(more="") + "fn own() { var tile = array<u32, 9>(); tile[P] = 1u; }"
    reach = Flow(parse(Source(text))).reach("P", "tile")
    assert [(span.text, span.line) for span in reach.elsewhere] == [("P", text.count("\n") + 1)]


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ("[row * 32u + at.x]", ["32u in indices of tile"]),
        ("[at.x + row * 32u]", ["32u in indices of tile"]),
        ("[(row + 1u - 1u) * 32u + (at.x)]", ["32u in indices of tile"]),
        ("[row * TILE + at.x]", []),
        ("[at.x]", []),
    ],
)
def test_a_swizzle_takes_indices_of_any_form(stored, found):
    """A pitch that is no constant of its own has to be the same factor everywhere."""
    declared = "var<workgroup> tile: array<f32, 1024>;"
    layout = layouts(TRANSPOSE.format(declared=declared, stored=stored, loaded="[at.x * 32u + row]"))
    assert [pitch.name for pitch in layout.pitches()] == found
    assert len(layout.reasons) == (not found)
    text = layout.swizzled(Change(), Swizzle((Term(5, 5),)), 0).module(layout.module).source.text
    assert f"tile[tile_at({stored[1:-1]})] = x" in text
    assert "= tile[tile_at(at.x * 32u + row)]" in text


def test_without_an_accepted_layout_a_reason_says_why(tmp_path):
    """The tile takes 4,096 bytes as written, and no pitch takes less."""
    report = advise(case_of(tmp_path, FORMS["const"]), Options(values=(32, 33), most_bytes=4095))
    words = "no layout of tile is accepted, nor is the text as written: more than 4,095 bytes of workgroup memory"
    assert words in report.reasons
    assert report.advice == ()


def test_a_pointer_to_the_array_hides_its_indices(tmp_path):
    text = FORMS["const"].replace("workgroupBarrier();", "workgroupBarrier(); let p = &tile; _ = (*p)[0];")
    found = layouts(text)
    assert found.indices == ()
    words = "shader.wgsl:11 uses tile as a whole, by a pointer or as a value: no index is changed"
    assert found.reasons == [words]
    report = advise(case_of(tmp_path, text), Options(values=(32, 32)))
    assert report.reasons == (words.replace("shader.wgsl", str(tmp_path / "transpose.wgsl")),)


@pytest.mark.parametrize(
    ("excess", "reasons"),
    [
        ([], ("no layout of tile has fewer bank conflicts",)),
        ([3], ()),  # fewer, though not none
        ([3, 0], ()),
    ],
)
def test_the_reason_for_no_advice(tmp_path, monkeypatch, excess, reasons):
    found = [SimpleNamespace(best=SimpleNamespace(excess=each), pitch=None, ok=True, slower=False) for each in excess]
    monkeypatch.setattr(layout_search, "_of_array", lambda *given: found)
    report = advise(case_of(tmp_path, FORMS["const"]), Options())
    assert (report.advice, report.reasons) == (tuple(found), reasons)


def test_the_bits_of_every_kind_of_output():
    """A number of no dimensions, an array, bytes, and mip levels."""
    one = np.array(0x01020304, np.uint32)
    assert layout_search._bits(one) == [bytes((4, 3, 2, 1))]
    assert layout_search._bits(np.array([[1, 2], [3, 4]], np.uint8)) == [bytes((1, 2, 3, 4))]
    assert layout_search._bits(b"ab") == [b"ab"]
    assert layout_search._bits([np.array([1], np.uint8), np.array([2, 3], np.uint8)]) == [b"\x01", b"\x02\x03"]


def test_an_array_whose_type_is_an_alias_is_swizzled(tmp_path):
    declared = "alias Tile = array<f32, 1024>;\nvar<workgroup> tile: Tile;"
    text = TRANSPOSE.format(declared=declared, stored="[row * 32u + at.x]", loaded="[at.x * 32u + row]")
    (advice,) = advise(case_of(tmp_path, text), Options()).advice
    assert (advice.pitch, advice.best.swizzle, advice.best.excess) == ("", Swizzle((Term(5, 5),)), 0)


def test_an_array_that_indexes_itself_keeps_its_pitch():
    text = FORMS["number"].replace("tile[at.x * 32u + row]", "tile[at.x * 32u + u32(tile[row * 32u + row])]")
    found = layouts(text)
    assert found.pitches() == []
    assert found.reasons == ["an index of tile is itself read from tile, so its pitch is not varied"]
    changed = found.swizzled(Change(), Swizzle((Term(5, 5),)), 0).module(found.module).source.text
    assert "tile[tile_at(at.x * 32u + u32(tile[tile_at(row * 32u + row)]))]" in changed


def test_edits_keep_line_numbers():
    module = bankshot.check(FORMS["number"])
    (pitch,) = Layouts(module, module.pipeline(), "tile").pitches()
    changed = Layouts(module, module.pipeline(), "tile").change(pitch, 33).module(module)
    assert changed.source.line_count == module.source.line_count
    assert "array<f32, (1024) / 32u * (32u + 1)>" in changed.source.text
    assert "tile[((row)) * (32u + 1) + at.x]" in changed.source.text
    assert Change().module(module) is module


# ---- the command ----


def test_the_command_shows_a_table_and_exits_with_1_if_a_layout_is_better(tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["const"])
    result = command("advise", file, "--grid", "2,2", "--pads", "31..33", "--by", "wavefronts")
    assert result.exit_code == 1
    assert (
        "tile: PITCH = 32 is best swizzled as index ^ ((index >> 5) & 31): 4,224 wavefronts become 256" in result.output
    )
    rows = [line.split() for line in result.output.splitlines()]
    assert ["33", "4,224", "256", "0", "128", "128", *["<-", "best", "without", "a", "swizzle"]] in rows
    assert "rejected: 31: outputs differ" in result.output


def test_json_has_every_trial(tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["const"].replace("PITCH = 32u", "PITCH = 33u"))
    result = command("advise", file, "--grid", "2,2", "--pads", "33..34", "--json")
    assert result.exit_code == 0  # as written, it is the best of the two
    (found,) = json.loads(result.stdout)["cases"][0]["arrays"]
    assert [trial["pitch"] for trial in found["trials"]] == [33, 34]
    assert found["best"] == found["written"]
    assert found["trials"][1]["shared_wavefronts"] == 3 * SUBGROUPS  # lanes 0 and 16 meet


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--array", "tiles"), "--array tiles: the arrays in workgroup memory are tile"),
        (("--pitch", "PICH"), "--pitch PICH: the module has no integer constant of that name with a known value"),
        (("--pitch", "HALF"), "--pitch HALF: the module has no integer constant of that name with a known value"),
        (("--pitch", "UNUSED"), "--pitch UNUSED: the module has no integer constant of that name with a known value"),
        (("--pads", "9..3"), "--pads 9..3: write the smaller number, 0 or more, first"),
        (("--pads", "some"), "--pads some: write FROM..TO, as in 0..33"),
    ],
)
def test_wrong_options_are_explained(options, message, tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["const"] + "const HALF = 0.5; override UNUSED: u32;")
    result = command("advise", file, "--grid", "2,2", *options)
    assert (result.exit_code, result.output.splitlines()[-1]) == (2, f"error: {message}")


@pytest.mark.parametrize("op", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize("sides", ["P {} lane", "lane {} P"])
def test_a_comparison_is_no_distance_between_rows(op, sides):
    assert elsewhere(f"tile[u32({sides.format(op)})] = 1.0;") == ["P"]


@pytest.mark.parametrize("op", ["&&", "||"])
def test_a_condition_is_no_distance_between_rows(op):
    assert elsewhere(f"tile[u32(bool(P) {op} bool(lane))] = 1.0;") == ["P"]
    assert elsewhere(f"tile[u32(bool(lane) {op} bool(P))] = 1.0;") == ["P"]


@pytest.mark.parametrize("op", ["+", "-", "*", "&", "|", "^", "<<", ">>"])
def test_arithmetic_in_an_index_is_followed(op):
    assert elsewhere(f"tile[lane {op} P] = 1.0; tile[P {op} lane] = 1.0;") == []


def test_workgroups_larger_than_the_default_limit_get_advice(tmp_path):
    """WebGPU's default is 256 invocations; devices grant 1,024, and so does a run."""
    text = (
        flat("PITCH", f"const PITCH = 32u;\n{NAMED}").replace("(32, 8)", "(32, 32)").replace("row += 8u", "row += 32u")
    )
    (tmp_path / "k.wgsl").write_text(text)
    (plan,) = plans([tmp_path / "k.wgsl"], Request(grid=(2, 2, 1)))
    (advice,) = advise(plan.case(plan.shapes[0]), Options(values=(32, 33), by="wavefronts")).advice
    assert (advice.written.refused, advice.written.excess > 0, advice.best.excess) == (None, True, 0)

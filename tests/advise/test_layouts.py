"""The text of changed layouts, the form of indices, and the whole output of `bankshot advise`, worked out by hand."""

import io
import json
from types import SimpleNamespace

import pytest

import bankshot
from bankshot.oracle.advise.advice import Trial
from bankshot.oracle.advise.array_layouts import Layouts
from bankshot.oracle.advise.layout_search import Options, advise
from bankshot.oracle.advise.swizzles import Swizzle, Term
from bankshot.oracle.reports import advise_report
from bankshot.oracle.reports.advise_report import show_advised
from bankshot.oracle.reports.terminal import console
from bankshot.sim.cures.patches import Patch
from tests.advise import test_advise as transpose

FORMS = transpose.FORMS
WGSL = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32, 64>;
{declared}
@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) i: u32) {{
    let row = i / 4u;
    tile{index} = 1.0;
    y[i] = 2.0;
}}
"""


def layouts(declared, index):
    module = bankshot.check(WGSL.format(declared=declared, index=index))
    return Layouts(module, module.pipeline(), "tile")


FLAT = "var<workgroup> tile: array<f32, {}>;"
NESTED = "var<workgroup> tile: array<array<f32, {}>, {}>;"
ONE, TWO = Swizzle((Term(2, 1),)), Swizzle((Term(2, 2), Term(3, 1, 1)))
AT = "fn tile_at(index: u32) -> u32 {{ return index ^ ((index >> 2u) & 1u); }} "
# The declarations, the index; the name of the pitch, its value, a value to set, and a swizzle; the changed
# declarations, index and override.
CHANGES = {
    "const": ("const P = 4u; " + FLAT.format("P * 4u"), "[row * P + i]", "P", 4, 5, None,
              "const P = 5u; " + FLAT.format("P * 4u"), "[row * P + i]", {}),
    "const of an abstract type": ("const P = 4; " + FLAT.format("P * 4"), "[row * P + i]", "P", 4, 5, None,
                                  "const P = 5; " + FLAT.format("P * 4"), "[row * P + i]", {}),
    "const of a sum": ("const P = 3u + 1u; " + FLAT.format("P * 4u"), "[row * P + i]", "P", 4, 5, None,
                       "const P = 5u; " + FLAT.format("P * 4u"), "[row * P + i]", {}),
    "const with a type": ("const P: i32 = 4; " + FLAT.format("P * 4"), "[i32(row) * P + i32(i)]", "P", 4, 5, None,
                          "const P: i32 = 5; " + FLAT.format("P * 4"), "[i32(row) * P + i32(i)]", {}),
    "override": ("override P = 4u; " + FLAT.format("P * 4u"), "[row * P + i]", "P", 4, 5, None,
                 "override P = 4u; " + FLAT.format("P * 4u"), "[row * P + i]", {"P": 5}),
    "override and a swizzle": ("override P = 4u; " + FLAT.format("P * 4u"), "[row * P + i]", "P", 4, 5, ONE,
                               "override P = 4u; " + AT + FLAT.format("P * 4u"), "[tile_at(row * P + i)]", {"P": 5}),
    "an index that is no u32": (FLAT.format(16), "[i32(row) * 4 + i32(i)]", "4 in indices of tile", 4, 4, ONE,
                                AT + FLAT.format(16), "[tile_at(u32(i32(row) * 4 + i32(i)))]", {}),
    "nested": (NESTED.format(4, 4), "[row][i]", "row length of tile", 4, 5, None,
               NESTED.format(5, 4), "[row][i]", {}),
    "nested and a swizzle": (
        NESTED.format(4, 4), "[row][i32(i)]", "row length of tile", 4, 4, TWO,
        "fn tile_at(row: u32, column: u32) -> u32 {{ let index = row * 4u + column; "
        "return (index ^ ((index >> 2u) & 3u) ^ (((index >> 3u) & 1u) << 1u)) % 4u; }} " + NESTED.format(4, 4),
        "[row][tile_at(row, u32(i32(i)))]", {}),
    "written": (FLAT.format(16), "[row * 4u + i]", "4u in indices of tile", 4, 6, None,
                FLAT.format("(16) / 4u * (4u + 2)"), "[((row)) * (4u + 2) + i]", {}),
    "written, less": (FLAT.format(16), "[row * 4u + i]", "4u in indices of tile", 4, 1, None,
                      FLAT.format("(16) / 4u * (4u - 3)"), "[((row)) * (4u - 3) + i]", {}),
    "written, as it is": (FLAT.format(16), "[row * 4u + i]", "4u in indices of tile", 4, 4, None,
                          FLAT.format(16), "[row * 4u + i]", {}),
    "written and a swizzle": (FLAT.format(16), "[row * 4u + i]", "4u in indices of tile", 4, 6, ONE,
                              AT + FLAT.format("(16) / 4u * (4u + 2)"), "[tile_at(((row)) * (4u + 2) + i)]", {}),
    "a second buffer": (FLAT.format("2 * 16"), "[16u + row * 4u + i]", "4u in indices of tile", 4, 5, None,
                        FLAT.format("(2 * 16) / 4u * (4u + 1)"), "[((16u) / 4u + (row)) * (4u + 1) + i]", {}),
    "one of several buffers": (FLAT.format(32), "[i * 16u + row * 4u + 3u]", "4u in indices of tile", 4, 5, None,
                               FLAT.format("(32) / 4u * (4u + 1)"),
                               "[((i) * (16u) / 4u + (row)) * (4u + 1) + 3u]", {}),
    "several terms": (FLAT.format(16), "[(row + 0u) * 4u + 4u * (row * i) + i + 1u]", "4u in indices of tile", 4, 5,
                      None,
                      FLAT.format("(16) / 4u * (4u + 1)"),
                      "[(((row + 0u)) + (row) * (i)) * (4u + 1) + i + 1u]", {}),
    "a row by number": (FLAT.format(16), "[4u + row * 4u + i]", "4u in indices of tile", 4, 5, None,
                        FLAT.format("(16) / 4u * (4u + 1)"), "[(1 + (row)) * (4u + 1) + i]", {}),
    "no column": (FLAT.format(16), "[row * 4u]", "4u in indices of tile", 4, 5, None,
                  FLAT.format("(16) / 4u * (4u + 1)"), "[((row)) * (4u + 1) + 0]", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_the_text_of_a_change(name):
    declared, index, pitch, now, value, swizzle, new_declared, new_index, overrides = CHANGES[name]
    found = layouts(declared, index)
    (only,) = found.pitches()
    assert (only.name, only.now, found.reasons) == (pitch, now, [])
    change = found.change(only, value)
    if swizzle:
        change = found.swizzled(change, swizzle, value if "nested" in name else 0)
    assert change.module(found.module).source.text == WGSL.format(
        declared=new_declared.replace("{{", "{").replace("}}", "}"), index=new_index
    )
    assert change.overrides == overrides


NO_PITCH = {
    "one index without a factor": (FLAT.format(16), "[i]", ["the index of tile[i] is not row * PITCH + column"]),
    "two factors": (FLAT.format(64), "[row * 4u * 2u + i]", ["several constants could be the pitch of tile: 2u, 4u"]),
    "a factor that varies": (FLAT.format(16), "[row * i]", ["the index of tile[row * i] is not row * PITCH + column"]),
    "a size of no type arguments": ("alias T = array<f32, 16>; var<workgroup> tile: T;", "[row * 4u + i]", []),
}


@pytest.mark.parametrize("name", NO_PITCH)
def test_indices_without_a_pitch(name):
    declared, index, reasons = NO_PITCH[name]
    found = layouts(declared, index)
    assert found.pitches() == []
    assert [reason.removeprefix("shader.wgsl:6: ") for reason in found.reasons] == reasons


@pytest.mark.parametrize(
    ("declared", "only", "found"),
    [
        ("const P = 4u; const F = 1.5; override Q = 3;", "P", [("P", 4)]),
        ("const P = 4u; const F = 1.5; override Q = 3;", "Q", []),  # the entry point does not use it
        ("const P = 4u; const F = 1.5; override Q = 3;", "F", []),
        ("const P = true;", "P", []),
        ("const P = 4u;", "y", []),
        ("const P = 4u;", "R", []),
    ],
)
def test_a_pitch_by_name(declared, only, found):
    made = layouts(declared + FLAT.format(16), "[row * 4u + i]").pitches(only)
    assert [(pitch.name, pitch.now) for pitch in made] == found


TABLE = """\
transpose
  FILE, entry transpose, grid 2 x 2 x 1, charged as nvidia

  tile: {pitch} is best swizzled as index ^ ((index >> 5) & 31): 4,224 wavefronts become 256, the same memory
  no layout that was searched takes fewer wavefronts

       pitch  bytes  wavefronts  excess  {store} store  {load} load
 ────────────────────────────────────────────────────────────────────────────────────
          32  4,096       4,224   3,968      128     4096  <- as written
 32 swizzled  4,096         256       0      128      128  <- best
          33  4,224         256       0      128      128  <- best without a swizzle

{rejected}  rejected: x and y of the invocations exchanged: no fewer wavefronts and sectors

--- a/FILE
+++ b/FILE
{diff}{note}
  limits: 8 resident workgroups per core (100% of its subgroups), limited by subgroups and threads
  registers: no limit up to 32 a lane; how many the kernel takes is up to the compiler
  tail: workgroups take 4 of 1,056 places (0.4% of those in all waves)

advise: 0 of 1 cases with no better layout; 1 with a better one; nothing compared
"""


@pytest.mark.parametrize(
    ("form", "pads", "words"),
    [
        (
            "const",
            "31..33",
            {"pitch": "PITCH = 32", "store": 9, "load": 13, "rejected": "  rejected: 31: outputs differ\n", "note": ""},
        ),
        (
            "written",
            "33..33",
            {"pitch": "TILE = 32 in indices of tile", "store": 8, "load": 12, "rejected": "", "note": ""},
        ),
    ],
)
def test_the_whole_text(form, pads, words, tmp_path):
    """A store of a row is a wavefront; a load of a column is 32, and with a mask of m, 32 / (m + 1)."""
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS[form])
    result = transpose.command("advise", file, "--grid", "2,2", "--pads", pads, "--by", "wavefronts")
    assert result.exit_code == 1
    text = result.stdout.replace(f"a{file}", "a/FILE").replace(f"b{file}", "b/FILE").replace(str(file), "FILE")
    diff = text[text.index("@@") : text.index("\n  limits:")]
    printed = [line.rstrip() for line in text.splitlines()]
    assert printed == [line.rstrip() for line in TABLE.format(diff=diff, **words).splitlines()]


def test_the_whole_json(tmp_path):
    file = tmp_path / "transpose.wgsl"
    file.write_text(FORMS["const"].replace("PITCH = 32u", "PITCH = 31u + 1u"))
    result = transpose.command("advise", file, "--grid", "2,2", "--pads", "31..33", "--json", "--by", "wavefronts")

    def trial(pitch, words, load, swizzle=None):
        return {"pitch": pitch, "swizzle": swizzle, "same_sectors": True, "same_outputs": True, "refused": None,
                "words": words, "workgroup_memory_bytes": 4 * words, "shared_wavefronts": 128 + load,
                "excess": load - 128, "by_site": [128, load], "predicted_us": None}  # fmt: skip

    written, best = trial(32, 1024, 4096), trial(32, 1024, 128, "index ^ ((index >> 5) & 31)")
    (case,) = json.loads(result.stdout)["cases"]
    (array,) = case.pop("arrays")
    refused = array["trials"][1]
    assert (refused["pitch"], refused["refused"], refused["same_outputs"]) == (31, "outputs differ", False)
    sites = [{"file": str(file), "line": 9, "kind": "store"}, {"file": str(file), "line": 13, "kind": "load"}]
    assert array == {"array": "tile", "pitch": "PITCH", "exact": True, "sites": sites, "written": written,
                     "best": best, "trials": [written, refused, trial(33, 1056, 128), best]}  # fmt: skip
    assert (case["together"], case["unmapped"], case["written"]) == (None, [], [])
    assert "+fn tile_at(index: u32) -> u32 { return index ^ ((index >> 5u) & 31u); }" in case["diff"].splitlines()
    assert case["ok"] is False


def test_a_layout_is_refused_if_one_of_several_outputs_differs(tmp_path):
    """`z` is the same for every pitch; `y` is not where rows overlap."""
    text = FORMS["const"].replace("const TILE", "@group(0) @binding(2) var<storage, read_write> z: u32;\nconst TILE")
    case = transpose.case_of(tmp_path, text.replace("workgroupBarrier();", "workgroupBarrier(); z = 7u;"))
    (advice,) = advise(case, Options(values=(31, 33))).advice
    refused = {trial.pitch: (trial.refused, trial.same_outputs) for trial in advice.trials if trial.swizzle is None}
    assert refused == {32: (None, True), 31: ("outputs differ", False), 33: (None, True)}


# How `P`, which is 4, occurs: in the size of the array, its index, and elsewhere; the pitch that is found, if any, and
# whether there is a reason why `P` is none.
SIZED, UNSIZED = FLAT.format("P * 4u"), FLAT.format(16)
USES = {
    "size and index": (SIZED, "[row * P + i]", "2.0", "P", False),
    "and elsewhere": (SIZED, "[row * P + i]", "f32(P)", "P in indices of tile", True),
    "index alone": (UNSIZED, "[row * P + i]", "2.0", "P in indices of tile", False),
    "index and elsewhere": (UNSIZED, "[row * P + i]", "f32(P)", "P in indices of tile", False),
    "size alone": (SIZED, "[row * 4u + i]", "2.0", "4u in indices of tile", False),
    "size and elsewhere": (SIZED, "[row * 4u + i]", "f32(P)", "4u in indices of tile", False),
    "never a factor": (FLAT.format("P + 12u"), "[row + P]", "2.0", None, True),
    "never a factor, and elsewhere": (FLAT.format("P + 12u"), "[row + P]", "f32(P)", None, True),
    "elsewhere alone": (UNSIZED, "[row * 4u + i]", "f32(P)", "4u in indices of tile", False),
}


@pytest.mark.parametrize("name", USES)
def test_a_pitch_sizes_and_indexes_the_array_alone(name):
    declared, index, stored, pitch, reason = USES[name]
    text = WGSL.format(declared=f"const P = 4u; {declared}", index=index).replace("2.0", stored)
    module = bankshot.check(text)
    found = Layouts(module, module.pipeline(), "tile")
    assert [each.name for each in found.pitches()] == ([] if pitch is None else [pitch])
    other = "P is not only a pitch of tile: shader.wgsl:7 uses it otherwise"
    unsuitable = "shader.wgsl:6: the index of tile[row + P] is not row * PITCH + column"
    assert found.reasons == ([] if not reason else [other] if pitch else [unsuitable])


@pytest.fixture
def no_costs(monkeypatch):
    monkeypatch.setattr(advise_report, "cost_places", lambda run: ())


def test_every_reason_is_shown(no_costs):
    out = io.StringIO()
    case = SimpleNamespace(kernel=SimpleNamespace(name="k", source="k.wgsl", entry="main"), shape="", grid=(1, 1, 1))
    result = SimpleNamespace(
        case=case,
        run=None,
        device="nvidia",
        advice=[],
        reasons=["one", "two", "three"],
        together=None,
        fewest=None,
        patch=Patch({}),
        written=(),
        rewrites=(),
        strides=(),
        residency=(),
        predicted_us=(),
        timed_as=None,
    )
    show_advised(console(out), result)
    assert [line.rstrip() for line in out.getvalue().splitlines()] == [
        "k", "  k.wgsl, entry main, grid 1 x 1 x 1, charged as nvidia",
        "  note: one", "  note: two", "  note: three", "",
    ]  # fmt: skip


def trial(pitch, swizzle=None, sites=(1, 1, 1), refused=None, **given):
    facts = {"words": 8, "bytes": 32, "wavefronts": sum(sites), "excess": 0, "same_sectors": True, "same_outputs": True}
    return Trial(**{"pitch": pitch, "swizzle": swizzle, "sites": sites, "refused": refused, **facts, **given})


def advice(trials, kinds=("load", "load", "store"), best=0):
    sites = [SimpleNamespace(line=10 + number, kind=kind) for number, kind in enumerate(kinds)]
    accepted = [trial for trial in trials if trial.refused is None]
    return SimpleNamespace(array="tile", pitch="P", sites=sites, trials=trials, written=trials[0], best=trials[best],
                           best_pad=trials[best], ok=best == 0, exact=True, slower=False,
                           accepted=accepted)  # fmt: skip


@pytest.mark.parametrize(
    ("kinds", "sites", "groups", "headings"),
    [
        (("load", "load", "store"), [(1, 1, 1), (2, 2, 2)], [[0, 1], [2]], ["10-11 load", "12 store"]),
        (("load", "load", "load"), [(1, 2, 2), (2, 2, 2)], [[0], [1, 2]], ["10 load", "11-12 load"]),
        (("load", "store", "load"), [(1, 1, 1)], [[0], [1], [2]], ["10 load", "11 store", "12 load"]),
        (("load", "store") * 3, [(1,) * 6], [[0], [1], [2], [3], [4], [5]],
         ["10 load", "11 store", "12 load", "13 store", "14 load", "15 store"]),
        (("load", "store") * 4, [(1,) * 8], [[0], [1], [2], [3], [4], [5, 6, 7]],
         ["10 load", "11 store", "12 load", "13 store", "14 load", "15-17 others"]),
    ],
)  # fmt: skip
def test_accesses_that_cost_the_same_share_a_column(kinds, sites, groups, headings):
    """Those beyond five columns share one. A layout that is refused does not count."""
    apart = trial(9, sites=tuple(range(len(kinds))), refused="outputs differ")
    made = advice([*(trial(number, sites=each) for number, each in enumerate(sites)), apart], kinds)
    assert advise_report._groups(made) == groups
    assert [advise_report._heading([made.sites[n] for n in group]) for group in groups] == headings


def test_the_words_beside_a_row():
    written, padded, swizzled, other = (trial(number) for number in range(4))
    made = SimpleNamespace(written=written, best=swizzled, best_pad=padded)
    bold = "bold"
    assert [advise_report._mark(made, each) for each in (written, padded, swizzled, other)] == [
        ("<- as written", bold), ("<- best without a swizzle", bold), ("<- best", "bold green"), ("", ""),
    ]  # fmt: skip
    made = SimpleNamespace(written=written, best=written, best_pad=written)
    assert advise_report._mark(made, written) == ("<- as written, best", "bold green")


@pytest.mark.parametrize(
    ("best", "words"),
    [
        (trial(32, sites=(5,)), "P = 32, as written, is the best of 2 layouts that keep the outputs"),
        (trial(33, sites=(2,), bytes=36), "P = 32 is best changed to 33: 1,005 wavefronts become 2, +4 bytes"),
        (trial(32, ONE, (2,)),
         "P = 32 is best swizzled as index ^ ((index >> 2) & 1): 1,005 wavefronts become 2, the same memory"),
        (trial(33, TWO, (2,), bytes=36),
         "P = 32 is best changed to 33 and swizzled as index ^ ((index >> 2) & 3) ^ (((index >> 3) & 1) << 1): "
         "1,005 wavefronts become 2, +4 bytes"),
        (trial(31, sites=(2,), bytes=28), "P = 32 is best changed to 31: 1,005 wavefronts become 2, -4 bytes"),
    ],
)  # fmt: skip
def test_the_verdict(best, words):
    made = advice([trial(32, sites=(1_005,)), best, trial(30, refused="outputs differ")], best=1)
    made.ok = "as written" in words
    assert advise_report._verdict(made) == words


@pytest.mark.parametrize(
    ("pitches", "shown"),
    [([1, 2], "1, 2"), ([1, 2, 3, 4], "1, 2, 3, 4"), ([1, 2, 3, 4, 5], "1 \u2026 5 (5)")],
)
def test_layouts_that_are_rejected(pitches, shown):
    out = io.StringIO()
    trials = [trial(each, refused="rows overlap") for each in pitches]
    advise_report._refused(console(out), advice([trial(9), *trials, trial(7, ONE, refused="outputs differ")]))
    assert out.getvalue().splitlines() == [
        f"  rejected: {shown}: rows overlap",
        "  rejected: 7 swizzled: outputs differ",
    ]


def test_a_pitch_of_nothing_is_not_called_the_text_as_written():
    out = io.StringIO()
    advise_report._refused(
        console(out), advice([trial(9), trial(0, refused="no length"), trial(1, refused="no length")])
    )
    assert out.getvalue() == "  rejected: 0, 1: no length\n"


def test_every_array_is_shown_with_what_is_rejected(no_costs):
    out = io.StringIO()
    case = SimpleNamespace(kernel=SimpleNamespace(name="k", source="k.wgsl", entry="main"), shape="", grid=(1, 1, 1))
    found = [advice([trial(9), trial(number, refused="rows overlap")]) for number in (1, 2)]
    show_advised(
        console(out),
        SimpleNamespace(
            case=case,
            run=None,
            device="nvidia",
            advice=found,
            reasons=[],
            together=None,
            fewest=None,
            patch=Patch({}),
            written=(),
            rewrites=(),
            strides=(),
            residency=(),
            predicted_us=(),
            timed_as=None,
        ),
    )
    lines = out.getvalue().splitlines()
    assert [line for line in lines if "rejected" in line] == [
        "  rejected: 1: rows overlap", "  rejected: 2: rows overlap",
    ]  # fmt: skip
    assert not [line for line in lines if "no layout to try" in line]

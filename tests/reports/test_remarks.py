"""The remarks of cases, errors and files: at which place, in which words, and in which order."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.reports import remarks
from bankshot.oracle.reports.remarks import CODES, ERROR, NOTE, WARNING, Entry, Remark, merged, remark_words
from bankshot.sim.wgsl.diagnostics import WgslError
from bankshot.sim.wgsl.source import Source, Span

SOURCE = Source("fn main() {\n    y[0] = 1;\n    z[0] = 2;\n}\n", "a/k.wgsl")


def span(text, length=None):
    start = SOURCE.text.index(text)
    return Span(SOURCE, start, start + (len(text) if length is None else length))


ENTRY, STORE = span("main"), span("y[0]")


# ---- order ---------------------------------------------------------------------------------------------


def test_remarks_are_ranked_by_level_code_weight_and_place():
    ordered = [
        Remark(ERROR, "wrong-use", "", "z"),
        Remark(ERROR, "output", "", "z"),
        Remark(ERROR, "race", "", "b", weight=9),
        Remark(ERROR, "aaa", "", "a", 3),
        Remark(ERROR, "race", "", "a", 7),
        Remark(ERROR, "race", "", "b", 1),
        *(Remark(ERROR, code, "", "a") for code in ("limit", "counter", "golden", "unchecked", "unbounded")),
        Remark(WARNING, "output", "", "a"),
        Remark(NOTE, "race", "", "a"),
    ]
    assert sorted(reversed(ordered), key=lambda each: each.rank) == ordered
    assert len({each.rank for each in ordered}) == len(ordered)


def test_the_worst_remark_of_a_code_at_a_place_stands_for_all():
    worst, mild = Remark(ERROR, "race", "worst", "a", 3, weight=5), Remark(WARNING, "race", "mild", "a", 3, weight=9)
    entries = [
        Entry("1", ok=False, remarks=(mild, Remark(ERROR, "race", "there", "a", 4))),
        Entry("2", ok=False, remarks=(worst, Remark(ERROR, "output", "first", "b", 3))),
        Entry("3", ok=False, remarks=(Remark(ERROR, "race", "less", "a", 3, weight=4, cases=2),)),
    ]  # fmt: skip
    assert [(each.message, each.cases) for each in merged(entries)] == [("first", 1), ("worst", 4), ("there", 1)]
    assert merged([]) == []


@pytest.mark.parametrize(
    ("remark", "words"),
    [
        (Remark(ERROR, "race", "it races", "a/k.wgsl", 3), "k.wgsl:3: it races"),
        (Remark(ERROR, "race", "it races", "a/k.wgsl"), "it races"),
        (Remark(ERROR, "race", "it races", "a/k.wgsl", 3, cases=2), "k.wgsl:3: it races (in 2 cases)"),
        (Remark(ERROR, "race", "it races", "a/k.wgsl", 3, also=[("with", "b/c.wgsl", 7)], hint="wait"),
         "k.wgsl:3: it races\nc.wgsl:7: with\nhint: wait"),
    ],
)  # fmt: skip
def test_a_remark_in_words(remark, words):
    assert remark_words(remark) == words


def test_the_outcome_of_an_entry():
    for ok, outcome, word in ((True, "", "clean"), (False, "", "failed"), (True, "unchecked", "unchecked")):
        assert Entry("k", ok=ok, outcome=outcome).word == word
    made = Entry(
        "k", ok=False, figures={"barriers": 2}, remarks=(Remark(ERROR, "race", "it races", "a", also=[("b", "c", 4)]),)
    )
    assert remarks.entry_of_plain(made.plain()) == made


# ---- places --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "line", "column", "end"),
    [
        (STORE, 2, 5, 9),
        (ENTRY, 1, 4, 8),
        (span("y[0]", 0), 2, 5, 6),  # one character at least
        (span("y[0]", 20), 2, 5, 0),  # it ends on another line
    ],
)
def test_the_place_of_a_remark(at, line, column, end):
    made = remarks._of_span(ERROR, "race", "it races", at, "other.wgsl", 4, hint="wait")
    assert (made.file, made.line, made.column, made.end_column) == ("a/k.wgsl", line, column, end)
    assert (made.weight, made.hint, [*made.also]) == (4, "wait", [])


def test_a_remark_without_a_place_is_of_the_file():
    notes = [SimpleNamespace(message="with", span=STORE), SimpleNamespace(message="and", span=None)]
    made = remarks._of_span(WARNING, "race", "it races", None, "k.wgsl", 4, notes)
    assert made == Remark(WARNING, "race", "it races", "k.wgsl", weight=4, also=[("with", "a/k.wgsl", 2)])


@pytest.mark.parametrize(
    ("error", "file", "line", "message"),
    [
        (UsageError("k.toml:7: no such dim"), "k.toml", 7, "no such dim"),
        (UsageError("a/k.toml: no such dim: N\nmore"), "a/k.toml", 0, "no such dim: N\nmore"),
        (UsageError("no such dim"), "given.wgsl", 0, "no such dim"),
        (UsageError("N: is no dim"), "given.wgsl", 0, "N: is no dim"),
        (MemoryError("none"), "given.wgsl", 0, "none"),
    ],
)
def test_an_error_is_a_remark_at_the_place_that_it_names(error, file, line, message):
    made = remarks.entry_of_error("k N=4", error, "given.wgsl")
    assert (made.title, made.ok, made.outcome) == ("k N=4", False, "error")
    assert made.remarks == (Remark(ERROR, "wrong-use", message, file, line),)


def diagnostic(severity="error", code="unknown-name", at=STORE):
    return SimpleNamespace(severity=severity, code=code, message="no y", span=at, notes=(), hint="declare it",
                           render=lambda: "no y")  # fmt: skip


def test_each_error_of_a_shader_is_a_remark():
    made = remarks.entry_of_error("k", WgslError(diagnostic(), diagnostic(at=None)), "k.wgsl")
    assert [(each.code, each.file, each.line, each.hint) for each in made.remarks] == [
        ("unknown-name", "a/k.wgsl", 2, "declare it"), ("unknown-name", "k.wgsl", 0, "declare it"),
    ]  # fmt: skip


def test_the_remarks_of_a_checked_file():
    found = [diagnostic(severity) for severity in ("error", "warning", "info")]
    made = remarks.entry_of_diagnostics("k.wgsl", found)
    assert (made.title, made.ok, [each.level for each in made.remarks]) == ("k.wgsl", False, [ERROR, WARNING, NOTE])
    assert remarks.entry_of_diagnostics("k.wgsl", []).ok


def test_paths_are_from_the_root_of_the_repository(tmp_path, monkeypatch):
    root, other = tmp_path / "root", tmp_path / "other"
    for folder in (root, other):
        folder.mkdir()
    monkeypatch.chdir(other)
    monkeypatch.setenv("GITHUB_WORKSPACE", str(root))
    assert remarks.from_root(str(root / "a" / "k.wgsl")) == "a/k.wgsl"
    assert remarks.from_root(str(other / "k.wgsl")) == (other / "k.wgsl").as_posix()
    assert remarks.from_root("../root/k.wgsl") == "k.wgsl"
    monkeypatch.setenv("GITHUB_WORKSPACE", "")
    assert remarks.from_root(str(other / "k.wgsl")) == "k.wgsl"
    assert remarks.from_root("a/k.wgsl") == "a/k.wgsl"


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [("flops", 40, 2), ("flops", 4, 0), ("barriers", 3, 3), ("ops", 40, 0), ("name", "a.b", 5), ("share", 1.5, 6),
     ("share", 1, 0), ("none", 1, 0)],
)  # fmt: skip
def test_the_line_of_a_figure_in_the_manifest(tmp_path, key, value, line):
    path = tmp_path / "k.toml"
    path.write_text('[expect]\nflops = 40\nbarriers=3\nflops = 40\nname = "a.b"\nshare = 1.5\n')
    assert remarks._line_of(path, key, value) == line


COUNTERS = {"shared_wavefronts": 9, "shared_ideal_wavefronts": 4, "global_sectors": 6, "global_ideal_sectors": 4,
            "barriers": 3}  # fmt: skip


def test_figures_are_those_that_were_counted():
    made = remarks.figures_of({**COUNTERS, "flops": 5})
    assert made == {"excess_wavefronts": 5, "excess_sectors": 2, "barriers": 3}
    assert [*made] == ["excess_wavefronts", "excess_sectors", "barriers"]
    assert remarks.figures_of({**COUNTERS, "working_invocations": 0.5})["working_invocations"] == 0.5


# ---- audits --------------------------------------------------------------------------------------------


@pytest.fixture
def audited(tmp_path, monkeypatch):
    """`audited(…)`: the remarks of an audit, as level, code, message, line and weight."""
    path = tmp_path / "k.toml"
    path.write_text("[expect]\nflops = 40\n")
    monkeypatch.setattr(remarks, "comparison_words", lambda comparison: comparison.words)
    monkeypatch.setattr(remarks, "counter_words", lambda check: "4, the manifest expects 40")

    def of(**given):
        facts = {"outputs": (), "limits": (), "counters": (), "findings": (), "unchecked": (), "differs": False,
                 "golden": None, "device": "nvidia", "predicted": None} | given  # fmt: skip
        kernel = SimpleNamespace(path=path, source=Path("k.wgsl"), counters={"flops": 40}, predicted_us_max=None)
        run = SimpleNamespace(pipeline=SimpleNamespace(entry=SimpleNamespace(span=ENTRY)))
        made = remarks._remarks(SimpleNamespace(case=SimpleNamespace(kernel=kernel), run=run, **facts))
        return [(each.level, each.code, each.message, each.line, each.weight) for each in made]

    return of


def output(ok=True, vacuous=False, unbounded=0, elsewhere=False, **given):
    worst = given.pop("worst", ())
    compared = SimpleNamespace(
        ok=ok, vacuous=vacuous, unbounded=unbounded, words="3 of 4 elements", worst=worst, mismatches=3
    )
    facts = {"output": "y", "against": "reference r", "comparison": compared, "checked_elsewhere": elsewhere,
             "ok": ok and not (vacuous and not elsewhere), "written": None, "likely": None, "advice": ""}  # fmt: skip
    return SimpleNamespace(**facts | given)


def difference(owner=None):
    return SimpleNamespace(index=(1, 2), owner=owner, numbers=("1.5", "2.5"))


WORDS = "y against reference r: 3 of 4 elements"
OUTPUTS = {
    "right": (output(), []),
    "wrong": (output(False), [(ERROR, "output", WORDS, 1, 3)]),
    "wrong at a line": (output(False, written=STORE), [(ERROR, "output", WORDS, 2, 3)]),
    "wrong, in words": (
        output(False, worst=[difference("lane 3"), difference()], likely="likely fma", advice="give a tolerance"),
        [
            (
                ERROR,
                "output",
                f"{WORDS}; worst [1, 2]: 1.5 for 2.5, written by lane 3; likely fma; give a tolerance",
                1,
                3,
            )
        ],
    ),
    "wrong, without an owner": (
        output(False, worst=[difference()]),
        [(ERROR, "output", f"{WORDS}; worst [1, 2]: 1.5 for 2.5", 1, 3)],
    ),
    "nothing could fail": (output(vacuous=True, unbounded=4), [(ERROR, "output", WORDS, 1, 3)]),
    "nothing could fail, covered": (output(vacuous=True, unbounded=4, elsewhere=True), []),
    "some without a bound": (output(unbounded=2), [(NOTE, "unbounded", WORDS, 1, 2)]),
    "some without a bound, covered": (output(unbounded=2, elsewhere=True), []),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_the_remarks_of_outputs(audited, name):
    check, expected = OUTPUTS[name]
    assert audited(outputs=(check,)) == expected


def test_all_checks_of_an_output_that_nothing_could_fail_are_remarks(audited):
    found = audited(outputs=(output(vacuous=True), output(against="wgpu on a"), output(output="z")))
    assert [message for _, _, message, _, _ in found] == [WORDS, "y against wgpu on a: 3 of 4 elements"]


def test_the_remarks_of_limits_counters_and_findings(audited):
    finding = SimpleNamespace(
        severity="info", code="race", message="it races", span=STORE, count=7, notes=(), hint=None
    )
    found = audited(
        limits=(SimpleNamespace(ok=True, exceeded="a"), SimpleNamespace(ok=False, exceeded="70,000 workgroups")),
        counters=(SimpleNamespace(ok=True, counter="x"), SimpleNamespace(ok=False, counter="flops")),
        findings=(SimpleNamespace(allowed=True, finding=finding), SimpleNamespace(allowed=False, finding=finding)),
    )
    assert found == [
        (ERROR, "limit", "beyond what nvidia allows, 70,000 workgroups", 1, 0),
        (ERROR, "counter", "flops  4, the manifest expects 40", 2, 0),
        (NOTE, "race", "it races", 2, 7),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"unchecked": ("z: none", "x: some")}, "z: none; x: some"),
        ({"unchecked": ("z: none",), "differs": True}, None),  # what is wrong comes first
        ({"unchecked": ("y: all", "z: none"), "outputs": (output(vacuous=True),)}, "z: none"),
        ({"unchecked": ("y: all",), "outputs": (output(vacuous=True),)}, None),  # said already
        ({}, None),
    ],
)
def test_what_is_unchecked_is_a_remark_at_the_entry_point(audited, given, message):
    found = [(each[2], each[3]) for each in audited(**given) if each[1] == "unchecked"]
    assert found == ([(message, 1)] if message else [])


@pytest.mark.parametrize(("differs", "count"), [(True, 1), (False, 0)])
def test_a_golden_that_differs_is_a_remark(audited, monkeypatch, differs, count):
    monkeypatch.setattr(remarks, "golden_remarks", lambda golden, path: [Remark(ERROR, "golden", path.name, "a")])
    found = audited(golden=SimpleNamespace(differs=differs))
    assert [each[2] for each in found] == ["k.toml"] * count


def test_an_entry_has_the_figures_and_the_truths_of_its_audit(monkeypatch):
    monkeypatch.setattr(remarks, "_remarks", lambda audit: iter([Remark(ERROR, "race", "it races", "a")]))
    facts = SimpleNamespace(
        case=SimpleNamespace(kernel=SimpleNamespace(name="k"), shape=""), ok=False, outcome=CaseOutcome.FAILED,
        run=SimpleNamespace(counters=COUNTERS), adapters=(SimpleNamespace(name="a"), SimpleNamespace(name="b")),
        coverage=SimpleNamespace(outputs=("y: all",)), golden=SimpleNamespace(state="changed"),
        compared=SimpleNamespace(truths=("reference",), not_compared=("with wgpu: no f16",)),
    )  # fmt: skip
    made = remarks.entry_of(facts)
    figures = {"excess_wavefronts": 5, "excess_sectors": 2, "barriers": 3}
    assert made == Entry("k", False, figures, "a, b", (Remark(ERROR, "race", "it races", "a"),), "failed",
                         ("y: all",), ("reference",), ("with wgpu: no f16",), "changed")  # fmt: skip
    bare = remarks.entry_of(SimpleNamespace(**vars(facts) | {"adapters": (), "golden": None}))
    assert (bare.adapter, bare.golden) == (None, "")
    assert replace(made, adapter=None, golden="") == bare
    assert "race" not in CODES

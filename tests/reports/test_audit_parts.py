"""The parts of the text of a case, in their order, and the cells of its row: from checks that are known by hand."""

from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from bankshot.oracle.judge.coverage import CaseOutcome, Coverage, OutputCoverage
from bankshot.oracle.reports import audit_text
from bankshot.oracle.reports.formats import table


def output(name="y", ok=True, outcome=CaseOutcome.CLEAN, vacuous=False, rule="exact", score=0.0, by_gpu=False):
    compared = SimpleNamespace(vacuous=vacuous, rule=SimpleNamespace(name=rule), score=score)
    return SimpleNamespace(output=name, ok=ok, outcome=outcome, comparison=compared, by_gpu=by_gpu)


def counter(ok, name="flops"):
    return SimpleNamespace(ok=ok, counter=name, actual=4, expected=4 if ok else 5)


def found(code, ok=False, allowed=False, severity="warning"):
    return SimpleNamespace(ok=ok, allowed=allowed, finding=SimpleNamespace(code=code, severity=severity))


# ---- cells ---------------------------------------------------------------------------------------------

OUTPUTS = [
    ([], "-"),
    ([output()], "exact"),
    ([output(rule="close", score=0.214), output("z", rule="close", score=0.5)], "close 0.5"),
    ([output(rule="close", score=0.5), output("z", rule="close", score=0.1)], "close 0.5"),
    ([output(), output("z", rule="bound", score=0.25)], "exact, bound 0.25"),
    ([output(vacuous=True), output("z")], "exact"),
    ([output(vacuous=True)], "-"),
    ([output(), output("z", False, CaseOutcome.FAILED)], "DIFFERS z"),
    ([output("z", False, CaseOutcome.UNCHECKED), output()], "UNCHECKED z"),
]


@pytest.mark.parametrize(("checks", "text"), OUTPUTS)
def test_the_cell_of_outputs(checks, text):
    audit = SimpleNamespace(outputs=[*checks, output(by_gpu=True, rule="derived", score=0.125)])
    assert (table._against_reference(audit), table._against_gpu(audit)) == (text, "derived 0.12")


@pytest.mark.parametrize(
    ("counters", "text"), [([], "-"), ([True, True], "2 ok"), ([True, False], "DIFFER 1"), ([False, False], "DIFFER 2")]
)
def test_the_cell_of_counters(counters, text):
    assert table._counters(SimpleNamespace(counters=[*map(counter, counters)])) == text


@pytest.mark.parametrize(
    ("findings", "text"),
    [
        ([], "none"),
        ([found("race"), found("allow"), found("race")], "FOUND allow, race"),
        ([found("race", ok=True, allowed=True)] * 2, "2 accepted"),
        ([found("race", ok=True, allowed=True), found("uninit")], "FOUND uninit"),
        ([found("spin", ok=True)], "none"),
    ],
)
def test_the_cell_of_findings(findings, text):
    assert table._findings(SimpleNamespace(findings=findings)) == text


@pytest.mark.parametrize(("how", "text"), [("all", "2,000"), ("classes", "1,500 for 2,000")])
def test_the_cell_of_workgroups(how, text):
    coverage = SimpleNamespace(how=how, workgroups=2_000, ran=1_500)
    assert table._ran(SimpleNamespace(run=SimpleNamespace(coverage=coverage))) == text


def test_a_row_has_a_cell_for_each_column():
    coverage = SimpleNamespace(how="all", workgroups=2, ran=2)
    audit = SimpleNamespace(
        outcome=CaseOutcome.UNCHECKED, case=SimpleNamespace(kernel=SimpleNamespace(name="k"), shape="N=4"),
        run=SimpleNamespace(coverage=coverage), outputs=[output()], counters=[counter(True)], findings=[],
        notes=("a", "b"), seconds={"a": 1.25, "b": 0.5},
    )  # fmt: skip
    assert table.cells_of(audit) == ("UNCHECKED", "k", "N=4", "2", "exact", "-", "1 ok", "none", "2", "1.75")
    audit.notes = ()
    assert table.cells_of(audit)[8] == "-"


def test_rows_are_aligned_below_their_headings():
    plans = [SimpleNamespace(kernel=SimpleNamespace(name="matmul"), shapes=["N=4", "N=1024"])]
    rows = table.Rows(plans, ["a broken one"])
    heading, first = rows.next(("ok", "matmul", "N=4", "2")).split("\n")
    assert heading.startswith(" " * 10 + "kernel        shape   workgroups")
    assert first == "ok        matmul        N=4     2"
    assert rows.next(("NOT OK", "a broken one", "", "why")) == "NOT OK    a broken one          why"


# ---- texts ---------------------------------------------------------------------------------------------


@pytest.fixture
def shown(monkeypatch):
    """The lines that a part of the text prints; checks, findings and tables of elements are words."""

    def show_output(out, check, *most):
        out.print(f"<output {check.output}{most or ''}>")

    monkeypatch.setattr(audit_text, "show_output_check", show_output)
    monkeypatch.setattr(audit_text, "show_differences", lambda out, worst: out.print(f"<elements {worst}>"))
    monkeypatch.setattr(audit_text, "show_silenced", lambda out, run: out.print(f"<silenced {run}>"))
    monkeypatch.setattr(audit_text, "finding_text", lambda finding: f"<whole {finding.code}>")
    monkeypatch.setattr(audit_text, "finding_summary", lambda finding: f"<short {finding.code}>")
    monkeypatch.setattr(audit_text, "counter_words", lambda check: "4, not 5" if not check.ok else "4")

    def print_(part, *arguments):
        out = Console(file=StringIO(), width=200)
        part(out, *arguments)
        return [line.rstrip() for line in out.file.getvalue().splitlines()]

    return print_


def audited(**given):
    facts = {"outcome": CaseOutcome.FAILED, "coverage": Coverage(), "outputs": (), "findings": (), "limits": (),
             "counters": (), "golden": None, "unchecked": (), "device": "nvidia", "run": "run", "notes": (),
             "adapters": (), "predicted": None}  # fmt: skip
    return SimpleNamespace(**facts | given)


def golden(ok=False, unchecked=False, sentences=("a", "b", "c"), outputs=(), advice="do this"):
    return SimpleNamespace(ok=ok, unchecked=unchecked, headline="golden k.json", sentences=sentences, outputs=outputs,
                           advice=advice)  # fmt: skip


MIXED = audited(
    outputs=(output("y"), output("z", ok=False)), counters=(counter(True, "a"), counter(False, "b")),
    limits=(SimpleNamespace(ok=False, exceeded="70,000"), SimpleNamespace(ok=True, exceeded="20,000")),
    findings=(found("note", severity="info"), found("race", severity="error"), found("spin", allowed=True)),
    golden=golden(), unchecked=("w: all",), notes=("a note",), adapters=("llvmpipe",),
    coverage=Coverage((OutputCoverage("v", 4, {}, 4, "random"), OutputCoverage("u", 4, {}, 4))),
)  # fmt: skip


def test_what_is_wrong_comes_in_order(shown):
    assert shown(audit_text._problems, MIXED) == [
        "  failed: nothing compared", "<output z(None,)>", "<whole race>", "<whole note>",
        "  EXCEEDS  what nvidia allows, 70,000", "  DIFFERS  b  4, not 5", "  DIFFERS  golden k.json", "           a",
        "           b", "           c", "           do this", "  UNCHECKED w: all",
    ]  # fmt: skip


def test_a_short_text_has_the_first_finding_in_full(shown):
    assert shown(audit_text._problems, MIXED, 1) == [
        "  failed: nothing compared", "<output z(1,)>", "<whole race>", "  info     <short note>",
        "  EXCEEDS  what nvidia allows, 70,000", "  DIFFERS  b  4, not 5", "  DIFFERS  golden k.json", "           a",
        "           b", "           1 more", "           do this", "  UNCHECKED w: all",
    ]  # fmt: skip


def test_what_passed_follows(shown):
    assert shown(audit_text._passed, MIXED) == [
        "<output y>", "  ok       a  4", "  accepted by the manifest: <short spin>", "<silenced run>",
    ]  # fmt: skip
    passed = audited(golden=golden(ok=True, sentences=(), advice=""))
    assert shown(audit_text._passed, passed) == ["  ok       golden k.json", "<silenced run>", "  no findings"]
    assert shown(audit_text._problems, passed) == ["  failed: nothing compared"]


def test_notes_come_last(shown):
    assert shown(audit_text._notes, MIXED) == [
        "  note: beyond WebGPU's defaults, 20,000",
        "  note: v: 4 of 4 elements unchecked (nothing compared), as the manifest says: random",
        "  note: a note", "  GPU: llvmpipe",
    ]  # fmt: skip


def test_a_golden_of_another_device_is_unchecked(shown):
    assert shown(audit_text.show_golden, golden(unchecked=True, sentences=())) == [
        "  UNCHECKED golden k.json", "           do this",
    ]  # fmt: skip


@pytest.mark.parametrize(("most", "elements"), [(None, [1, 2, 3]), (2, [1, 2])])
def test_elements_of_a_golden_are_shown(shown, most, elements):
    outputs = (SimpleNamespace(comparison=None), SimpleNamespace(comparison=SimpleNamespace(worst=[1, 2, 3])))
    made = golden(outputs=outputs, sentences=tuple("abcde"), advice="")
    text = shown(audit_text.show_golden, made, most)
    assert text[-1] == f"<elements {elements}>"
    assert [line.strip() for line in text[1:-1]] == ([*"abcde"] if most is None else [*"abcd", "1 more"])


@pytest.mark.parametrize(("listing", "numbers"), [("full", [1, 2]), ("counted", [2])])
def test_listings_of_files(shown, monkeypatch, listing, numbers):
    lines = [SimpleNamespace(number=1, counters=None), SimpleNamespace(number=2, counters={"flops": 3})]
    monkeypatch.setattr(audit_text, "listings", lambda sites, source, size: {"k.wgsl": lines, "b.wgsl": lines})
    monkeypatch.setattr(audit_text, "show_listing", lambda out, lines: out.print(str([line.number for line in lines])))
    made = audited(run=SimpleNamespace(sites=()), subgroup_size=32,
                   case=SimpleNamespace(kernel=SimpleNamespace(source="k.wgsl")))  # fmt: skip
    assert shown(audit_text._sources, made, listing) == [str(numbers), "  b.wgsl", str(numbers)]

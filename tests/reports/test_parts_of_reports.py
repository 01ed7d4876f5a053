"""Small parts of reports, each with what it says: goldens, SARIF, JSON, explored outputs, allowed findings."""

import json
from email.message import Message
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bankshot.oracle.advise.advice import Advice
from bankshot.oracle.reports import (
    advise_report,
    audit_page,
    chrome_trace,
    diff_report,
    explore_report,
    figures,
    run_text,
)
from bankshot.oracle.reports.formats import changes, sarif
from bankshot.oracle.reports.golden_review import Decision, ReviewedGolden, UnusedGolden, closing_lines
from bankshot.oracle.reports.json_document import document
from bankshot.oracle.reports.protocol import ReportOptions
from bankshot.oracle.reports.remarks import CODES, golden_remarks

# ---- goldens -----------------------------------------------------------------------------------------


def reviewed(title, decision, why_not=""):
    return ReviewedGolden(title, SimpleNamespace(path=Path(f"golden/{title}.json")), why_not, decision)


@pytest.mark.parametrize(
    ("found", "compared", "errors", "left", "lines"),
    [
        ([], 0, 0, [], ["golden review: 0 goldens compared"]),
        ([], 1, 0, [], ["golden review: 1 golden compared; none has changed"]),
        (
            [reviewed("a", Decision.ACCEPTED), reviewed("b", Decision.NOT_OFFERED, "too old"),
             reviewed("c", Decision.ACCEPTED), reviewed("d", Decision.SKIPPED)],
            4, 1, [],
            ["not offered: b: too old", "wrote golden/a.json", "wrote golden/c.json",
             "golden review: 4 goldens compared; 2 accepted, 1 skipped, 1 not offered; 1 case could not be run"],
        ),
        (
            [], 2, 2, [UnusedGolden(Path("x.json"), "old")],
            ["unused: x.json, of old",
             "golden review: 2 goldens compared; none has changed; 2 cases could not be run; 1 unused, "
             "--prune removes them"],
        ),
        ([], 1, 0, [UnusedGolden(Path("x.json"), "old", removed=True)] * 2,
         ["removed x.json, of old"] * 2 + ["golden review: 1 golden compared; none has changed; 2 unused, removed"]),
    ],
)  # fmt: skip
def test_the_last_lines_of_a_review(found, compared, errors, left, lines):
    assert closing_lines(found, compared, errors, left) == lines


class Verdict(SimpleNamespace):
    """A verdict on a golden."""

    def __str__(self):
        return "golden k.json: it changed\nmore"


class Change(SimpleNamespace):
    """A counter that changed."""

    def __str__(self):
        return self.words


def verdict(*lines, outputs=(), likely=None, advice="update it"):
    made = [Change(line=line, words=f"words {line}", file="k.wgsl", weight=2) for line in lines]
    return Verdict(changes=made, outputs=outputs, likely=likely, advice=advice)


@pytest.mark.parametrize(
    ("golden", "remarks"),
    [
        (verdict(), [("a/k.toml", 9, "golden k.json: it changed; update it")]),
        (verdict(advice=""), [("a/k.toml", 9, "golden k.json: it changed")]),
        (verdict(3, 5), [("a/k.wgsl", 3, "words 3"), ("a/k.wgsl", 5, "words 5")]),
        (verdict(3, 0), [("a/k.wgsl", 3, "words 3"), ("a/k.toml", 9, "golden k.json: it changed; words 0; update it")]),
        (verdict(3, outputs=("y differs",), likely="a race"),
         [("a/k.wgsl", 3, "words 3"), ("a/k.toml", 9, "golden k.json: it changed; y differs; a race; update it")]),
        (verdict(3, likely="a race"), [("a/k.wgsl", 3, "words 3")]),
    ],
)  # fmt: skip
def test_what_changed_is_a_remark_at_its_line_or_at_the_owner(golden, remarks):
    found = [*golden_remarks(golden, Path("a/k.toml"), 9)]
    assert [(each.file, each.line, each.message) for each in found] == remarks
    assert {each.code for each in found} == {"golden"}


def test_each_remark_of_an_audit_has_its_code():
    codes = ("output", "unbounded", "counter", "predicted-time", "limit", "golden", "unchecked", "wrong-use")
    assert {*CODES} == {*codes}
    (rule,) = [sarif._rule(code) for code in CODES if code == "unbounded"]
    assert rule["shortDescription"] == {"text": "elements of an output have no bound to be checked against"}


# ---- SARIF -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("urls", "page"),
    [
        (["Source, https://a.example", "Documentation, https://b.example/", "Issues, https://c.example"],
         "https://b.example/"),
        (["Source, https://a.example"], ""),
        ([], ""),
    ],
)  # fmt: skip
def test_sarif_names_the_documentation_of_the_package(monkeypatch, urls, page):
    package = Message()
    for url in urls:
        package["Project-URL"] = url
    monkeypatch.setattr(sarif, "metadata", lambda name: package)
    assert sarif.documentation() == page
    (run,) = sarif.sarif([], "1.2")["runs"]
    assert run["tool"]["driver"].get("informationUri", "") == page
    assert sarif._rule("race").get("helpUri") == ("https://b.example/findings.html#race" if page else None)


# ---- JSON --------------------------------------------------------------------------------------------


class Scalar:
    """A scalar of a library other than NumPy."""

    def item(self):
        return 7


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (np.float32(1.5), 1.5), (np.array(2), 2), (np.array([1, 2]), [1, 2]), (np.array([np.inf]), ["inf"]),
        (Scalar(), 7), (float("nan"), "nan"), ((1, [np.bool_(True)]), [1, [True]]), ({1: np.int64(3)}, {"1": 3}),
        (None, None), ("a", "a"),
    ],
)  # fmt: skip
def test_numbers_of_libraries_become_those_of_json(value, plain):
    assert json.loads(document("run", [{"value": value}], ok=True))["cases"] == [{"value": plain}]


def test_a_document_of_a_diff_has_its_device(monkeypatch):
    monkeypatch.setattr(diff_report, "case_entry", lambda case: {"case": case})
    monkeypatch.setattr(diff_report, "adapter_entry", str)
    facts = {"case": {}, "device": "amd", "ok": True, "outcome": "clean", "adapter": "llvmpipe", "outputs": ()}
    facts |= {"coverage": SimpleNamespace(outputs=()), "unchecked": ("y",), "counters": None, "not_run": None}
    facts |= {"not_counted": "too long", "notes": ("a note",), "seconds": {"all": 1.0}}
    made = diff_report.diff_entry(SimpleNamespace(**facts))
    expected = {"device": "amd", "ok": True, "outcome": "clean", "gpu": "llvmpipe", "unchecked": ["y"],
                "not_counted": "too long", "notes": ["a note"], "not_run": None, "counters": None}  # fmt: skip
    assert expected.items() <= made.items()


# ---- others ------------------------------------------------------------------------------------------


def test_outputs_of_an_exploration_are_flat():
    pairs = np.array([(1, 2.0)], np.dtype([("a", "u1"), ("b", "f4")]))
    found = explore_report._flat({"y": np.array([[1, 2], [3, 4]], np.uint32), (0, 1): b"\x05\x06", "s": pairs})
    assert [*found.items()][:6] == [
        ("y[0]", 1), ("y[1]", 2), ("y[2]", 3), ("y[3]", 4), ("(0, 1)[0]", 5), ("(0, 1)[1]", 6),
    ]  # fmt: skip
    assert [name for name in found if name.startswith("s")] == [f"s[{i}]" for i in range(5)]


def test_findings_that_comments_allow_are_listed():
    place = SimpleNamespace(file="k.wgsl", line=3)
    findings = [
        SimpleNamespace(code="race", span=SimpleNamespace(place=place), count=1234, message="two lanes"),
        SimpleNamespace(code="nan", span=None, count=1, message="a NaN"),
    ]
    out = Console(file=StringIO(), width=200)
    run_text.show_silenced(out, SimpleNamespace(silenced=findings))
    assert out.file.getvalue().splitlines() == [
        "  allowed by a comment: race at k.wgsl:3, 1,234 times: two lanes",
        "  allowed by a comment: nan, 1 times: a NaN",
    ]


def test_without_an_earlier_audit_nothing_changed(capsys):
    made = changes.Format(ReportOptions("changes", "auto", {}, 120, False), (), ())
    made.finish(SimpleNamespace(lines=["the last line"], verb="audit", ok=True))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("accesses", "slices", "headings"),
    [(["a"], ["s"], ["Bank conflicts", "Between barriers"]), ([], ["s"], ["Between barriers"]),
     (["a"], [], ["Bank conflicts"]), ([], [], [])],
)  # fmt: skip
def test_a_heading_has_figures(monkeypatch, accesses, slices, headings):
    module = SimpleNamespace(bank_map=lambda access: "map", timeline=lambda timeline: "line")
    monkeypatch.setattr(audit_page, "_template", lambda name: SimpleNamespace(module=module))
    recordings = SimpleNamespace(accesses=accesses, timeline=SimpleNamespace(slices=slices))
    found = audit_page._figures(SimpleNamespace(recordings=recordings))
    assert [heading for heading, _ in found] == headings
    assert audit_page._figures(SimpleNamespace(recordings=None)) == ()


def test_a_trace_names_its_processes_and_threads():
    """Names of processes have thread 0, which no region has."""
    timeline = SimpleNamespace(regions={"a": 2, "b": 1}, epochs=0, barriers=(), cut=False)
    found = [(each["name"], each["pid"], each["tid"], each["args"]["name"]) for each in chrome_trace.events(timeline)]
    assert found == [
        ("process_name", 1, 0, "a"), ("thread_name", 1, 1, "slot 0"), ("thread_name", 1, 2, "slot 1"),
        ("process_name", 2, 0, "b"), ("thread_name", 2, 3, "whole"),
    ]  # fmt: skip


# ---- columns, words and sums -------------------------------------------------------------------------


def test_neighbours_of_one_kind_that_cost_the_same_share_a_column():
    sites = [SimpleNamespace(kind=kind) for kind in ("load", "load", "store", "store")]
    trials = [SimpleNamespace(sites=(4, 4, 4, 8), refused=None), SimpleNamespace(sites=(), refused="why")]
    assert advise_report._groups(Advice("t", "", sites, trials)) == [[0, 1], [2], [3]]


def test_text_between_pairs_of_backticks_is_code():
    assert audit_page.coded("`a` < b") == "<code>a</code> &lt; b"
    assert audit_page.coded("a `b` c") == "a <code>b</code> c"
    assert audit_page.coded("a `b` c `d") == "a `b` c `d"
    assert audit_page.coded("a ` b") == "a ` b"


def test_what_a_request_touches_is_a_mean_of_all_loads_of_an_array():
    sites = [SimpleNamespace(name="x", kind="load", global_sectors=8, global_requests=2),
             SimpleNamespace(name="x", kind="load", global_sectors=4, global_requests=2),
             SimpleNamespace(name="x", kind="store", global_sectors=9, global_requests=1),
             SimpleNamespace(name="z", kind="load", global_sectors=9, global_requests=1)]  # fmt: skip
    assert figures._per_request(SimpleNamespace(sites=sites), "x", "global_sectors") == 3.0


def test_an_exploration_without_outcomes_has_no_values():
    assert explore_report._values(SimpleNamespace(outcomes=[])) == []


def test_the_entry_of_a_progress_model_has_the_way_and_the_cycle():
    moves = [SimpleNamespace(span=None, workgroup=(n, 0, 0), lane=0, does=f"does {n}") for n in range(2)]
    plain = {"model": "hsa", "within": "a", "ends": False, "never": [], "sentence": "s", "memory": "weak"}
    entry = explore_report._progress_entry(SimpleNamespace(**plain, way=moves[:1], cycle=moves[1:]))
    assert [[move["does"] for move in entry[part]] for part in ("way", "cycle")] == [["does 0"], ["does 1"]]
    assert {key: entry[key] for key in plain} == plain


def test_a_document_names_the_error_that_ended_it():
    assert json.loads(document("run", [], ok=False, error="no adapter"))["error"] == "no adapter"
    assert "error" not in json.loads(document("run", [], ok=True))

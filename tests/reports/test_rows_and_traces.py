"""Rows of kernels, traces of timelines, links of changes and listings of missing files, each from facts by hand."""

import json
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from bankshot.oracle.gpu_counters.timeline import Timeline
from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.reports import chrome_trace, kernel_rows, page_changes, source_listing
from bankshot.oracle.reports.changes import CaseChange, Change
from bankshot.oracle.reports.cost_places import CostTotals
from bankshot.oracle.reports.kernel_rows import WARNS, CaseRow
from bankshot.sim.wgsl.source import Source, Span

CLEAN, FAILED, UNCHECKED, ERROR = (str(each) for each in ("clean", "failed", "unchecked", "error"))


def row(word, kernel="k", shape="", excess=0.0, passes=100, **given):
    cost = CostTotals(passes=passes, excess=excess)
    return CaseRow(kernel, shape, word, given.pop("cost", cost), **given)


def rows(*cases):
    return kernel_rows.kernel_rows(cases)


# ---- rows ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "worst", "bad", "cases"),
    [
        ([CLEAN, CLEAN], CLEAN, 0, "2"),
        ([CLEAN, FAILED, CLEAN], FAILED, 1, "1 of 3"),
        ([FAILED, FAILED], FAILED, 2, "2"),
        ([UNCHECKED, FAILED, ERROR, CLEAN], ERROR, 1, "1 of 4"),
        ([WARNS, CLEAN], WARNS, 1, "1 of 2"),
        ([UNCHECKED, WARNS, UNCHECKED], UNCHECKED, 2, "2 of 3"),
    ],
)
def test_a_kernel_has_the_worst_outcome_of_its_cases(words, worst, bad, cases):
    (made,) = rows(*map(row, words))
    assert (made.word, len(made.bad), kernel_rows.cells(made)[1]) == (worst, bad, cases)
    assert {case.word for case in made.bad} <= {worst}
    assert made.cases[0].word == worst


def test_kernels_are_ranked_by_outcome_then_by_excess_then_by_name():
    found = rows(row(CLEAN, "a", excess=5), row(CLEAN, "b", excess=50), row(FAILED, "c"), row(CLEAN, "e", excess=5),
                 row(ERROR, "d"), row(CLEAN, "c"))  # fmt: skip
    assert [each.kernel for each in found] == ["d", "c", "b", "a", "e"]


CELLS = [
    (CostTotals(), ("-", "-", "-", "")),
    (CostTotals(active_lanes=3, issued_lanes=4), ("75%", "-", "-", "")),
    (CostTotals(excess_wavefronts=12, sectors=30, ideal_sectors=20), ("-", "12", "x1.50", "")),
    (CostTotals(sectors=30), ("-", "-", "-", "")),
    (CostTotals(ideal_sectors=30), ("-", "-", "-", "")),
    (CostTotals(worst=SimpleNamespace(at="k.wgsl:3", why="it waits")), ("-", "-", "-", "k.wgsl:3  it waits")),
]


@pytest.mark.parametrize(("cost", "cells"), CELLS)
def test_the_cells_of_a_kernel(cost, cells):
    (made,) = rows(row(CLEAN, cost=cost))
    expected = [kernel_rows.NOTHING if cell == "-" else cell for cell in cells]
    assert kernel_rows.cells(made) == ("k", "1", *expected)


def shown(*cases, width=120):
    out = Console(file=StringIO(), width=width)
    kernel_rows.show_kernels(out, rows(*cases))
    return [line.rstrip() for line in out.file.getvalue().splitlines()]


def test_clean_kernels_beyond_the_limit_are_counted():
    most = kernel_rows.MOST_ROWS
    many = [row(CLEAN, f"k{number:03}") for number in range(most + 2)]
    text = shown(*many, row(FAILED, "bad"))
    assert len(text) == 1 + 1 + most + 1
    assert text[1].startswith("failed")
    assert text[-1].strip() == "2 more kernels, clean, with less excess"
    assert len(shown(*many[:most])) == 1 + most


def test_a_kernel_that_could_not_be_run_has_a_reason_in_place_of_figures():
    cost = CostTotals(active_lanes=1, issued_lanes=2)
    text = shown(row(ERROR, "a", reason="no such file", cost=cost), row(ERROR, "b"))
    assert text[1].split("  ")[-1] == "could not be run: no such file"
    assert text[2].endswith("  could not be run")
    assert "50%" not in text[1]


@pytest.mark.parametrize(("width", "headings"), [(99, 2), (100, 1)])
def test_narrow_terminals_have_headings_of_two_lines(width, headings):
    text = shown(row(CLEAN), width=width)
    assert len(text) == headings + 1
    assert ("excess wavefronts" in text[0]) == (headings == 1)


def test_the_text_of_the_first_case_and_the_shapes_of_the_others():
    many = [row(FAILED, shape=f"N={n}", text=f"text {n}\n") for n in range(kernel_rows.MOST_SHAPES + 3)]
    first, others = kernel_rows.failures(rows(*many))
    assert first == "text 0\n"
    shapes = ", ".join(f"N={n}" for n in range(1, kernel_rows.MOST_SHAPES + 1))
    assert others == f"  failed in {kernel_rows.MOST_SHAPES + 2} more cases of k: {shapes} and 2 more\n\n"
    assert [*kernel_rows.failures(rows(*many[:1], row(CLEAN)))] == ["text 0\n"]
    (_, one) = kernel_rows.failures(rows(*many[:2]))
    assert one == "  failed in 1 more case of k: N=1\n\n"
    (_, unnamed) = kernel_rows.failures(rows(row(ERROR, text="a"), row(ERROR, text="b")))
    assert unnamed == "  could not be run in 1 more case of k: k\n\n"


def test_texts_are_in_the_order_of_outcomes_and_limited():
    most = kernel_rows.MOST_TEXTS
    many = [row(FAILED, f"k{n:03}", text=f"{n}") for n in range(most)]
    assert len([*kernel_rows.failures(rows(*many))]) == most
    texts = [*kernel_rows.failures(rows(*many, row(ERROR, "x", text="error"), row(WARNS, "y", text="warns")))]
    assert (texts[0], texts[1], len(texts)) == ("error", "0", most + 1)
    assert texts[-1] == "2 more kernels not shown here\n\n"


@pytest.mark.parametrize(
    ("outcome", "findings", "word"),
    [
        (CaseOutcome.CLEAN, [], "clean"),
        (CaseOutcome.CLEAN, [("warning", False)], WARNS),
        (CaseOutcome.CLEAN, [("warning", True)], "clean"),
        (CaseOutcome.CLEAN, [("info", False)], "clean"),
        (CaseOutcome.CLEAN, [("info", False), ("error", False)], WARNS),
        (CaseOutcome.FAILED, [("error", False)], "failed"),
        (CaseOutcome.UNCHECKED, [("warning", False)], "unchecked"),
    ],
)
def test_a_clean_case_with_findings_that_do_not_fail_it_warns(outcome, findings, word):
    found = [
        SimpleNamespace(allowed=allowed, finding=SimpleNamespace(severity=severity)) for severity, allowed in findings
    ]
    assert kernel_rows.word_of(SimpleNamespace(outcome=outcome, findings=found)) == word


# ---- traces --------------------------------------------------------------------------------------------


def part(array, region, kind, epoch, lanes=32, requests=1):
    return SimpleNamespace(array=array, region=region, kind=kind, epoch=epoch, lanes=lanes, places=("k.wgsl:3",),
                           requests=requests)  # fmt: skip


def test_a_trace_of_slices_and_barriers():
    """Slices of one region share nine tenths of a millisecond."""
    slices = (
        part("a", 0, "write", 0),
        part("a", 0, "read", 1),
        part("a", 0, "write", 1, 8, 2),
        part("b", 0, "read", 1),
    )
    barriers = (SimpleNamespace(name="workgroupBarrier", place="k.wgsl:5", epoch=0),)
    made = [*chrome_trace.events(Timeline({"a": 1, "b": 1}, 2, slices, barriers))]
    assert [(e["name"], e["ts"], e["dur"], e["pid"], e["tid"]) for e in made if e["ph"] == "X"] == [
        ("write", 0, 900.0, 1, 1), ("read", 1000, 450.0, 1, 1), ("write", 1450.0, 450.0, 1, 1),
        ("read", 1000, 900.0, 2, 2),
    ]  # fmt: skip
    assert [e["args"] for e in made if e["ph"] == "X"][2] == {
        "lanes": 8, "places": ["k.wgsl:3"], "requests": 2, "epoch": 1,
    }  # fmt: skip
    assert made[-1] == {
        "ph": "i", "s": "g", "name": "workgroupBarrier", "cat": "barrier", "ts": 1000, "pid": 1, "tid": 1,
        "args": {"place": "k.wgsl:5", "epoch": 0},
    }  # fmt: skip
    assert {e["cat"] for e in made if e["ph"] == "X"} == {"memory"}


def test_a_trace_says_what_it_is_of():
    case = SimpleNamespace(kernel=SimpleNamespace(name="scale"), shape="N=4")
    whole = json.loads(chrome_trace.text(Timeline({"a": 1}, 1, (), (), cut=True), case, (1, 2, 3)))
    assert whole["otherData"] == {
        "kernel": "scale N=4",
        "workgroup": [1, 2, 3],
        "cut": True,
        "time": "one epoch is 1 ms",
    }
    assert whole["displayTimeUnit"] == "ms"
    assert len(whole["traceEvents"]) == 2


# ---- changes on the page -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("anchor", "file", "line", "link"),
    [
        ("case3", "k.wgsl", 7, "case3-0-7"),
        ("case3", "b.wgsl", 7, "case3-1-7"),
        ("case3", "other.wgsl", 7, None),
        ("case3", "k.wgsl", 0, None),  # the line is gone
        (None, "k.wgsl", 7, None),  # and so is the case
    ],
)
def test_links_to_lines_that_changed(anchor, file, line, link):
    made = page_changes.Changed(CaseChange("k", ()), anchor, True, ("a/k.wgsl", "a/b.wgsl"))
    assert made.line_anchor(Change("FLOPs", "1", "2", False, "x", file, line)) == link


def test_the_first_five_changed_cases_are_open(monkeypatch):
    found = [CaseChange(f"k{n}", (Change("outcome", "clean", "failed", False),)) for n in range(6)]
    monkeypatch.setattr(page_changes, "read_document", lambda path: ["before"])
    monkeypatch.setattr(
        page_changes, "changes", lambda before, after: found if (before, after) == (["before"], []) else []
    )
    made = page_changes.since(SimpleNamespace(document="a.json", name="HEAD"), [])
    assert [(each.open, each.anchor, each.files) for each in made.cases] == [(True, None, ())] * 5 + [(False, None, ())]
    assert (made.name, made.summary) == ("HEAD", "6 of 0 cases changed, 6 of them for the worse")


# ---- listings ------------------------------------------------------------------------------------------


def test_a_file_that_is_missing_has_the_lines_of_the_shader(tmp_path):
    """Line markers name lines 2 and 4 of a file that does not exist."""
    text = "a;\nb;\nc;\n"
    origin = [("gone.wgsl", 2), ("k.wgsl", 1), ("gone.wgsl", 4)]
    source = Source(text, "k.wgsl", origin=origin)
    assert source_listing._text(Path("gone.wgsl"), [SimpleNamespace(span=Span(source, 0, 1))]) == "\na;\n\nc;"
    (tmp_path / "there.wgsl").write_text("x\ny\n")
    assert source_listing._text(tmp_path / "there.wgsl", []) == "x\ny\n"

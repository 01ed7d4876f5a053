"""What changed between two documents, row by row, and how the changes are printed."""

import json

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.reports import changes as report
from bankshot.oracle.reports.changes import CaseChange, Change, as_markdown, as_text, changes, read_document, summary

CLEAN = {"outcome": "clean", "outputs": [], "findings": [], "counters": {}, "sites": []}


def entry(kernel="k", dims=None, **given):
    return {"kernel": kernel, "dims": dims or {}, **CLEAN, **given}


def rows(before, after):
    """The changes of one case: what, before, after, and whether it is better."""
    found = changes([entry(**before)], [entry(**after)])
    return [(each.what, each.before, each.after, each.better) for case in found for each in case.changes]


# ---- documents -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["[]", "{}", '{"verb": "audit", "schema": 0}', '{"verb": "diff", "schema": SCHEMA}', "null", "7"]
)
def test_another_document_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text.replace("SCHEMA", str(report.SCHEMA)))
    with pytest.raises(UsageError, match=r"is no document of `bankshot audit --json`, schema"):
        read_document(path)


@pytest.mark.parametrize("text", ["{", "", "[" * 100_000])
def test_what_is_no_json_is_refused(tmp_path, text):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"a.json: is no JSON document$"):
        read_document(path)


def test_the_cases_of_a_document_are_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"verb": "audit", "schema": report.SCHEMA, "cases": [entry()]}))
    assert read_document(path) == [entry()]


# ---- cases ---------------------------------------------------------------------------------------------

RANKED = ["clean", "unchecked", "failed", "error"]


@pytest.mark.parametrize("before", RANKED)
@pytest.mark.parametrize("after", RANKED)
def test_outcomes_are_ranked(before, after):
    better = RANKED.index(after) < RANKED.index(before)
    expected = [] if before == after else [("outcome", before, after, better)]
    assert rows({"outcome": before}, {"outcome": after}) == expected


@pytest.mark.parametrize(("outcome", "new", "gone"), [("clean", None, False), ("failed", False, False)])
def test_cases_that_are_new_or_gone(outcome, new, gone):
    one, other = entry("a", {"N": 4}, outcome=outcome), entry("b")
    (added,) = changes([other], [other, one])
    assert added == CaseChange("a N=4", (Change("case", "absent", outcome, new),))
    (removed,) = changes([one, other], [other])
    assert removed == CaseChange("a N=4", (Change("case", outcome, "absent", gone),))


def test_cases_are_matched_by_kernel_and_dims_in_any_order():
    one = entry("k", {"M": 1, "N": 2})
    assert changes([one], [entry("k", {"N": 2, "M": 1})]) == []
    assert len(changes([one], [entry("k", {"M": 2, "N": 1})])) == 2
    assert len(changes([one], [entry("other", {"M": 1, "N": 2})])) == 2


def test_cases_that_are_worse_come_first():
    before = [entry("a", outcome="failed"), entry("b"), entry("c", outcome="failed"), entry("d")]
    after = [entry("a"), entry("b", outcome="failed"), entry("c"), entry("d")]
    found = changes(before, after)
    assert [(each.title, each.worse) for each in found] == [("b", True), ("a", False), ("c", False)]


def test_what_could_not_be_run_has_an_outcome_alone():
    bare = {"kernel": "k", "dims": {}, "outcome": "error"}
    (found,) = changes([bare], [entry(counters={"flops": 5})])
    assert found.changes == (Change("outcome", "error", "clean", True),)
    (found,) = changes([entry(counters={"flops": 5})], [bare])
    assert found.changes == (Change("outcome", "clean", "error", False),)


# ---- outputs, findings and totals ----------------------------------------------------------------------


def compared(outcome, mismatches=0, output="y", against="reference r"):
    return {"output": output, "against": against, "outcome": outcome, "mismatches": mismatches}


OUTPUTS = {
    "equal": ([compared("clean")], [compared("clean")], []),
    "wrong": ([compared("clean")], [compared("failed", 1_234)],
              [("y against reference r", "clean", "failed, 1,234 wrong", False)]),
    "right": ([compared("failed", 2)], [compared("clean")],
              [("y against reference r", "failed, 2 wrong", "clean", True)]),
    "as wrong": ([compared("failed", 2)], [compared("failed", 3)],
                 [("y against reference r", "failed, 2 wrong", "failed, 3 wrong", None)]),
    "no longer compared": ([compared("clean")], [], [("y against reference r", "clean", "not compared", False)]),
    "compared now": ([], [compared("clean")], [("y against reference r", "not compared", "clean", True)]),
    "wrong now": ([], [compared("failed", 1)], [("y against reference r", "not compared", "failed, 1 wrong", False)]),
    "unchecked now": ([], [compared("unchecked")], [("y against reference r", "not compared", "unchecked", None)]),
    "another truth": (
        [compared("clean"), compared("clean", against="wgpu on a")],
        [compared("clean"), compared("failed", 4, against="wgpu on a")],
        [("y against wgpu on a", "clean", "failed, 4 wrong", False)],
    ),
    "another output": (
        [compared("clean"), compared("clean", output="z")], [compared("failed", 4), compared("clean", output="z")],
        [("y against reference r", "clean", "failed, 4 wrong", False)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_comparisons_that_changed(name):
    before, after, expected = OUTPUTS[name]
    assert rows({"outputs": before}, {"outputs": after}) == expected


def found(*codes, allowed=()):
    return [
        *({"code": code, "allowed": False} for code in codes),
        *({"code": code, "allowed": True} for code in allowed),
    ]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (found("race"), found("race"), []),
        (found("race"), found("race", allowed=["uninit"]), []),
        (found("race"), found(allowed=["race"]), [("finding race", "1 place", "none", True)]),
        (found(), found("race", "race"), [("finding race", "none", "2 places", False)]),
        (found("race", "race"), found("race"), [("finding race", "2 places", "1 place", True)]),
        (found("b"), found("a"), [("finding a", "none", "1 place", False), ("finding b", "1 place", "none", True)]),
    ],
)
def test_findings_that_changed(before, after, expected):
    assert rows({"findings": before}, {"findings": after}) == expected


@pytest.mark.parametrize(
    ("key", "what"),
    [("shared_wavefronts", "wavefronts"), ("global_sectors", "sectors"), ("atomic_turns", "atomic turns"),
     ("barriers", "barriers"), ("flops", "FLOPs"), ("workgroup_memory_bytes", "bytes of workgroup memory")],
)  # fmt: skip
def test_totals_that_changed(key, what):
    assert rows({"counters": {key: 1_000}}, {"counters": {key: 1_500}}) == [(what, "1,000", "1,500 (x1.5)", False)]
    assert rows({"counters": {key: 4}}, {"counters": {key: 1}}) == [(what, "4", "1 (x0.25)", True)]
    assert rows({"counters": {key: 0}}, {"counters": {key: 3}}) == [(what, "0", "3", False)]
    assert rows({"counters": {key: 3}}, {"counters": {}}) == [(what, "3", "0", True)]
    assert rows({"counters": {key: 3}}, {"counters": {key: 3, "other": 1}}) == []
    assert rows({"counters": {key: 0.5}}, {"counters": {key: 12345.678}})[0][1:3] == ("0.5", "1.235e+04 (x2.47e+04)")


def test_totals_are_in_the_order_of_their_table():
    every = {key: 1 for key, _ in report.TOTALS}
    assert [what for what, *_ in rows({}, {"counters": every})] == [
        "wavefronts", "sectors", "atomic turns", "barriers", "FLOPs", "bytes of workgroup memory"
    ]  # fmt: skip


# ---- lines ---------------------------------------------------------------------------------------------


def sites(*costs, file="a/k.wgsl"):
    """Sites of lines from 1 on: a text and FLOPs each."""
    return [{"file": file, "line": number, "text": text, "flops": flops}
            for number, (text, flops) in enumerate(costs, 1)]  # fmt: skip


LINES = {
    "equal": ([("x", 1), ("y", 2)], [("x", 1), ("y", 2)], []),
    "moved": ([("x", 1), ("y", 2)], [("new", 0), ("x", 1), ("y", 2)], []),
    "indented": ([("x = 1", 1)], [("  x  =  1", 1)], []),
    "dearer": ([("x", 1), ("y", 2)], [("x", 1), ("y", 4)], [("k.wgsl:2 FLOPs", "2", "4", False, "y", "k.wgsl", 2)]),
    "moved and cheaper": (
        [("x", 8), ("y", 2)], [("", 0), ("x", 2), ("y", 2)], [("k.wgsl:2 FLOPs", "8", "2", True, "x", "k.wgsl", 2)]
    ),
    "another text": ([("x", 8), ("y", 2)], [("z", 2), ("y", 2)],
                     [("k.wgsl:1 FLOPs", "8", "2", True, "z", "k.wgsl", 1)]),
    "new": ([("y", 2)], [("x", 5), ("y", 2)], [("k.wgsl:1 FLOPs", "0", "5", False, "x", "k.wgsl", 1)]),
    "gone": ([("x", 5), ("y", 2)], [("y", 2)], [("k.wgsl:1 (before) FLOPs", "5", "0", True, "x", "", 0)]),
    "the largest change first": (
        [("a", 10), ("b", 100), ("c", 0)], [("a", 5), ("b", 90), ("c", 40)],
        [("k.wgsl:3 FLOPs", "0", "40", False, "c", "k.wgsl", 3), ("k.wgsl:1 FLOPs", "10", "5", True, "a", "k.wgsl", 1),
         ("k.wgsl:2 FLOPs", "100", "90", True, "b", "k.wgsl", 2)],
    ),
    "another number of lines": (
        [("a", 1), ("b", 2), ("z", 9)], [("c", 4), ("z", 9)],
        [("k.wgsl:1 FLOPs", "0", "4", False, "c", "k.wgsl", 1), ("k.wgsl:2 (before) FLOPs", "2", "0", True, "b", "", 0),
         ("k.wgsl:1 (before) FLOPs", "1", "0", True, "a", "", 0)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LINES)
def test_lines_that_changed(name):
    before, after, expected = LINES[name]
    cases = changes([entry(sites=sites(*before))], [entry(sites=sites(*after))])
    made = [(c.what, c.before, c.after, c.better, c.code, c.file, c.line) for case in cases for c in case.changes]
    assert made == expected


def test_lines_are_matched_within_their_files():
    before = [*sites(("x", 1), file="a.wgsl"), *sites(("x", 5), file="b.wgsl")]
    after = [*sites(("x", 1), file="a.wgsl"), *sites(("x", 7), file="b.wgsl")]
    (case,) = changes([entry(sites=before)], [entry(sites=after)])
    assert [each.what for each in case.changes] == ["b.wgsl:1 FLOPs"]


def test_lines_beyond_the_first_twelve_are_counted():
    for many, left in ((12, 0), (13, 1), (40, 28)):
        before, after = ([(f"line {n}", cost * (n + 1)) for n in range(many)] for cost in (1, 2))
        (case,) = changes([entry(sites=sites(*before))], [entry(sites=sites(*after))])
        assert (len(case.changes), case.left_out) == (12, left)


# ---- words ---------------------------------------------------------------------------------------------

WORSE = CaseChange("k N=4", (Change("outcome", "clean", "failed", False), Change("y", "1", "20", None),
                             Change("k.wgsl:1 FLOPs", "10", "5", True, "a | b", "k.wgsl", 1)), 3)  # fmt: skip
BETTER = CaseChange("other", (Change("FLOPs", "2", "1 (x0.5)", True),))


def test_changes_in_a_sentence():
    assert [summary([], cases) for cases in (0, 1, 2)] == [
        "no change in 0 cases", "no change in 1 case", "no change in 2 cases"
    ]  # fmt: skip
    assert summary([WORSE, BETTER], 5) == "2 of 5 cases changed, 1 of them for the worse"
    neither = CaseChange("", (Change("y", "1", "2", None),))
    assert [case.worse for case in (WORSE, BETTER, neither)] == [True, False, False]


def test_changes_as_a_table():
    assert as_text([WORSE, BETTER], "HEAD", 5) == [
        "k N=4",
        "  outcome         clean -> failed  worse",
        "  y                   1 -> 20",
        "  k.wgsl:1 FLOPs     10 -> 5       better  a | b",
        "  and 3 more lines",
        "other",
        "  FLOPs  2 -> 1 (x0.5)  better",
        "against HEAD: 2 of 5 cases changed, 1 of them for the worse",
    ]


def test_changes_as_markdown():
    assert as_markdown([WORSE, BETTER], "a*b", 5) == [
        "### Bankshot against a\\*b: 2 of 5 cases changed, 1 of them for the worse",
        "", "**k N=4**", "", "| what | before | after | | line |", "|---|--:|--:|---|---|",
        "| outcome | clean | failed | **worse** |  |",
        "| y | 1 | 20 |  |  |",
        "| k.wgsl:1 FLOPs | 10 | 5 | better | `` a \\| b `` |",
        "", "and 3 more lines",
        "", "**other**", "", "| what | before | after | | line |", "|---|--:|--:|---|---|",
        "| FLOPs | 2 | 1 (x0.5) | better |  |",
    ]  # fmt: skip
    assert report._escaped("\\`*_<>|[]a") == "\\\\\\`\\*\\_\\<\\>\\|\\[\\]a"

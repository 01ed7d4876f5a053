"""The cells of a row of `audit`'s table, and its columns."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.judge.coverage import CaseOutcome
from bankshot.oracle.reports.formats import table
from bankshot.oracle.reports.formats.table import Rows, cells_of

CLEAN, FAILED, UNCHECKED = CaseOutcome.CLEAN, CaseOutcome.FAILED, CaseOutcome.UNCHECKED


def output(rule, score=0.0, outcome=CLEAN, vacuous=False, by_gpu=False, name="y"):
    comparison = SimpleNamespace(vacuous=vacuous, rule=SimpleNamespace(name=rule), score=score)
    return SimpleNamespace(ok=outcome is CLEAN, outcome=outcome, comparison=comparison, by_gpu=by_gpu, output=name)


def finding(code, ok, allowed=False):
    return SimpleNamespace(ok=ok, allowed=allowed, finding=SimpleNamespace(code=code))


def cells(outputs=(), counters=(), findings=(), notes=(), ran=None, outcome=CLEAN):
    coverage = SimpleNamespace(how="all", workgroups=12_345, ran=12_345)
    if ran is not None:
        coverage = SimpleNamespace(how="sample", workgroups=12_345, ran=ran)
    counters = [SimpleNamespace(ok=ok) for ok in counters]
    case = SimpleNamespace(kernel=SimpleNamespace(name="k"), shape="N=1")
    figures = {"a": 0.5, "b": 1.256}
    audit = SimpleNamespace(outputs=outputs, counters=counters, findings=findings, notes=notes, outcome=outcome,
                            run=SimpleNamespace(coverage=coverage), case=case, seconds=figures)  # fmt: skip
    return dict(
        zip(("verdict", "kernel", "shape", *(name for name, _, _ in table.COLUMNS)), cells_of(audit), strict=True)
    )


PLAIN = {"verdict": "ok", "kernel": "k", "shape": "N=1", "workgroups": "12,345", "reference": "-", "wgpu": "-",
         "counters": "-", "findings": "none", "notes": "-", "seconds": "1.76"}  # fmt: skip
# What differs from a case without checks; the cells that then differ.
ROWS = {
    "nothing": ({}, {}),
    "failed": ({"outcome": FAILED}, {"verdict": "NOT OK"}),
    "unchecked": ({"outcome": UNCHECKED}, {"verdict": "UNCHECKED"}),
    "a sample": ({"ran": 1_000}, {"workgroups": "1,000 for 12,345"}),
    "exact": ({"outputs": [output("exact", 7.0)]}, {"reference": "exact"}),
    "the worst score of a rule": (
        {"outputs": [output("bound", 0.25), output("bound", 0.5), output("bound", 0.125)]}, {"reference": "bound 0.5"}
    ),
    "no score below nothing": ({"outputs": [output("ulp", 0.0)]}, {"reference": "ulp 0"}),
    "two digits": ({"outputs": [output("bound", 0.12345)]}, {"reference": "bound 0.12"}),
    "two rules": ({"outputs": [output("bound", 0.5), output("exact")]}, {"reference": "bound 0.5, exact"}),
    "nothing compared": ({"outputs": [output("bound", 0.5, vacuous=True)]}, {}),
    "a vacuous one beside another": (
        {"outputs": [output("bound", 0.5, vacuous=True), output("ulp", 2.0)]}, {"reference": "ulp 2"}
    ),
    "by a GPU": ({"outputs": [output("exact", by_gpu=True)]}, {"wgpu": "exact"}),
    "both": ({"outputs": [output("bound", 0.5), output("exact", by_gpu=True)]},
             {"reference": "bound 0.5", "wgpu": "exact"}),
    "a wrong output": ({"outputs": [output("exact"), output("ulp", 9.0, FAILED, name="z")]},
                       {"reference": "DIFFERS z"}),
    "an unchecked one": ({"outputs": [output("ulp", 9.0, UNCHECKED, name="z", by_gpu=True)]}, {"wgpu": "UNCHECKED z"}),
    "counters": ({"counters": [True, True, True]}, {"counters": "3 ok"}),
    "wrong counters": ({"counters": [True, False, False, True, False]}, {"counters": "DIFFER 3"}),
    "findings": ({"findings": [finding("race", False), finding("bounds", False), finding("race", False)]},
                 {"findings": "FOUND bounds, race"}),
    "accepted findings": ({"findings": [finding("race", True, True), finding("info", True), finding("a", True, True)]},
                          {"findings": "2 accepted"}),
    "one of them is not": ({"findings": [finding("race", False), finding("info", True, True)]},
                           {"findings": "FOUND race"}),
    "a finding that fails nothing": ({"findings": [finding("info", True)]}, {}),
    "notes": ({"notes": ["a", "b"]}, {"notes": "2"}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_the_cells_of_a_case(name):
    given, changed = ROWS[name]
    assert cells(**given) == PLAIN | changed


def plan(name, *shapes):
    return SimpleNamespace(kernel=SimpleNamespace(name=name), shapes=shapes)


def test_columns_are_as_wide_as_their_widest_cell():
    rows = Rows([plan("a", "N=1"), plan("longest", "N=1 M=2", "N=3")], ["unreadable"])
    first = rows.next(("ok", "a", "N=1", "7"))
    headings = (
        "kernel      shape    workgroups       reference      wgpu           counters  findings     notes  seconds"
    )
    assert first.splitlines() == [" " * 10 + headings, "ok        a           N=1      7"]
    assert rows.next(("ERROR", "unreadable", "", "a long text that no column holds")) == (
        "ERROR     unreadable           a long text that no column holds"
    )
    assert Rows([], []).next(("ok", "k", "", "1", "2", "3")).splitlines()[1] == (
        "ok        k              1                2              3"
    )

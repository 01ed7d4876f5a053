"""What a diff says of its parts: outputs, counters, and what was not compared."""

from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.console import Console

from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.gpu_account.regions import Place
from bankshot.oracle.judge import counter_diff
from bankshot.oracle.judge.case_run import MAY_HANG
from bankshot.oracle.judge.counter_diff import CounterDifference
from bankshot.oracle.judge.coverage import NO_OUTPUT, CaseOutcome, Coverage, OutputCoverage
from bankshot.oracle.judge.diff import Diff
from bankshot.oracle.judge.output_checks import OutputCheck
from bankshot.oracle.reports import diff_report
from bankshot.sim.wgsl.source import Source, Span

ADAPTER = SimpleNamespace(name="llvmpipe")
BARE, LISTED = (SimpleNamespace(kernel=SimpleNamespace(path=Path(f"k.{suffix}"))) for suffix in ("wgsl", "toml"))
COUNTED, MISCOUNTED = SimpleNamespace(ok=True), SimpleNamespace(ok=False)
WHOLE = Coverage((OutputCoverage("y", 4, {"wgpu": 4}, 0),))
PART = Coverage((OutputCoverage("y", 4, {"wgpu": 1}, 3),))
ONES = np.ones(4, np.float32)
SAME, OTHER = (OutputCheck("y", "wgpu", compare(ONES, expected)) for expected in (ONES, 2 * ONES))


@pytest.mark.parametrize(
    ("case", "facts", "outcome", "unchecked"),
    [
        (LISTED, {"coverage": WHOLE, "outputs": (SAME,)}, CaseOutcome.CLEAN, ()),
        (LISTED, {"coverage": WHOLE, "outputs": (OTHER,)}, CaseOutcome.FAILED, ()),
        (LISTED, {"coverage": WHOLE, "outputs": (SAME, OTHER)}, CaseOutcome.FAILED, ()),
        (LISTED, {"coverage": WHOLE, "outputs": (SAME,), "counters": MISCOUNTED}, CaseOutcome.FAILED, ()),
        (LISTED, {"coverage": WHOLE, "outputs": (SAME,), "counters": COUNTED}, CaseOutcome.CLEAN, ()),
        (LISTED, {"coverage": PART, "outputs": (SAME,)}, CaseOutcome.UNCHECKED, PART.left_words),
        (BARE, {"coverage": PART, "outputs": (SAME,)}, CaseOutcome.CLEAN, ()),
        (LISTED, {}, CaseOutcome.UNCHECKED, (NO_OUTPUT,)),
        (BARE, {}, CaseOutcome.CLEAN, ()),
        (LISTED, {"counters": COUNTED}, CaseOutcome.CLEAN, ()),  # they are compared, if no output is
        (LISTED, {"counters": MISCOUNTED}, CaseOutcome.FAILED, ()),
        (LISTED, {"not_run": "no f16"}, CaseOutcome.UNCHECKED, ("no f16",)),
        (BARE, {"not_run": "no f16", "not_counted": "too long"}, CaseOutcome.UNCHECKED, ("no f16",)),
        (LISTED, {"coverage": WHOLE, "not_counted": "too long"}, CaseOutcome.UNCHECKED, ("too long",)),
        (LISTED, {"not_counted": "too long"}, CaseOutcome.UNCHECKED, (NO_OUTPUT, "too long")),
    ],
)  # fmt: skip
def test_the_outcome_of_a_diff(case, facts, outcome, unchecked):
    made = Diff(case, "nvidia", ADAPTER, **facts)
    assert (made.outcome, made.unchecked, made.ok) == (outcome, unchecked, outcome == CaseOutcome.CLEAN)
    assert made.stopped is False
    assert made.differs == (outcome == CaseOutcome.FAILED)


def test_a_run_that_was_ended_is_stopped():
    assert Diff(LISTED, "nvidia", ADAPTER, not_run=MAY_HANG).stopped


@pytest.mark.parametrize(
    ("facts", "truths", "reasons"),
    [
        ({"coverage": WHOLE}, ("wgpu",), ()),
        ({"coverage": WHOLE, "counters": COUNTED}, ("wgpu", "counters"), ()),
        ({"coverage": PART}, ("wgpu",), ("y with llvmpipe",)),
        ({"coverage": PART, "not_run": "no f16"}, ("wgpu",), ("with llvmpipe: no f16",)),
        ({"coverage": WHOLE, "not_counted": "too long"}, ("wgpu",), ("counters: too long",)),
    ],
)
def test_what_the_last_line_says_of_a_diff(facts, truths, reasons):
    made = Diff(LISTED, "nvidia", ADAPTER, **facts).compared
    assert (made.truths, made.not_compared, made.bare) == (truths, reasons, False)
    assert Diff(BARE, "nvidia", ADAPTER, **facts).compared.bare


# ---- counters ----------------------------------------------------------------------------------------

TEXT = "fn f() {\n  y = a + b;\n}\n"
SUM = Span(Source(TEXT, "k.wgsl"), TEXT.index("a"), TEXT.index(";"))


def test_instructions_that_differ_are_named_by_their_class():
    row = SimpleNamespace(kind="f32_add", span=SUM, executions=3, lanes=40)
    account = SimpleNamespace(instructions={("f32_add", SUM): [3, 41], ("branch", SUM): [1, 2]})
    found = counter_diff._instructions(SimpleNamespace(instructions=[row]), account)
    assert [(each.site.kind, each.site.name, each.site.span) for each in found] == [
        *[("instruction", "f32_add", SUM)] * 2,
        *[("instruction", "branch", SUM)] * 2,
    ]
    assert [(each.counter, each.simulated, each.counted) for each in found] == [
        ("instructions_issued", 3, 3),
        ("instruction_lanes", 40, 41),
        ("instructions_issued", 0, 1),
        ("instruction_lanes", 0, 2),
    ]


def test_counters_that_differ_are_shown_with_their_place():
    differences = (
        CounterDifference(None, "workgroups", 1, 2),
        CounterDifference(Place("instruction", SUM, name="f32_add"), "instruction_lanes", 4000, 41),
        CounterDifference(Place("load", SUM, "storage", "a", 4), "executions", 1, 0),
        CounterDifference(Place("barrier", SUM), "executions", 7, 8),
    )
    facts = {"cut": False, "compared": 12, "rows": 3456, "differences": differences, "zeroed": False, "device": "amd"}
    facts |= {"outputs_equal": True, "not_compared": {"padding_flops": "unknown"}}
    out = Console(file=StringIO(), width=200)
    diff_report._counters(out, SimpleNamespace(**facts))
    lines = [line.strip() for line in out.file.getvalue().splitlines()]
    assert lines[0].endswith("counters as amd: 12 counters of 3,456 recorded events, the whole grid: 4 differ")
    assert lines[1:] == [
        "the run: workgroups 1 simulated, 2 counted",
        "k.wgsl:2:7: f32_add: instruction_lanes 4,000 simulated, 41 counted",
        "k.wgsl:2:7: load of a: executions 1 simulated, 0 counted",
        "k.wgsl:2:7: barrier: executions 7 simulated, 8 counted",
        "not compared: padding_flops (unknown)",
    ]


def test_entries_of_counters_that_differ():
    differences = (
        CounterDifference(None, "workgroups", 1, 2),
        CounterDifference(Place("instruction", SUM, name="f32_add"), "instruction_lanes", 40, 41),
        CounterDifference(Place("load", SUM, "storage", "a", 4), "executions", 1, 0),
    )
    facts = dict.fromkeys(("ok", "cut", "rows", "passes", "compared", "outputs_equal", "zeroed"), 0)
    made = diff_report._counters_entry(SimpleNamespace(**facts, grid=(1,), not_compared={}, differences=differences))
    assert [tuple(each.values()) for each in made["differences"]] == [
        (None, None, "run", None, "workgroups", 1, 2),
        ("k.wgsl", 2, "instruction", "f32_add", "instruction_lanes", 40, 41),
        ("k.wgsl", 2, "load", "a", "executions", 1, 0),
    ]

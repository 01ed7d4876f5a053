"""Comparisons, counters and coverage in words, each sentence in full."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.comparison.compare import Comparison, Difference
from bankshot.oracle.judge.coverage import CaseOutcome, Compared, Coverage, OutputCoverage, kind_of
from bankshot.oracle.judge.output_checks import OutputCheck
from bankshot.oracle.judge.verdict import Audit, FindingCheck
from bankshot.oracle.manifests.manifest import MostMicroseconds
from bankshot.oracle.reports.check_words import comparison_words, counted, counter_words


class Rule:
    def __init__(self, name, bitwise=False):
        self.name, self.row = name, SimpleNamespace(bitwise=bitwise, name=name)

    def __str__(self):
        return self.name


EXACT, ULP = Rule("exact", bitwise=True), Rule("ulp max 4")
FLOAT = Difference((0,), 1.0, 2.0, "a", "b", 3)
WHOLE = Difference((0,), 1, 2, "a", "b", 1)


def comparison(rule, ok=True, elements=1_000, unchecked=0, **given):
    facts = {"mismatches": 0, "score": 0.12345, "limit": 4.0, "measure": "ULP at most", "max_abs": 0.0, "max_ulp": 0,
             "worst": (), "unchecked": np.arange(elements) < unchecked if unchecked else None, "unbounded": 0,
             "mismatch_map": None, "bitwise": False, "expects_change": True} | given  # fmt: skip
    return Comparison(rule, ok, elements, **facts)


SCORE = ", ULP at most 0.123 (limit 4)"
COMPARISONS = {
    "bits": (comparison(EXACT, bitwise=True), "bit for bit, 1,000 elements"),
    "one element": (comparison(EXACT, bitwise=True, elements=1), "bit for bit, 1 element"),
    "values": (comparison(EXACT), "equal, 1,000 elements"),
    "a rule": (comparison(ULP), f"1,000 elements, rule ulp max 4{SCORE}"),
    "some without a bound": (
        comparison(ULP, unbounded=300, unchecked=300),
        f"1,000 elements, rule ulp max 4{SCORE}, 300 without a bound, where any value passes",
    ),
    "some that could not fail": (
        comparison(ULP, unchecked=20), f"1,000 elements, rule ulp max 4{SCORE}, 20 that could not have failed"
    ),
    "both": (
        comparison(ULP, unbounded=3, unchecked=23),
        f"1,000 elements, rule ulp max 4{SCORE}, 3 without a bound, where any value passes, 20 that could not have "
        "failed",
    ),
    "none that could fail": (
        comparison(ULP, unchecked=1_000), "1,000 elements, rule ulp max 4: no element could have failed"
    ),
    "no bound at all": (
        comparison(ULP, unbounded=1_000, unchecked=1_000),
        "1,000 elements, rule ulp max 4: no element has a bound, so any value passes",
    ),
    "nothing": (comparison(ULP, elements=0), f"0 elements, rule ulp max 4{SCORE}"),
    "wrong bits": (
        comparison(EXACT, False, mismatches=125, max_ulp=1_234, worst=(FLOAT,)),
        "125 of 1,000 elements (12.50%), rule exact, up to 1,234 ULP apart",
    ),
    "wrong integers": (
        comparison(EXACT, False, mismatches=1, max_ulp=7, worst=(FLOAT, WHOLE)),
        "1 of 1,000 elements (0.10%), rule exact, up to 7 apart",
    ),
    "wrong by a rule": (
        comparison(ULP, False, mismatches=5_000, elements=10_000, max_ulp=9, worst=(FLOAT,)),
        f"5,000 of 10,000 elements (50.00%), rule ulp max 4{SCORE}, up to 9 ULP apart",
    ),
    "no distance": (
        comparison(ULP, False, mismatches=1, max_ulp=None, unchecked=2, worst=(FLOAT,)),
        f"1 of 1,000 elements (0.10%), rule ulp max 4{SCORE}, 2 that could not have failed",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_in_words(name):
    made, words = COMPARISONS[name]
    assert comparison_words(made) == words


def test_counters_in_words():
    def counter(actual, expected):
        return SimpleNamespace(ok=actual == expected, actual=actual, expected=expected)

    assert counter_words(counter(1_234, 1_234)) == "1,234 as expected"
    assert counter_words(counter(1_234, 5_678)) == "1,234, the manifest expects 5,678"
    assert [counted(number, "case") for number in (0, 1, 2, 1_000)] == ["0 cases", "1 case", "2 cases", "1,000 cases"]


# ---- outcomes of outputs -----------------------------------------------------------------------------

OUTCOMES = [
    # accepted, elements that could not fail, checked elsewhere; the outcome
    (True, 0, False, CaseOutcome.CLEAN),
    (True, 5, False, CaseOutcome.UNCHECKED),
    (True, 5, True, CaseOutcome.CLEAN),
    (False, 0, True, CaseOutcome.FAILED),
    (False, 5, False, CaseOutcome.FAILED),
]


@pytest.mark.parametrize(("ok", "unchecked", "elsewhere", "outcome"), OUTCOMES)
def test_the_outcome_of_an_output(ok, unchecked, elsewhere, outcome):
    check = OutputCheck("y", "it", comparison(ULP, ok, unchecked=unchecked), checked_elsewhere=elsewhere)
    assert (check.outcome, check.ok) == (outcome, outcome is CaseOutcome.CLEAN)


HINTS = [
    (3, -1.0, "none", "y cannot hold -1; if the reference means the same bits, convert it with .astype(np.uint32)"),
    (3, 0.5, "none", "y cannot hold 0.5; if the reference means the same bits, round it as the kernel does"),
    (3, -0.5, "none", "y cannot hold -0.5; if the reference means the same bits, round it as the kernel does"),
    (3, 7.0, "none", "y cannot hold 7; if the reference means the same bits, round it as the kernel does"),
    (3, 7.0, "0x7", ""),
]


@pytest.mark.parametrize(("actual", "expected", "bits", "hint"), HINTS)
def test_a_hint_where_the_output_cannot_hold_what_is_expected(actual, expected, bits, hint):
    other = Difference((0,), 1, 2.0, "a", "0x2", 1)
    worst = (other, Difference((1,), actual, expected, "a", bits, None))
    assert OutputCheck("y", "it", comparison(EXACT, False, worst=worst)).hint == hint


def output(elements=10, truths=None, unchecked=0, reason="", lost=False):
    return OutputCoverage("y", elements, truths or {}, unchecked, reason, lost)


RULE = "; compare them by a rule that can fail, or give the reason in [expect] unchecked"
LOST = "; the kernel never stores to it: declare it `read`, or give the reason in [expect] unchecked"
COVERED = {
    "all": (output(2_000, {"reference": 2_000, "wgpu on a": 1_500}),
            "y: reference checks 2,000, wgpu on a checks 1,500 of 2,000 elements", None),
    "none": (output(2_000, {}, 2_000), "y: 2,000 of 2,000 elements unchecked (nothing compared)", RULE),
    "some": (output(2_000, {"reference": 500}, 1_500),
             "y: 1,500 of 2,000 elements unchecked (reference checks 500)", RULE),
    "a reason": (output(9, {}, 9, "random"),
                 "y: 9 of 9 elements unchecked (nothing compared), as the manifest says: random", None),
    "lost": (output(9, {}, 9, lost=True), "y: 9 of 9 elements unchecked (nothing compared)", LOST),
}  # fmt: skip


@pytest.mark.parametrize("name", COVERED)
def test_the_coverage_of_an_output_in_words(name):
    made, words, advice = COVERED[name]
    assert str(made) == words
    assert Coverage((made,)).left_words == ((words + advice,) if advice else ())
    assert Coverage((made,)).left == ((made,) if advice else ())


def test_the_kinds_of_truth():
    outputs = (output(truths={"reference": 4, "wgpu on a": 4, "golden": 0}), output(truths={"wgpu on b": 1}))
    assert Coverage(outputs).truths == ("reference", "wgpu")
    assert Coverage(outputs, counters=2).truths == ("reference", "wgpu", "expected counters")
    assert [kind_of(truth) for truth in ("wgpu on a on b", "reference")] == ["wgpu", "reference"]
    idle = "no output is expected to change, so that a kernel that stores nothing would pass"
    assert Coverage(idle=True).left_words == (idle,)


# ---- outcomes of cases -------------------------------------------------------------------------------


def audit(outputs=(), counters=(), limits=(), findings=(), golden=None, coverage=None, declared=0, **given):
    path, bound = SimpleNamespace(suffix=given.pop("suffix", ".toml")), given.pop("bound", None)
    kernel = SimpleNamespace(path=path, counters=range(declared), predicted_us_max=bound)
    covered = Coverage((output(truths={"reference": 10}),)) if coverage is None else coverage
    checks = (tuple(SimpleNamespace(ok=ok) for ok in group) for group in (counters, limits))
    return Audit(SimpleNamespace(kernel=kernel), "nvidia", None, tuple(outputs), *checks, tuple(findings), (), (), {},
                 golden=golden, coverage=covered, **given)  # fmt: skip


def found(severity="warning", allowed=False, fail_on="warning", code="race"):
    return FindingCheck(SimpleNamespace(severity=severity, code=code), allowed, fail_on)


def golden(differs=False, unchecked=False):
    return SimpleNamespace(differs=differs, unchecked=unchecked, advice="make it anew", likely=None)


CLEAN, FAILED, UNCHECKED = CaseOutcome.CLEAN, CaseOutcome.FAILED, CaseOutcome.UNCHECKED
GOOD, BAD = OutputCheck("y", "it", comparison(ULP)), OutputCheck("y", "it", comparison(ULP, False))
BOUND = MostMicroseconds(3, "k.toml:1")
VACUOUS = OutputCheck("y", "it", comparison(ULP, unchecked=1_000))
SOME = OutputCheck("y", "it", comparison(ULP, unchecked=10))
LEFT = Coverage((output(10, {}, 10),))
LEFT_WORDS = f"y: 10 of 10 elements unchecked (nothing compared){RULE}"
CASES = {
    "clean": ({"outputs": [GOOD]}, CLEAN, ()),
    "a wrong output": ({"outputs": [GOOD, BAD]}, FAILED, ()),
    "a wrong counter": ({"counters": [True, False]}, FAILED, ()),
    "beyond a limit": ({"limits": [False, True]}, FAILED, ()),
    "a finding": ({"findings": [found()]}, FAILED, ()),
    "an accepted finding": ({"findings": [found(allowed=True)]}, CLEAN, ()),
    "information": ({"findings": [found("info")]}, CLEAN, ()),
    "a warning, where errors fail": ({"findings": [found("warning", fail_on="error")]}, CLEAN, ()),
    "information, where it fails": ({"findings": [found("info", fail_on="info")]}, FAILED, ()),
    "another golden": ({"golden": golden(differs=True)}, FAILED, ()),
    "the golden": ({"golden": golden()}, CLEAN, ()),
    "no golden of this device": ({"golden": golden(unchecked=True)}, UNCHECKED, ("golden: make it anew",)),
    "elements left": ({"coverage": LEFT}, UNCHECKED, (LEFT_WORDS,)),
    "elements left, and a wrong output": ({"coverage": LEFT, "outputs": [BAD]}, FAILED, (LEFT_WORDS,)),
    "no output": ({"coverage": Coverage()}, UNCHECKED, ("the kernel has no output, and no counter is compared",)),
    "no output, but a counter": ({"coverage": Coverage(counters=1), "declared": 1}, CLEAN, ()),
    "counters that are not compared": (
        {"coverage": replace(LEFT, outputs=(output(truths={"reference": 10}),), counters=1), "declared": 3},
        UNCHECKED, ("expected counters: 2 not compared",),
    ),
    "predicted to be fast enough": ({"bound": BOUND, "predicted": SimpleNamespace(ok=True)}, CLEAN, ()),
    "predicted to be slow": ({"bound": BOUND, "predicted": SimpleNamespace(ok=False)}, FAILED, ()),
    "a bound of the time that is not compared": ({"bound": BOUND}, UNCHECKED, ("predicted_us_max: not compared",)),
    "a run that was stopped": (
        {"coverage": LEFT, "stopped": True}, UNCHECKED, ("the run was stopped, so that it has no outputs to compare",)
    ),
    "no manifest": ({"coverage": LEFT, "suffix": ".wgsl"}, CLEAN, ()),
    "no manifest, and a rule that cannot fail": (
        {"coverage": LEFT, "suffix": ".wgsl", "outputs": [VACUOUS]}, UNCHECKED, (LEFT_WORDS,)
    ),
    "no manifest, and some elements": ({"coverage": LEFT, "suffix": ".wgsl", "outputs": [SOME]}, CLEAN, ()),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_outcome_of_a_case(name):
    given, outcome, unchecked = CASES[name]
    made = audit(**given)
    assert (made.outcome, made.ok, made.unchecked) == (outcome, outcome is CLEAN, unchecked)
    assert made.differs == (outcome is FAILED)


def test_what_the_last_line_says_of_a_case():
    outputs = (output(truths={"reference": 10}), output(10, {}, 3, "random"), output(10, {}, 3), output())
    made = audit(coverage=Coverage(outputs), not_compared=("with wgpu: no f16",))
    assert made.compared == Compared(("reference",), ("with wgpu: no f16",), 1, bare=False)
    assert audit(suffix=".wgsl").compared.bare
    assert audit().noting(["a"]).noting(["b", "c"]).notes == ("a", "b", "c")


def test_likely_causes_are_listed_once():
    cause, other = SimpleNamespace(name="fma contraction"), SimpleNamespace(name="golden's")
    outputs = [replace(BAD, likely=cause), replace(BAD, likely=cause), GOOD]
    findings = [found(code="race"), found(code="not-finite", allowed=True)]
    made = audit(outputs, findings=findings, golden=SimpleNamespace(**vars(golden()) | {"likely": other}))
    assert made.likely[0] == "fma contraction"
    assert made.likely[-1] == "golden's"
    assert len(made.likely) == 3

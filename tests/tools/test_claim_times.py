"""Claims about time: the tables of measured times, the verdicts that they give, and the command that measures."""

import csv

import pytest
from click.testing import CliRunner

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.reflection import check_module
from bankshot.oracle.wgpu_client import KernelTimes
from tools.claims import ledger, measure, timing
from tools.claims.document_003_estimates import by_counts
from tools.claims.ledger import Verdict
from tools.claims.timing import Adapter, Pair, Spread, at, once

TIMED = [claim for claim in ledger.claims() if claim.times]
ELSEWHERE = {"004.6b", "004.6e"}  # about the author's own device: times on another are shown and decide nothing

GPU = Adapter("a GPU", "DiscreteGPU", "driver 1")
OTHER = Adapter("another GPU", "IntegratedGPU", "driver 2")
CPU = Adapter("a CPU", "CPU", "driver 3")

SLOW, FAST = at("matmul_single", {"M": 64}), at("matmul", {"M": 64}, {"TK_PAD": 16}, change="edited")
PAIRS = [Pair("edited:", once(SLOW), once(FAST))]


def times(slow, fast, spread=0.0):
    return {
        (each.kernel, each.case): Spread(median, median - spread, median + spread)
        for each, median in ((SLOW, slow), (FAST, fast))
    }


@pytest.fixture
def tables(monkeypatch):
    """Set the times that claims read."""
    return lambda found: monkeypatch.setattr(timing, "measured", lambda: found)


# ---- tables ----


def problems(rows, known):
    """What is wrong with the rows of a table."""
    found = []
    for row in rows:
        name = f"{row['kernel']} {row['case']}"
        if (row["kernel"], row["case"]) not in known:
            found.append(f"{name}: no claim needs it")
        if not 0 < float(row["p10_us"]) <= float(row["median_us"]) <= float(row["p90_us"]):
            found.append(f"{name}: the median is not between the percentiles")
        found += [f"{name}: no {column}" for column in timing.COLUMNS if not row[column]]
    return found


ROW = dict.fromkeys(timing.COLUMNS, "x") | {"repeats": "9", "median_us": "2", "p10_us": "1", "p90_us": "3"}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"case": "M=9"}, "x M=9: no claim needs it"),
        ({"median_us": "4"}, "x x: the median is not between the percentiles"),
        ({"date": ""}, "x x: no date"),
    ],
)
def test_a_wrong_row_is_found(change, problem):
    assert problems([ROW], {("x", "x")}) == []
    assert problems([ROW | change], {("x", "x")}) == [problem]


def test_the_tables_have_times_that_claims_need():
    known = {(each.kernel, each.case) for claim in TIMED for each in claim.times}
    assert len(known) == len(measure.cases()) > 70
    for path in timing.TABLES.glob("times_*.csv"):
        assert problems(timing.read(path), known) == [], path.name


def test_a_case_is_named_by_sizes_overrides_and_change():
    assert (SLOW.case, FAST.case) == ("M=64", "M=64 TK_PAD=16, edited")


def test_tables_are_read_by_adapter_and_the_last_row_of_a_case_counts(tmp_path):
    fields = {"device": "a GPU", "kind": "DiscreteGPU", "driver": "driver 1", "kernel": "matmul", "case": "M=64"}
    rows = [ROW | fields, ROW | fields | {"median_us": "2.5"}, ROW | fields | {"device": "b", "case": "M=65"}]
    with (tmp_path / "times_x.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, timing.COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    assert timing.measured(tmp_path) == {
        GPU: {("matmul", "M=64"): Spread(2.5, 1, 3)},
        Adapter("b", "DiscreteGPU", "driver 1"): {("matmul", "M=65"): Spread(2, 1, 3)},
    }


# ---- verdicts ----


def test_work_is_the_sum_of_its_dispatches():
    assert timing.taken([(2.0, SLOW), (1.0, FAST)], times(10, 3, 1)) == Spread(23, 20, 26)
    assert timing.taken(once(SLOW, at("matmul", {"M": 65})), times(10, 3)) is None


def test_a_ratio_spans_what_the_percentiles_allow():
    assert Spread(10, 8, 12) / Spread(5, 4, 6) == Spread(2, 8 / 6, 3)


E, W, L = Spread(1, 0.9, 1.1), Spread(1.5, 1.4, 1.6), Spread(0.5, 0.4, 0.6)  # equal, won, lost


@pytest.mark.parametrize(
    ("rule", "found", "verdict"),
    [
        (timing.faster, [W, W], "confirmed"),
        (timing.faster, [W, E], "partly"),
        (timing.faster, [E], "refuted"),
        (timing.faster, [L], "refuted"),
        (timing.between(1.4, 1.5), [W], "confirmed"),
        (timing.between(1.5, 2), [Spread(1.4951, 1.4, 1.6)], "confirmed"),  # rounds to 1.5
        (timing.between(1.5, 2), [Spread(1.4949, 1.4, 1.6)], "partly"),  # faster, by less
        (timing.between(1.1, 1.2), [W], "partly"),  # faster, by more
        (timing.between(1.1, 1.2), [E], "refuted"),
        (timing.between(1.1, 1.2), [Spread(1, 0.9, 1.15)], "not decidable"),  # it may be as fast as claimed
        (timing.between(0.8, 0.95), [E], "not decidable"),
        (timing.between(0.8, 0.9), [E], "refuted"),
        (timing.between(1.4, 1.6), [W, L], "partly"),
    ],
)
def test_a_rule_judges_ratios(rule, found, verdict):
    assert rule(found) == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        ({}, "not decidable"),
        ({GPU: {}}, "not decidable"),
        ({CPU: times(10, 5)}, "not decidable"),
        ({GPU: times(10, 5)}, "confirmed"),
        ({GPU: times(5, 10)}, "refuted"),
        ({GPU: times(10, 5, spread=4)}, "refuted"),  # the percentiles overlap
        ({GPU: times(10, 5), OTHER: times(10, 5)}, "confirmed"),
        ({GPU: times(10, 5), OTHER: times(5, 10)}, "partly"),
        ({GPU: times(10, 5), CPU: times(5, 10)}, "confirmed"),
    ],
)
def test_times_decide_as_far_as_gpus_agree(tables, found, verdict):
    tables(found)
    decision = timing.decide(PAIRS, timing.faster, "{n} loads", "000.6d", n=4)
    assert decision.verdict == verdict
    assert decision.finding.startswith("4 loads")
    assert ("--claim 000.6d" in decision.needs) == (verdict == "not decidable")


def test_a_range_that_reaches_the_claim_needs_times_with_less_spread(tables):
    """Of medians 10 and 10, from 9 to 11, one may be 1.2 times as fast as the other."""
    tables({GPU: times(10, 10, spread=1)})
    decision = timing.decide(PAIRS, timing.between(1.2, 1.3), "n loads", "000.6d")
    assert (decision.verdict, decision.needs) == (
        "not decidable",
        "times with less spread, by `python -m tools.claims.measure --claim 000.6d`",
    )


def test_a_finding_shows_each_device_its_driver_and_spread(tables):
    tables({GPU: times(10, 5, spread=1), CPU: times(3, 6)})
    decision = timing.decide(PAIRS, timing.faster, "n loads", "000.6d")
    assert (
        "on a GPU (driver 1) edited: 2 (1.5 to 2.75); on a CPU (driver 3) edited: 0.5 (0.5 to 0.5); "
        "one GPU is one GPU, and processors that run shaders decide nothing" in decision.finding
    )
    assert decision.figures == {"times_as_fast": {"a GPU": {"edited:": 2}, "a CPU": {"edited:": 0.5}}}
    tables({GPU: times(10, 5, spread=1)})
    assert timing.decide(PAIRS, timing.faster, "n loads", "000.6d").finding.endswith("; one GPU is one GPU")


def test_the_name_of_an_adapter_goes_without_what_is_in_brackets():
    assert str(timing.Adapter("llvmpipe (LLVM 15, 256 bits)", "CPU", "Mesa 22")) == "llvmpipe (Mesa 22)"


@pytest.mark.parametrize("claim", TIMED, ids=lambda claim: claim.id)
def test_a_claim_about_time_is_decided_once_its_times_are_there(claim, tables):
    tables({GPU: {(each.kernel, each.case): Spread(100, 99, 101) for each in claim.times}})
    decision = claim.decide()
    assert (decision.verdict == Verdict.UNDECIDABLE) == (claim.id in ELSEWHERE)
    assert "a GPU" in decision.finding
    tables({})
    decision = claim.decide()
    assert "a GPU" not in decision.finding
    if decision.verdict == Verdict.UNDECIDABLE:
        needs = "the author's device" if claim.id in ELSEWHERE else f"measure --claim {claim.id}"
        assert needs in decision.needs


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        ([{"a": 1.5, "b": 2.0}], "confirmed"),  # every mixture is in between
        ([{"a": 1.5}, {"b": 2.1}], "not decidable"),
        ([{"a": 2.1, "b": 3.0}], "partly"),  # a gain, and a larger one
        ([{"a": 0.5, "b": 1.0}], "refuted"),
        ([{"a": 0.5, "b": 1.6}], "not decidable"),
        ([{"a": 1.0, "b": 1.0}], "not decidable"),  # equal costs say nothing of what is not counted
        ([{"a": 1.6, "b": INFINITE}], "not decidable"),
        ([{"a": 2.1, "b": INFINITE}], "partly"),
    ],
)
def test_counts_decide_an_estimate_of_time_only_where_every_mixture_of_them_agrees(ratios, verdict):
    assert by_counts(1.5, 2, ratios) == verdict


# ---- measuring ----


def test_a_row_has_the_percentiles_of_the_passes_in_microseconds_without_the_launch():
    times = KernelTimes(tuple(each * 1e-6 for each in range(11, 22)), 10e-6)
    row = measure.row(FAST, times, {"device": "a GPU"})
    assert row == {
        "device": "a GPU",
        "kernel": "matmul",
        "case": "M=64 TK_PAD=16, edited",
        "repeats": "11",
        "median_us": "6.00",
        "p10_us": "2.00",
        "p90_us": "10.00",
    }


def test_new_rows_replace_those_of_the_same_case_and_adapter(tmp_path):
    path = tmp_path / "times_x.csv"
    measure.write(path, [ROW, ROW | {"case": "kept"}, ROW | {"device": "kept"}])
    measure.write(path, [ROW | {"median_us": "2.5"}])
    assert timing.read(path) == [ROW | {"median_us": "2.5"}, ROW | {"case": "kept"}, ROW | {"device": "kept"}]


def test_a_claim_that_is_not_about_time_is_named():
    with pytest.raises(UsageError, match=r"000\.1 is not decided by time"):
        measure.cases("000.1")


def test_cases_of_no_claim_are_timed_by_name():
    done = CliRunner().invoke(measure.main, ["--case", "ladder_flat:M=252,K=252,N=252", "--list"])
    assert done.output == "ladder_flat  M=252 K=252 N=252\n"
    with pytest.raises(UsageError, match="`M` in `ladder_flat:M` must be NAME=SIZE"):
        measure.named_case("ladder_flat:M")


def test_what_is_timed_has_the_overrides_and_the_changed_text():
    edits = (("const TK = 16u;", "const TK = 8u;"),)
    made = measure.case_of(at("matmul", {"M": 64, "N": 64, "K": 64}, {"TK_PAD": 20}, "TK 8", edits))
    assert made.overrides["TK_PAD"] == 20
    assert (made.grid, made.arrays["X"].shape) == ((1, 1, 1), (64, 64))
    text = check_module(made.kernel).source.text
    assert "const TK = 8u;" in text
    assert "const TK = 16u;" not in text


def test_a_claim_is_measured_into_a_table_on_an_adapter(adapter, tmp_path, monkeypatch):
    small = at("ladder_one_thread", {"M": 64, "K": 64, "N": 64})
    monkeypatch.setattr(measure, "cases", lambda id: [small])
    table = tmp_path / "times_x.csv"
    done = CliRunner().invoke(measure.main, ["--claim", "004.6b", "--rounds", "1", "--table", str(table)])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith(f"{table}: 1 of 1 cases on {adapter.name}")
    (row,) = timing.read(table)
    assert (row["device"], row["kernel"], row["case"]) == (adapter.name, "ladder_one_thread", "M=64 K=64 N=64")
    assert problems([row], {(small.kernel, small.case)}) == []


def test_cases_can_be_listed():
    done = CliRunner().invoke(measure.main, ["--claim", "000.7b", "--list"])
    assert done.stdout == "matmul  M=512 N=3072 K=768\nmatmul  M=512 N=3072 K=768, unmasked\n"

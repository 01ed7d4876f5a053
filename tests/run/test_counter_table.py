"""The table of counters, and those who read it."""

import re
from pathlib import Path

import pytest

import bankshot
from bankshot.oracle.goldens.golden_lines import BY_LINE
from bankshot.oracle.judge.counter_checks import with_derived
from bankshot.oracle.reports.tables import CHARGES, TOTALS
from bankshot.oracle.sweep import COLUMNS
from bankshot.sim.run.counters import (
    COUNTERS,
    NAMES,
    REPORT_COUNTERS,
    RUN_COUNTERS,
    SITE_COUNTERS,
    RunRecord,
    SiteRecord,
)

HARDWARE = Path(__file__).parents[1] / "hardware"
UNITS = {
    *("subgroups", "lanes", "requests", "wavefronts", "sectors", "lines", "bytes", "operations"),
    *("workgroups", "invocations", "share", "FLOP/byte"),
}
SHADER = "@compute @workgroup_size(48) fn main() {}"


@pytest.mark.parametrize("row", COUNTERS.values(), ids=COUNTERS)
def test_a_row_is_complete(row):
    assert row.unit in UNITS
    assert row.label
    assert row.definition.endswith(".")
    assert not row.label.endswith(".")
    assert set(filter(None, row.probe.split(", "))) <= set(bankshot.PROBES)
    assert {row.ideal, row.per} <= {"", *NAMES}


def test_keys_are_unique():
    assert len(COUNTERS) == len(SITE_COUNTERS) + len(RUN_COUNTERS) + len(REPORT_COUNTERS)


@pytest.mark.parametrize("rank", ["summary", "golden"])
def test_ranks_are_unique(rank):
    ranks = sorted(getattr(row, rank) for row in COUNTERS.values() if getattr(row, rank))
    assert ranks == list(range(1, len(ranks) + 1))


def test_each_hardware_metric_was_measured():
    measured = "".join(path.read_text() for path in HARDWARE.glob("measure_*.py"))
    metrics = [metric for row in COUNTERS.values() for metric in row.metrics]
    assert metrics
    assert [metric for metric in metrics if f'"{metric}"' not in measured] == []


PIPE, TAGS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_", "l1tex__t_"
METRICS = {
    "shared_wavefronts": {f"{PIPE}{kind}.sum" for kind in ("ld", "st", "atom")},
    "global_requests": {f"{TAGS}requests_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("ld", "st")},
    "global_sectors": {f"{TAGS}sectors_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("ld", "st", "atom")},
}


def test_metrics_are_of_all_kinds_of_accesses():
    """The profiler has no requests of atomic operations."""
    assert {key: set(row.metrics) for key, row in COUNTERS.items() if row.metrics} == METRICS


def test_a_run_has_the_counters_of_the_table_in_its_order():
    run = bankshot.simulate(SHADER, grid=2)
    assert list(run.counters) == [row.key for row in (*SITE_COUNTERS, *RUN_COUNTERS)]
    assert (run.counters["workgroups"], run.counters["invocations"]) == (2, 96)
    assert set(with_derived(run.counters)) == {*run.counters, "bank_conflicts", "intensity"}


def test_shares_of_lanes_need_their_probe():
    run = bankshot.simulate(SHADER, grid=2, probes="none")
    missing = [row.key for row in RUN_COUNTERS if row.key not in run.counters]
    assert missing == ["simt_efficiency", "working_invocations"]


def test_lanes_add_up_to_those_of_the_subgroups():
    site = SiteRecord(subgroup_size=32)
    site.add_block([3, 40, 70, 80, 96], 2)  # executions, active, past guards, present, launched
    counts = {row.key: row.of_site(site) for row in SITE_COUNTERS if row.probe == "lanes"}
    causes = ("active_lanes", "idle_guard", "idle_overhang", "idle_divergence")
    assert sum(counts[name] for name in causes) == 3 * 32
    assert [counts[name] for name in (*causes, "idle_skipped")] == [40, 10, 16, 30, 16]


def test_nothing_is_divided_by_no_invocations():
    none = RunRecord(dict.fromkeys(NAMES, 0), 0, 64, 0, 32, 0)
    assert COUNTERS["simt_efficiency"].of_run(none) is COUNTERS["working_invocations"].of_run(none) is None


def test_readers_name_only_counters_of_the_table():
    named = {*BY_LINE, *(key for key, *_ in TOTALS), *(key for pair in CHARGES for key in pair[:2])}
    assert named <= set(COUNTERS)
    assert set(NAMES) <= set(COLUMNS)
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    assert re.search(r"^\| every counter of a place \|", page, re.MULTILINE)

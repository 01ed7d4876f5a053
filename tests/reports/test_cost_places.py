"""Where the cost of a run is: figures of kernels whose charges follow from their text."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.reports.cost_places import CostTotals, cost_places, line_shares

# 32 lanes store to a column of 32 words each: all in one bank, 32 wavefronts where one would do.
COLUMN = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 1024>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i * 32u] = f32(i);
    workgroupBarrier();
    y[i] = tile[i];
}
"""
STRIDED = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    y[i * 8u] = 1.0;
    y[i * 8u + 1u] = 2.0;
}
"""
DIVERGED = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    var sum = 0.0;
    for (var k = 0u; k < 8u; k++) {
        if i == 0u {
            sum += sqrt(f32(k));
        }
    }
    y[i] = sum;
}
"""
PACKED = STRIDED.replace("    y[i * 8u] = 1.0;\n", "").replace("i * 8u + 1u", "i")


def run(text, words=256):
    return bankshot.simulate(text, grid=1, bindings={"y": np.zeros(words, np.float32)}, probes="all")


def test_a_bank_conflict_is_named_with_its_line_its_share_and_what_helps():
    (place,) = (each for each in cost_places(run(COLUMN)) if each.resource == "excess wavefronts")
    assert (place.line, place.what, place.code) == (5, "store of tile", "tile[i * 32u] = f32(i);")
    assert (place.excess, place.share) == (31, 1.0)
    assert place.why == "32 wavefronts per request, where 1 would do"
    assert "`bankshot advise`" in place.help


def test_lines_with_one_cause_are_one_place():
    (place,) = cost_places(run(STRIDED))
    assert (place.resource, place.what, place.lines, place.share) == ("excess sectors", "store of y", 2, 1.0)
    assert place.excess == 2 * (32 - 4)  # a request touches 32 sectors, and its 128 bytes fill 4
    assert place.reason == "32 sectors per request, where 4 would do (and on 1 more line)"
    assert place.help == "let adjacent lanes access adjacent elements of y"


def test_each_cause_of_idle_lanes_is_one_place_on_the_line_where_most_idle():
    (place,) = cost_places(run(DIVERGED))
    assert (place.resource, place.what, place.line) == ("idle lanes", "lanes diverged", 7)
    assert place.why == "97% of the lanes are idle, diverged"


def test_the_lines_of_a_run_share_its_excess():
    assert {line: share for (_, line), share in line_shares(run(COLUMN)).items() if share} == {5: 1.0}
    assert {line: share for (_, line), share in line_shares(run(STRIDED)).items() if share} == {4: 0.5, 5: 0.5}
    assert set(line_shares(run(DIVERGED))) == {("shader.wgsl", 7)}
    assert line_shares(run(PACKED)) == {}


def test_a_kernel_without_excess_has_no_places():
    assert cost_places(run(PACKED)) == ()


def test_places_are_ranked_by_their_part_of_all_passes_and_limited():
    places = cost_places(run(COLUMN))
    assert [place.weight for place in places] == sorted((place.weight for place in places), reverse=True)
    assert all(0.01 <= place.weight <= 1 for place in places)
    assert len(cost_places(run(COLUMN), most=1)) == 1


def test_totals_of_cases_add_up_and_name_the_costliest_place():
    column, packed = CostTotals.of(run(COLUMN)), CostTotals.of(run(PACKED))
    both = CostTotals.together([packed, column])
    assert both.excess_wavefronts == column.excess_wavefronts == 31
    assert both.sectors == column.sectors + packed.sectors
    assert both.worst == column.worst is not None
    assert packed.weight == 0 < both.weight < column.weight


@pytest.fixture
def report(tmp_path):
    (tmp_path / "column.wgsl").write_text(COLUMN)

    def command(*options):
        given = ["audit", str(tmp_path / "column.wgsl"), "--bind", "y=zeros:f32:32", "--grid", "1", "--no-gpu"]
        return CliRunner().invoke(main, [*given, *options])

    return command


def test_every_full_report_opens_with_the_same_places(report, tmp_path):
    text = report("--html", str(tmp_path / "page.html")).stdout
    (case,) = json.loads(report("--json").stdout)["cases"]
    page = (tmp_path / "page.html").read_text()
    assert case["cost"][0]["why"] == "32 wavefronts per request, where 1 would do"
    assert {*case["cost"][0]} >= {"file", "line", "what", "share", "why", "help"}
    for shown, after in ((text, "workgroup memory wavefronts"), (page, "<h4>What passed</h4>")):
        places = [shown.index(place["why"]) for place in case["cost"]]
        assert places == sorted(places)
        assert max(places) < shown.index(after)


def test_the_worst_place_is_that_with_the_most_excess():
    both = COLUMN.replace("y[i] = tile[i];", "y[i] = tile[i * 2u];")  # 31 wavefronts in excess, and 1
    totals = CostTotals.of(run(both))
    assert totals.worst is not None
    assert (totals.worst.line, totals.worst.excess) == (5, 31)
    assert totals.worst_excess < totals.excess
    packed = CostTotals.of(run(PACKED))
    assert (packed.worst, packed.worst_excess) == (None, 0)

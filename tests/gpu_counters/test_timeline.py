"""Timelines of kernels, compared with expected ones written by hand, and files in Chrome's trace format."""

import json
from collections import defaultdict
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.gpu_counters import timeline as room
from bankshot.oracle.gpu_counters.timeline import Barrier, Slice, find_regions, record_timeline
from bankshot.oracle.judge.case_run import simulate
from bankshot.oracle.manifests.cases import Request, plans
from bankshot.oracle.reports import chrome_trace

# Half of `tile` is stored to while the other is loaded, in mirrored lanes.
DOUBLE = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 128>;
var<workgroup> sum: array<atomic<u32>, 2>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32, @builtin(workgroup_id) group: vec3<u32>) {
    tile[lane] = 1.0; if lane < 2u { atomicStore(&sum[lane], 0u); }
    workgroupBarrier();
    for (var k = 0u; k < 3u; k++) {
        if k < 2u { tile[(k + 1u) % 2u * 64u + lane] = f32(k); }
        y[group.x * 64u + lane] = tile[k % 2u * 64u + 63u - lane];
        workgroupBarrier();
    }
    if lane < 40u { atomicAdd(&sum[group.x], 1u); }
    storageBarrier();
    y[group.x * 64u + lane] += f32(atomicLoad(&sum[group.x]));
}
"""


def case_of(tmp_path, source=DOUBLE, grid=(2, 1, 1)):
    file = tmp_path / "known.wgsl"
    file.write_text(source)
    (plan,) = plans([file], Request(grid=grid, arrays={"y": np.zeros(128, np.float32)}))
    return plan.case(plan.shapes[0])


@pytest.fixture
def known(tmp_path):
    case = case_of(tmp_path)
    return case, simulate(case, "nvidia", "all")


def test_reads_and_writes_of_each_region_between_barriers(known):
    line = record_timeline(*known, (1, 0, 0))
    assert (line.regions, line.epochs, line.cut) == ({"tile": 2, "sum": 1}, 6, False)
    write, read = ("known.wgsl:6",), ("known.wgsl:10",)
    assert line.of("tile", 0) == [
        Slice("tile", 0, "write", 0, 64, write, 2),
        Slice("tile", 0, "read", 1, 64, read, 2),
        Slice("tile", 0, "write", 2, 64, ("known.wgsl:9",), 2),
        Slice("tile", 0, "read", 3, 64, read, 2),
    ]
    assert [(each.kind, each.epoch) for each in line.of("tile", 1)] == [("write", 1), ("read", 2)]
    assert line.of("sum", 0, "update") == [
        Slice("sum", 0, "update", 0, 2, ("known.wgsl:6",), 1),
        Slice("sum", 0, "update", 4, 40, ("known.wgsl:13",), 2),
        Slice("sum", 0, "update", 5, 64, ("known.wgsl:15",), 2),
    ]
    inner = [Barrier(epoch, "workgroupBarrier", "known.wgsl:11") for epoch in (1, 2, 3)]
    assert list(line.barriers) == [
        Barrier(0, "workgroupBarrier", "known.wgsl:7"),
        *inner,
        Barrier(4, "storageBarrier", "known.wgsl:14"),
    ]


def test_a_request_counts_in_each_region_for_the_lanes_there():
    """Of four lanes of a load, one reads the first half of an array, and two the other; the last is inactive."""
    site = SimpleNamespace(variable="tile", kind="load", span=SimpleNamespace(place=SimpleNamespace(file="k", line=3)))
    lanes = {"addresses": np.array([4, 8, 12, 0]), "active": np.array([True, True, True, False])}
    asked = [SimpleNamespace(site=site, subgroup=0, epoch=0, **lanes)]
    line = room.timeline(asked, {"tile": 16}, {"tile": 2})
    assert [line.of("tile", region) for region in (0, 1)] == [
        [Slice("tile", 0, "read", 0, 1, ("k:3",), 1)],
        [Slice("tile", 1, "read", 0, 2, ("k:3",), 1)],
    ]


def test_an_array_that_one_epoch_reads_across_is_one_region(tmp_path):
    case = case_of(tmp_path, DOUBLE.replace("k % 2u * 64u + 63u - lane", "127u - lane * 2u"))
    assert record_timeline(case, simulate(case, "nvidia", "all")).regions == {"tile": 1, "sum": 1}


def test_a_long_run_is_cut_after_its_last_complete_epoch(known, monkeypatch):
    monkeypatch.setattr(room, "MOST_ROWS", 300)  # 64 stores and 64 barriers; then 128 accesses, and part of 64 barriers
    line = record_timeline(*known)
    assert (line.cut, line.epochs) == (True, 1)
    assert {each.epoch for each in line.slices} == {0}


def test_a_workgroup_outside_the_grid_is_refused(known):
    with pytest.raises(UsageError, match=r"workgroup \(2, 0, 0\) is outside the grid \(2, 1, 1\)"):
        record_timeline(*known, (2, 0, 0))


# ---- the file ----------------------------------------------------------------------------------------


def run(tmp_path, *more):
    arguments = ["run", str(tmp_path / "known.wgsl"), "--grid", "2", "--bind", "y=zeros:f32:128", *map(str, more)]
    return CliRunner().invoke(main, arguments)


def written(tmp_path, *more):
    file = tmp_path / "line.json"
    out = run(tmp_path, "--timeline", file, *more)
    assert out.exit_code == 0, out.output
    return json.loads(file.read_text())


def test_the_file_follows_the_trace_event_format(known, tmp_path):
    """The rules of the format's specification: required fields by phase, numeric times, nesting on a thread."""
    trace = written(tmp_path, "--workgroup", "1")
    assert trace["displayTimeUnit"] in ("ms", "ns")
    threads = defaultdict(list)
    named = set()
    for event in trace["traceEvents"]:
        assert {"ph", "name", "pid", "tid"} <= event.keys()
        assert isinstance(event["pid"], int)
        assert isinstance(event["tid"], int)
        match event["ph"]:
            case "M":
                assert event["name"] in ("process_name", "thread_name")
                assert isinstance(event["args"]["name"], str)
                named.add((event["name"], event["pid"], event["tid"] if event["name"] == "thread_name" else 0))
            case "X":
                assert event["ts"] >= 0
                assert event["dur"] > 0
                threads[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
            case "i":
                assert event["ts"] >= 0
                assert event["s"] in ("g", "p", "t")
            case other:
                pytest.fail(f"no such phase is written: {other}")
    for (pid, tid), slices in threads.items():
        assert ("process_name", pid, 0) in named
        assert ("thread_name", pid, tid) in named
        ordered = sorted(slices)
        assert all(end <= start for (_, end), (start, _) in pairwise(ordered))
    assert sorted(tid for _, tid in threads) == [1, 2, 3]  # two slots of the one array, and the other


def test_the_file_matches_the_timeline(known, tmp_path):
    trace = written(tmp_path)
    events = trace["traceEvents"]
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert names == ["tile", "slot 0", "slot 1", "sum", "whole"]
    slices = [(e["pid"], e["tid"], e["name"], e["ts"] // chrome_trace.EPOCH) for e in events if e["ph"] == "X"]
    assert [s for s in slices if s[:2] == (1, 2)] == [(1, 2, "write", 1), (1, 2, "read", 2)]
    (first, *_) = (e for e in events if e["ph"] == "X")
    assert first["args"] == {"lanes": 64, "places": ["known.wgsl:6"], "requests": 2, "epoch": 0}
    assert [e["ts"] for e in events if e["ph"] == "i"] == [chrome_trace.EPOCH * n for n in range(1, 6)]
    assert trace["otherData"]["workgroup"] == [0, 0, 0]


def test_a_file_that_cannot_be_written_is_reported_before_the_run(known, tmp_path):
    out = run(tmp_path, "--timeline", tmp_path / "none" / "line.json")
    assert out.exit_code == 2
    assert "--timeline" in out.output
    assert "no folder" in out.output


def parts(*touched):
    """Requests of (epoch, kind, addresses); one more lane is not active."""
    return [
        SimpleNamespace(
            epoch=epoch, site=SimpleNamespace(kind=kind), addresses=np.array([*addresses, 0]),
            active=np.array([True] * len(addresses) + [False]),
        )
        for epoch, kind, addresses in touched
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "touched", "regions"),
    [
        (8, [(0, "store", (0, 3)), (1, "store", (4, 7))], 2),
        (8, [(0, "store", (0, 3)), (0, "load", (4, 7))], 2),  # one is read while the other is written
        (8, [(0, "store", (0, 4)), (1, "store", (4, 7))], 1),
        (8, [(0, "store", (0, 3)), (1, "store", (2, 3))], 1),  # one part is not used
        (9, [(0, "store", (0, 3)), (1, "store", (4, 7))], 1),  # no two equal parts
        (9, [(0, "store", (0, 2)), (1, "store", (3, 5)), (2, "store", (6, 8))], 3),
        (8, [(0, "store", ()), (1, "store", (4, 7)), (2, "store", (1,))], 2),
        (8, [], 1),
    ],
)
def test_the_parts_of_a_multiple_buffer(size, touched, regions):
    assert find_regions(parts(*touched), size) == regions

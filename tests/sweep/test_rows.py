"""Rows, journals and summaries of sweeps, from facts that are known by hand."""

import json
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from bankshot.oracle.errors import UsageError
from bankshot.oracle.sweep import columns, sweep_run, table_files, work
from bankshot.oracle.sweep.journal import Journal
from bankshot.oracle.sweep.sweep_command import SweepResult, summary, title, words

CLEAN, UNCHECKED, FAILED, ERROR = "clean", "unchecked", "failed", "error"


def row(verdict=CLEAN, key="a", why="", compared="reference", **sizes):
    dims = {f"dims.{name}": size for name, size in sizes.items()}
    return {"key": key, "kernel": "k", "device": "nvidia", "verdict": verdict, "why": why, "compared": compared, **dims}


# ---- summaries -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verdicts", "cases", "ok", "ran"),
    [
        ([CLEAN, CLEAN], 2, True, True),
        ([CLEAN, CLEAN], 3, False, True),  # interrupted
        ([CLEAN, FAILED], 2, False, True),
        ([CLEAN, UNCHECKED], 2, False, True),
        ([CLEAN, ERROR], 2, False, True),
        ([ERROR, ERROR], 2, False, False),
        ([FAILED], 1, False, True),
        ([], 0, False, False),
    ],
)
def test_whether_a_sweep_is_clean_and_ran(verdicts, cases, ok, ran):
    made = SweepResult(tuple(map(row, verdicts)), cases, 0, False)
    assert (made.ok, made.ran) == (ok, ran)


def test_titles_and_verdicts_of_rows():
    assert title(row(M=4, N=8)) == "k M=4 N=8 nvidia"
    assert words(row()) == "clean"
    assert words(row(FAILED, why="output: wrong\nmore")) == "failed, output: wrong\nmore"
    assert words(row(ERROR, why="no memory\nmore")) == "error, no memory"


SUMMARIES = {
    "clean": ([row()], {}, ["sweep: 1 of 1 cases clean; written to t.csv; compared with reference (1)"]),
    "all verdicts": (
        [row(), row(FAILED, why="x: y", N=4), row(UNCHECKED, why="z"), row(ERROR, why="none\nmore", compared=None),
         row(FAILED, why="w")],
        {"cases": 6, "kept": 2, "stopped": True},
        ["k N=4 nvidia: failed, x: y", "k nvidia: unchecked, z", "k nvidia: error, none", "k nvidia: failed, w",
         "sweep: 1 of 6 cases clean, 2 failed, 1 unchecked, 1 could not be run, 2 from the journal; written to t.csv; "
         "interrupted, run the same command to resume; compared with reference (4)"],
    ),
    "several truths": (
        [row(compared="reference, expected counters"), row(), row(compared="")], {},
        ["sweep: 3 of 3 cases clean; written to t.csv; compared with reference (2), expected counters (1)"],
    ),
    "nothing compared": (
        [row(UNCHECKED, compared="")], {},
        ["k nvidia: unchecked", "sweep: 0 of 1 cases clean, 1 unchecked; written to t.csv; nothing compared"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SUMMARIES)
def test_the_summary_of_a_sweep(name):
    rows, given, expected = SUMMARIES[name]
    made = SweepResult(tuple(rows), **{"cases": len(rows), "kept": 0, "stopped": False} | given)
    text = summary(made, Path("t.csv")).replace("; never compared with wgpu", "")
    assert text.splitlines() == expected


# ---- journals ------------------------------------------------------------------------------------------


def test_a_row_is_on_disk_before_the_next_case_runs(tmp_path, monkeypatch):
    """Written to the file first, so that a machine that loses power has it."""
    synced = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(os.fstat(number).st_size))
    journal = Journal(tmp_path / "journal")
    for key in ("a", "b"):
        journal.add({"key": key, "verdict": "clean"})
    assert synced == [33, 66]  # {"key": "a", "verdict": "clean"} and a line break


def test_a_journal_keeps_the_last_row_of_each_case(tmp_path):
    path = tmp_path / "t.rows"
    journal = Journal(path)
    assert journal.rows == {}
    for each in (row(key="a"), row(ERROR, key="b"), row(FAILED, key="a"), row(UNCHECKED, key="c")):
        journal.add(each)
    assert path.read_bytes().count(b"\n") == 4
    again = Journal(path)
    assert {key: each["verdict"] for key, each in again.rows.items()} == {"a": FAILED, "b": ERROR, "c": UNCHECKED}
    assert [again.done(key) and again.done(key)["verdict"] for key in "abcd"] == [FAILED, None, UNCHECKED, None]


@pytest.mark.parametrize("left", [b"", b'{"key": "x"', b"[1]\n", b'{"key": "x"}\n', b'{"verdict": "x"}'])
def test_a_journal_begins_a_line_after_what_a_crash_has_left(tmp_path, left):
    path = tmp_path / "t.rows"
    path.write_bytes(json.dumps(row(key="a")).encode() + b"\n" + left)
    Journal(path).add(row(key="b"))
    assert {*Journal(path).rows} == {"a", "b"}


def test_a_journal_that_cannot_be_opened(tmp_path):
    with pytest.raises(UsageError, match="cannot be used as a journal: "):
        Journal(tmp_path / "none" / "t.rows")


# ---- tables --------------------------------------------------------------------------------------------


def test_columns_have_the_sizes_after_the_identity():
    found = columns.columns([{"dims.N": 1, "other": 2}, {"dims.M": 3, "dims.N": 4}])
    assert [*found][:7] == ["key", "kernel", "source", "device", "dims.N", "dims.M", "grid"]
    assert (found["dims.N"], found["seconds"], found["key"], found["simt_efficiency"]) == (int, float, str, float)
    assert [*found][-2:] == ["seconds", "version"]
    assert "other" not in found
    untimed, timed = {"dims.N": 1}, dict.fromkeys(columns.TIMES)
    assert not columns.TIMES.keys() & columns.columns([untimed]).keys()
    assert [*columns.columns([untimed, timed])][-len(timed) :] == [*timed]


def test_a_table_has_a_name_that_says_its_format(tmp_path):
    with pytest.raises(UsageError, match=r"t.txt: the name of a table must end in .csv or .parquet"):
        table_files.check(tmp_path / "t.txt")
    table_files.check(tmp_path / "t.csv")
    with pytest.raises(UsageError):
        table_files.check(tmp_path / "none" / "t.csv")


# ---- sizes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4,N=4", "`4` must follow a name, as in N=4"),
        ("N=4,N=5", "N is given twice"),
        ("N=4:2", "`4:2` must go up from 0 or more, by 1 or more"),
        ("N=4:8:0", "`4:8:0` must go up from 0 or more, by 1 or more"),
        ("N=a", "`a` is not a size"),
        ("N=-1", "`-1` is not a size"),
        ("N=1:2:3:4", "`1:2:3:4` is not a size"),
        ("N=1234567890", "`1234567890` is not a size"),
        ("N=٣", "`٣` is not a size"),
    ],
)
def test_sizes_that_are_refused(text, message):
    with pytest.raises(UsageError, match=rf"^--dims {text}: {message}"):
        work.parse_dims(text)


def test_ranges_include_both_ends():
    assert work.parse_dims("N=1:3,8,M=0:10:5,123456789") == {"N": (1, 2, 3, 8), "M": (0, 5, 10, 123_456_789)}


# ---- groups --------------------------------------------------------------------------------------------


def case(key, device="nvidia", shape="N=4", plan="plan"):
    return SimpleNamespace(key=key, device=device, shape=shape, plan=plan)


def test_cases_share_a_run_where_only_the_device_differs_and_lanes_do_not(monkeypatch):
    monkeypatch.setattr(work, "find", lambda name: name)
    monkeypatch.setattr(work, "lanes_of", lambda device: ("wide",) if device.startswith("amd") else ("narrow",))
    made = [case("a"), case("b", "apple"), case("c", "amd"), case("d", shape="N=8"), case("e", plan="other"), case("a")]
    groups = [[each.key for each in group] for group in work.group_by_run(made)]
    assert groups == [["a", "b"], ["c"], ["d"], ["e"]]


def test_the_title_of_a_case():
    plan = SimpleNamespace(kernel=SimpleNamespace(name="scale"))
    assert work.SweepCase(plan, "N=4", "amd", "key").title == "scale N=4 amd"
    assert work.SweepCase(plan, "", "amd", "key").title == "scale amd"


def test_cases_that_share_a_run_share_its_seconds(monkeypatch):
    """12 seconds, in three cases."""
    times = iter([100.0, 112.0])
    monkeypatch.setattr(sweep_run, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    monkeypatch.setattr(sweep_run, "key_now", lambda case: case.key)
    made = []
    monkeypatch.setattr(
        sweep_run, "audit", lambda case, options: made.append(options) or SimpleNamespace(devices=("n", "a", "p"))
    )
    monkeypatch.setattr(sweep_run, "judged_as", lambda result, charged: f"as {charged}")
    monkeypatch.setattr(
        sweep_run, "row", lambda case, judged, seconds: (case.key, judged.audit, judged.charged, seconds)
    )
    plan = SimpleNamespace(case=lambda shape: shape)
    group = [case("x", "nvidia", plan=plan), case("y", "amd", plan=plan), case("z", "apple", plan=plan)]
    assert sweep_run._run(group) == [("x", "as n", "n", 4.0), ("y", "as a", "a", 4.0), ("z", "as p", "p", 4.0)]
    (options,) = made
    assert (options.device, options.also, options.gpu, options.golden) == ("nvidia", ("amd", "apple"), False, False)


def test_a_case_that_has_changed_does_not_run(monkeypatch):
    monkeypatch.setattr(sweep_run, "key_now", lambda case: "another")
    with pytest.raises(UsageError, match="have changed since the sweep was planned"):
        sweep_run._run([case("x")])


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (UsageError("no such file"), "no such file"),
        (MemoryError("4 GiB"), "out of memory (4 GiB)"),
        (MemoryError(), "out of memory (none is left)"),
        (KeyError("x"), "internal error: KeyError: 'x'"),
    ],
)
def test_errors_of_a_case_are_its_row(monkeypatch, error, why):
    tried = []

    def fails(group):
        tried.append([each.key for each in group])
        if any(each.key == "b" for each in group):
            raise error
        return [f"row of {each.key}" for each in group]

    monkeypatch.setattr(sweep_run, "_run", fails)
    monkeypatch.setattr(sweep_run, "failed", lambda case, why, seconds: (case.key, why, seconds >= 0))
    assert sweep_run.run([case("a"), case("b"), case("c")]) == ["row of a", ("b", why, True), "row of c"]
    assert tried == [["a", "b", "c"], ["a"], ["b"], ["c"]]

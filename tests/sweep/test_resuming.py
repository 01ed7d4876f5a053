"""The journal of a sweep: which rows it keeps, which cases run again, and what the key of a case depends on."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from bankshot.oracle.sweep import Journal, sweep, sweep_run, work
from bankshot.oracle.sweep.work import group_by_run
from tests.sweep.scaled_cases import MANIFEST, SHADER, Here, rows_of, table, wanted

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("folder")


def test_a_row_is_on_disk_when_add_returns():
    journal = Journal(Path("rows"))
    journal.add({"key": "one", "verdict": "clean"})
    assert json.loads(Path("rows").read_text()) == {"key": "one", "verdict": "clean"}


def test_no_more_processes_than_groups(monkeypatch):
    counts = []

    @contextmanager
    def here(count):
        counts.append(count)
        yield Here()

    monkeypatch.setattr(sweep_run, "processes", here)
    asked = wanted(N=(32, 40))
    groups = len(group_by_run(asked))
    rows_of(asked, executor=None, jobs=groups + 5)
    rows_of(asked, executor=None, jobs=1)
    assert counts == [groups, 1]


def test_finished_cases_do_not_run_again():
    asked, journal = wanted("nvidia", "amd", "apple", N=(32, 40)), Path("rows")
    whole = rows_of(asked)
    some = sweep(asked, Here(), journal=Journal(journal))
    first = [next(some), next(some)]
    some.close()
    assert len(journal.read_text().splitlines()) == 2
    executor = Here()
    assert rows_of(asked, executor=executor, journal=Journal(journal)) == whole
    # Four groups of two or one; the first two rows are one group, or one and a half.
    assert executor.groups == len(group_by_run(asked)) - sum(
        {case.key for case in group} <= {row["key"] for row in first} for group in group_by_run(asked)
    )
    assert rows_of(asked, executor=None, jobs=0, journal=Journal(journal)) == whole  # nothing is left to run


@pytest.mark.parametrize("cut", [1, 2, 40, -2, -1])
def test_an_incomplete_last_line_is_ignored(cut):
    """The journal is cut within its last line: after its first letters, before its last, and at its very end."""
    asked, journal = wanted(N=(32, 40, 64)), Path("rows")
    whole = rows_of(asked, journal=Journal(journal))
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
    executor = Here()
    assert rows_of(asked, executor=executor, journal=Journal(journal)) == whole
    assert executor.groups == (0 if cut == -1 else 1)  # without its line break a line is whole
    executor = Here()
    assert rows_of(asked, executor=executor, journal=Journal(journal)) == whole
    assert executor.groups == 0


@pytest.mark.parametrize("line", [b"\xff\xfe", b"null", b"[]", b"{}", b'{"key": 1}', b'"key verdict"', b""])
def test_lines_that_are_not_rows_are_ignored(line):
    asked, journal = wanted(N=(32,)), Path("rows")
    journal.write_bytes(line + b"\n")
    executor = Here()
    rows_of(asked, executor=executor, journal=Journal(journal))
    assert executor.groups == 1
    assert len(Journal(journal).rows) == 1


def test_failed_cases_run_again(monkeypatch):
    asked, journal = wanted(N=(32,)), Path("rows")
    with monkeypatch.context() as patch:
        patch.setattr("bankshot.oracle.sweep.sweep_run.audit", lambda *_: 1 / 0)
        assert rows_of(asked, journal=Journal(journal))[0]["verdict"] == "error"
    assert rows_of(asked, journal=Journal(journal))[0]["verdict"] == "clean"
    assert rows_of(asked, executor=None, jobs=0, journal=Journal(journal))[0]["verdict"] == "clean"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("scale.wgsl", "2.0 * tile", "3.0 * tile"),
        ("scale.toml", 'init = "normal"', 'init = "ones"'),
        ("scale.toml", "[expect]", "[expect]\nflops = 1"),
    ],
)
def test_a_case_that_has_changed_is_another_case(name, old, new):
    (before,) = wanted(N=(32,))
    text = Path(name).read_text()
    assert old in text
    Path(name).write_text(text.replace(old, new))
    (after,) = wanted(N=(32,))
    assert before.key != after.key


def test_files_beside_a_manifest_are_in_the_key(folder):
    """Data, and a user-defined reference."""
    own = MANIFEST.replace("[bind.x]", 'reference = "twice.py:twice"\n\n[bind.x]').replace(
        'init = "normal"', 'file = "x.npy"'
    )
    Path("scale.toml").write_text(own)
    files = (("x.npy", b"ones", b"twos"), ("twice.py", b"2.0", b"3.0"), ("scale.wgsl", SHADER.encode(), b"fn f() {}"))
    for name, before, _ in files:
        Path(name).write_bytes(before)
    known = {wanted(N=(32,))[0].key}
    for name, _, after in files:
        Path(name).write_bytes(after)
        known.add(wanted(N=(32,))[0].key)
    assert len(known) == 4
    Path("x.npy").unlink()  # the row says that it is missing
    known.add(wanted(N=(32,))[0].key)
    assert len(known) == 5


def test_facts_that_do_not_determine_a_row_are_not_in_the_key(monkeypatch):
    (before,) = wanted(N=(32,))
    Path("scale.toml").write_text(MANIFEST.replace("N = [32, 64]", "N = [32, 128]"))
    assert wanted(N=(32,))[0].key == before.key
    Path("scale.toml").write_text(MANIFEST.replace("[expect]", '[expect]\ngpu = { y = { rule = "ulp", max = 3 } }'))
    assert wanted(N=(32,))[0].key == before.key
    monkeypatch.setattr("bankshot.oracle.sweep.work.version", lambda: "0.1.0+other")
    assert wanted(N=(32,))[0].key != before.key


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (frozenset((0, 8)), frozenset((8, 0)), True),  # they iterate in different orders
        ({"a": frozenset((0, 8)), "b": 1}, {"b": 1, "a": frozenset((8, 0))}, True),
        (frozenset((frozenset((0, 8)), 1)), frozenset((1, frozenset((8, 0)))), True),
        (frozenset((0, 8)), frozenset((0, 9)), False),
        (frozenset((1,)), {1: 1}, False),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {"b": 1}, False),
        (1, 1.0, False),
        ("1", 1, False),
    ],
)
def test_equal_facts_have_the_same_text(one, other, same):
    assert (work._plain(one) == work._plain(other)) == same


def test_contents_of_bindings_differ_by_type_shape_and_bytes():
    zeros = np.zeros((2, 3), np.float32)
    given = [
        zeros,
        zeros.astype(np.int32),
        zeros.reshape(3, 2),
        zeros + 1,
        [zeros],
        [zeros, zeros],
        {},
        {"compare": "less"},
    ]
    assert len({work._contents(each) for each in given}) == len(given)
    assert [work._contents(each) for each in (zeros.copy(), [zeros.copy()])] == [
        work._contents(zeros), work._contents([zeros]),
    ]  # fmt: skip


def test_a_shader_that_changes_during_a_sweep_fails():
    asked = wanted(N=(32,))
    Path("scale.wgsl").write_text(SHADER.replace("2.0", "3.0"))
    (row,) = rows_of(asked)
    assert (row["verdict"], "have changed since the sweep was planned" in row["why"]) == ("error", True)


def lines_of(journal):
    return len(journal.read_text().splitlines()) if journal.exists() else 0


@pytest.mark.skipif(os.name != "posix", reason="sends SIGINT, which only POSIX has")
def test_an_interrupted_sweep_keeps_its_rows_and_resumes():
    dims = "N=32:1024:32"
    command = [sys.executable, "-m", "bankshot", "sweep", "scale.toml", "--dims", dims, "--jobs", "1", "--out", "t.csv"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    journal, start = Path("t.csv.rows"), time.monotonic()
    while lines_of(journal) < 2 and time.monotonic() - start < 120:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "interrupted, run the same command to resume" in said
    done = [row["dims.N"] for row in table("t.csv")]
    assert 2 <= len(done) < 32
    done_process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done_process.returncode == 0, done_process.stderr
    assert f"32 of 32 cases clean, {lines_of(journal) - 32 + len(done)} from the journal" in done_process.stdout
    assert [row["dims.N"] for row in table("t.csv")] == [str(n) for n in range(32, 1025, 32)]

"""Sweeps: figures computed by hand, resuming after an interruption, and rows for failures."""

import csv
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.sweep import COLUMNS, Journal, cases, parse_dims, processes, sweep, sweep_run, table_files, work
from bankshot.oracle.sweep.columns import columns
from bankshot.oracle.sweep.work import group_by_run
from bankshot.oracle.workers import progress
from bankshot.sim.launch.threads import processors
from tests.scaling import manifest

ROOT = Path(__file__).parents[2]

# 32 invocations of each workgroup; x is doubled up to its end. The second store of the `racy` kernel is everybody's.
SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(32)
fn scale(@builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) i: u32) {
    if id.x >= arrayLength(&x) { return; }
    tile[2u * i] = x[id.x];
    y[id.x] = 2.0 * tile[2u * i];
#ifdef RACY
    y[0] = f32(i);
#endif
}
"""
EXPECT = '\n[expect]\nunchecked = { y = "costs are swept" }\n'
MANIFEST = manifest('\n[[sweep]]\nN = [32, 64]\n\n[[sweep]]\nN = 96\ncost = "heavy"\n', EXPECT)
RACY = MANIFEST.replace("[bind.x]", "defines = { RACY = 1 }\n\n[bind.x]")


class Here(Executor):
    """An executor that runs each call immediately, in this process, and records it."""

    def __init__(self):
        self.groups = 0

    def submit(self, function, /, *arguments, **named):
        self.groups += 1
        future = Future()
        try:
            future.set_result(function(*arguments, **named))
        except Exception as error:
            future.set_exception(error)
        return future


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scale.wgsl").write_text(SHADER)
    (tmp_path / "scale.toml").write_text(MANIFEST)
    return tmp_path


def wanted(*devices, path="scale.toml", **dims):
    return cases([path], dims=dims, devices=devices or ("nvidia",))


def rows_of(asked, **options):
    """Return the rows in the order of their cases, without the columns that differ from run to run."""
    rows = {row["key"]: row for row in sweep(asked, **{"executor": Here(), **options})}
    return [{name: value for name, value in rows[case.key].items() if name != "seconds"} for case in asked]


def bankshot(*arguments):
    return CliRunner().invoke(main, ["sweep", *map(str, arguments)])


# ---- cases -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("M=64:512:128,N=768", {"M": (64, 192, 320, 448), "N": (768,)}),
        ("M=1,63,64,N=2:4", {"M": (1, 63, 64), "N": (2, 3, 4)}),
        ("K=5", {"K": (5,)}),
        ("BEGIN=0:2", {"BEGIN": (0, 1, 2)}),
        ("K=1,8:16:4", {"K": (1, 8, 12, 16)}),
        ("M=0", {"M": (0,)}),
        ("M=3:3", {"M": (3,)}),
        ("M=3:8:5", {"M": (3, 8)}),
        ("M=3:7:5", {"M": (3,)}),
        (" M = 2, 4 ", {"M": (2, 4)}),
    ],
)
def test_sizes(text, sizes):
    assert parse_dims(text) == sizes


@pytest.mark.parametrize(
    "text", ["", "M", "64,M=3", "M=", "M=1,", "M=a", "M=4:2", "M=1:4:0", "M=1,M=2", "M=-1", "M=1:2:3:4"]
)
def test_invalid_sizes_are_refused(text):
    with pytest.raises(UsageError, match="--dims"):
        parse_dims(text)


def test_every_combination_of_kernels_sizes_and_devices():
    asked = cases(["scale.toml"], dims={"N": (32, 40)}, devices=("nvidia", "amd"))
    assert [case.title for case in asked] == [
        "scale N=32 nvidia", "scale N=32 amd-rdna", "scale N=40 nvidia", "scale N=40 amd-rdna"
    ]  # fmt: skip
    assert len({case.key for case in asked}) == 4


def test_without_sizes_the_shapes_of_the_manifest_run(monkeypatch):
    monkeypatch.setattr(progress, "PERIOD", 0.0)
    assert [case.shape.dims["N"] for case in cases(["scale.toml"])] == [32, 64, 96]
    quick = bankshot("scale.toml", "--out", "t.csv", "--jobs", "1")
    assert quick.exit_code == 0, quick.output
    assert [row["dims.N"] for row in table("t.csv")] == ["32", "64"]
    assert "2 of 2 cases clean; written to t.csv" in quick.stdout
    whole = bankshot("scale.toml", "--out", "t.csv", "--heavy", "--jobs", "1")
    assert [row["dims.N"] for row in table("t.csv")] == ["32", "64", "96"]
    assert "3 of 3 cases clean, 2 from the journal" in whole.stdout
    assert whole.stderr.splitlines() == ["[1/1] scale N=96 nvidia: clean"]  # cases from the journal show no progress


def test_a_shader_without_a_manifest(folder):
    """The data given for it are part of the key."""
    (folder / "scale.toml").unlink()
    given = ["scale.wgsl", "--grid", "2", "--device", "nvidia,amd", "--jobs", "1", "--out", "t.csv"]
    for data, known in (("ones", ""), ("ones", ", 2 from the journal"), ("zeros", "")):
        result = bankshot(*given, "--bind", f"x={data}:f32:64", "--bind", "y=zeros:f32:64")
        assert f"2 of 2 cases clean{known}; written" in result.stdout, result.output
    assert [row["flops"] for row in table("t.csv")] == ["64", "64"]
    result = bankshot(*given, "--bind", "x=ones:f32:64", "--bind", "y=zeros:f32:64", "--dims", "N=1")
    assert (result.exit_code, "has no dims" in result.stderr) == (2, True)


def test_wrong_options_are_reported_before_anything_runs(folder):
    def refused(message, *arguments):
        result = bankshot(*arguments)
        assert (result.exit_code, result.stdout) == (2, ""), result.output
        assert message in result.stderr

    refused("the name of a table must end in .csv or .parquet", "scale.toml", "--out", "t.txt")
    refused("there is no folder none", "scale.toml", "--out", "none/t.csv")
    refused("no dimension is named M; there are N", "scale.toml", "--dims", "M=1", "--out", "t.csv")
    refused("there is no device 'gpu'", "scale.toml", "--device", "gpu", "--out", "t.csv")
    refused("--dims: N is given 2 times", "scale.toml", "--dims", "N=1", "--dims", "N=2", "--out", "t.csv")
    (folder / "t.csv.rows").mkdir()
    refused("t.csv.rows: cannot be used as a journal", "scale.toml", "--out", "t.csv")


# ---- rows --------------------------------------------------------------------------------------------


def test_figures():
    """N = 40: two workgroups of 32, of the second 8 invocations pass the guard. x and y: 4 bytes each; a sector has 32
    bytes on NVIDIA and 64 on RDNA. Words two apart in workgroup memory: lanes 0 and 16 share a bank."""
    nvidia, amd = rows_of(wanted("nvidia", "amd", N=(40,)))
    assert (nvidia["kernel"], nvidia["device"], nvidia["dims.N"], nvidia["grid"]) == ("scale", "nvidia", 40, "2x1x1")
    assert (nvidia["workgroups"], nvidia["invocations"], nvidia["flops"]) == (2, 64, 40)
    assert nvidia["workgroup_memory_bytes"] == 256
    assert nvidia["working_invocations"] == 40 / 64
    assert (nvidia["global_bytes"], nvidia["intensity"]) == (320, 40 / 320)
    assert (nvidia["global_sectors"], nvidia["sector_bytes"], nvidia["excess_sectors"]) == (10, 320, 0)
    assert (amd["global_sectors"], amd["sector_bytes"]) == (2 * 3, 6 * 64)
    # A store and a load of 32 lanes take two wavefronts, of 8 lanes one.
    assert (nvidia["shared_wavefronts"], nvidia["shared_ideal_wavefronts"]) == (6, 4)
    assert (nvidia["excess_wavefronts"], amd["excess_wavefronts"]) == (2, 2)
    assert (nvidia["findings"], nvidia["verdict"], nvidia["why"]) == (0, "clean", "")


def test_findings_are_in_the_row(folder):
    (folder / "racy.toml").write_text(RACY)
    (row,) = rows_of(wanted(path="racy.toml", N=(32,)))
    assert (row["verdict"], row["findings"], row["accepted"]) == ("failed", 1, 0)
    assert row["why"].startswith("race: ")
    (folder / "racy.toml").write_text(RACY + 'allow = ["race"]\nflops = 31\n')
    (row,) = rows_of(wanted(path="racy.toml", N=(32,)))
    assert (row["verdict"], row["findings"], row["accepted"]) == ("failed", 0, 1)
    assert row["why"].startswith("counter: flops")


def test_devices_that_execute_the_same_lanes_share_a_run():
    """RDNA and Apple share one, and each gets what it would get alone; expectations are checked for each device."""
    Path("scale.toml").write_text(MANIFEST + "global_sectors = 6\n")
    names = ("amd", "apple", "nvidia", "intel")
    asked = wanted(*names, N=(40,))
    assert [[case.device for case in group] for group in group_by_run(asked)] == [
        ["amd-rdna", "apple"], ["nvidia"], ["intel"]
    ]  # fmt: skip
    alone = [rows_of(wanted(name, N=(40,)))[0] for name in names]
    assert rows_of(asked) == alone
    assert [row["verdict"] for row in alone] == ["clean", "failed", "failed", "clean"]


def test_a_row_has_exactly_the_columns():
    (row,) = rows_of(wanted(N=(32,)))
    assert {*row, "seconds"} == {*COLUMNS, "dims.N"} == set(columns([row]))
    for name, value in row.items():
        assert isinstance(value, COLUMNS.get(name, int)), name


# ---- failures ----------------------------------------------------------------------------------------


def test_cases_that_fail_are_rows(folder):
    """A shader with an error; a device that lacks what an entry point asks for, beside one that has it."""
    (folder / "wrong.wgsl").write_text(SHADER.replace("2.0 *", "2u *"))
    (folder / "wrong.toml").write_text(MANIFEST.replace("scale.wgsl", "wrong.wgsl"))
    text = SHADER.replace("@workgroup_size(32)", "@workgroup_size(64) @subgroup_size(64)").replace("64>", "128>")
    (folder / "wide.wgsl").write_text(f"enable subgroups;\nenable subgroup_size_control;\n{text}")
    (folder / "wide.toml").write_text(MANIFEST.replace("scale.wgsl", "wide.wgsl"))
    asked = [*wanted(path="wrong.toml", N=(32,)), *wanted("amd", "apple", path="wide.toml", N=(32,)), *wanted(N=(32,))]
    wrong, amd, apple, good = rows_of(asked)
    assert (wrong["verdict"], wrong["flops"], wrong["device"]) == ("error", None, "nvidia")
    assert "wrong.wgsl:8:18: error:" in wrong["why"]
    assert (amd["verdict"], amd["subgroup_size"]) == ("clean", 64)
    assert apple["verdict"] == "error"
    assert "requests subgroups of 64" in apple["why"]
    assert good["verdict"] == "clean"


def test_internal_errors_and_errors_of_executors_are_rows(monkeypatch):
    def broken(*_):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("bankshot.oracle.sweep.sweep_run.audit", broken)
    assert [row["why"] for row in rows_of(wanted(N=(32,)))] == ["internal error: ZeroDivisionError: oh"]
    monkeypatch.setattr("bankshot.oracle.sweep.sweep_run.run", broken)
    assert [row["why"] for row in rows_of(wanted(N=(32,)))] == ["the executor failed: ZeroDivisionError: oh"]


def test_a_process_that_dies_affects_no_other_case(folder):
    """The preprocessor of one kernel kills the worker that calls it, but not the process that plans the sweep."""
    (folder / "deadly.py").write_text(
        "import os, sys, pathlib, signal\n"
        "parent = os.getppid()\n"
        "if b'spawn_main' in pathlib.Path(f'/proc/{parent}/cmdline').read_bytes():\n"
        "    os.kill(parent, signal.SIGKILL)\n"
        "sys.stdout.write(sys.stdin.read())\n"
    )
    if not Path("/proc/self/cmdline").exists():
        pytest.skip("needs Linux's /proc to tell a worker from the process that started it")
    command = f"{sys.executable} deadly.py"
    (folder / "deadly.toml").write_text(MANIFEST.replace("[bind.x]", f"preprocess = {command!r}\n\n[bind.x]", 1))
    asked = [*wanted(N=(32,)), *wanted(path="deadly.toml", N=(32,)), *wanted(N=(40, 64))]
    rows = rows_of(asked, executor=None, jobs=2)
    assert [row["verdict"] for row in rows] == ["clean", "error", "clean", "clean"]
    assert "the process that ran it died" in rows[1]["why"]


def test_workers_share_the_processors(monkeypatch):
    monkeypatch.setenv("BANKSHOT_THREADS", "5")
    with processes(2) as executor:
        assert executor.submit(processors).result() == 2
    monkeypatch.setenv("BANKSHOT_THREADS", "many")
    (row,) = rows_of(wanted(N=(32,)))
    assert row["why"] == "error: BANKSHOT_THREADS is 'many'; it must be a positive integer"


# ---- resuming ----------------------------------------------------------------------------------------


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


# ---- tables ------------------------------------------------------------------------------------------


def table(path):
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_csv_file_has_the_values_of_the_rows(folder):
    (folder / "wrong.toml").write_text(MANIFEST.replace("scale.wgsl", "wrong.wgsl"))
    (folder / "wrong.wgsl").write_text("fn f( {\n")
    result = bankshot(".", "--dims", "N=32", "--out", "t.csv", "--jobs", "1", "--json")
    assert result.exit_code == 1, result.output
    rows = json.loads(result.stdout)["cases"]
    read = table("t.csv")
    assert [row["verdict"] for row in read] == ["clean", "error"]
    for row, line in zip(rows, read, strict=True):
        assert {k: "" if v is None else str(v) for k, v in row.items()} == line


def test_a_sweep_in_which_nothing_could_run_is_wrong_use(folder):
    Path("scale.wgsl").write_text("fn f( {\n")
    result = bankshot("scale.toml", "--dims", "N=32", "--out", "t.csv", "--jobs", "1")
    assert result.exit_code == 2, result.output
    Path("scale.toml").write_text(MANIFEST.replace("[32, 64]", '[32, 64]\ncost = "heavy"'))
    nothing = bankshot("scale.toml", "--out", "heavy.csv", "--jobs", "1")
    assert (nothing.exit_code, "0 of 0 cases clean" in nothing.stdout) == (2, True)


@pytest.mark.skipif(find_spec("pyarrow") is None, reason="no pyarrow; pip install 'bankshot[sweep]'")
def test_parquet_keeps_types():
    from pyarrow import parquet

    rows = list(sweep(wanted("nvidia", "amd", N=(32, 40)), Here()))
    rows[0]["flops"] = None
    table_files.write(Path("t.parquet"), rows)
    read = parquet.read_table("t.parquet")
    assert read.to_pylist() == rows
    types = {name: str(read.schema.field(name).type) for name in ("dims.N", "flops", "intensity", "verdict")}
    assert types == {"dims.N": "int64", "flops": "int64", "intensity": "double", "verdict": "string"}


def test_parquet_without_pyarrow(monkeypatch):
    monkeypatch.setattr(table_files, "find_spec", lambda name: None)
    result = bankshot("scale.toml", "--out", "t.parquet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "pip install 'bankshot[sweep]'" in result.stderr


def test_a_table_that_cannot_be_written_leaves_the_old_one(monkeypatch):
    def full(path, rows):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    Path("t.csv").write_text("old")
    monkeypatch.setitem(table_files.WRITERS, ".csv", full)
    with pytest.raises(UsageError, match="No space left"):
        table_files.write(Path("t.csv"), [])
    assert Path("t.csv").read_text() == "old"
    assert sorted(path.name for path in Path().iterdir()) == ["scale.toml", "scale.wgsl", "t.csv"]


# ---- more than one machine ---------------------------------------------------------------------------


@pytest.mark.skipif(find_spec("distributed") is None, reason="no Dask; pip install 'bankshot[sweep]'")
def test_dask_workers_return_the_same_rows(monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    asked = ["scale.toml", "--dims", "N=32,40", "--device", "nvidia,amd"]
    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster:
        result = bankshot(*asked, "--dask", cluster.scheduler_address, "--out", "dask.csv")
    assert result.exit_code == 0, result.output
    assert bankshot(*asked, "--jobs", "1", "--out", "here.csv").exit_code == 0
    there, here = table("dask.csv"), table("here.csv")
    for row in (*there, *here):
        del row["seconds"]
    assert there == here
    assert len(there) == 4


@pytest.mark.skipif(find_spec("distributed") is None, reason="no Dask; pip install 'bankshot[sweep]'")
def test_an_unreachable_scheduler_is_reported(monkeypatch):
    monkeypatch.setattr("bankshot.oracle.sweep.sweep_command.PATIENCE", 0.5)
    result = bankshot("scale.toml", "--dask", "tcp://127.0.0.1:9", "--out", "t.csv")
    assert (result.exit_code, result.stdout) == (2, ""), result.output
    assert "--dask tcp://127.0.0.1:9: no scheduler could be reached" in result.stderr


def test_missing_dask_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = bankshot("scale.toml", "--dask", "tcp://127.0.0.1:9", "--out", "t.csv")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--dask needs dask.distributed; pip install 'bankshot[sweep]'" in result.stderr


def test_kernels_that_lack_a_dim_are_skipped_with_a_word(folder):
    other = (folder / "scale.toml").read_text().replace("N", "M")
    (folder / "other.toml").write_text(other)
    result = bankshot(".", "--dims", "N=32", "--jobs", "1", "--out", "t.csv")
    assert result.exit_code == 0, result.output
    assert "other: skipped, as it has no dim N" in result.stderr.splitlines()
    assert [row["kernel"] for row in table("t.csv")] == ["scale"]


@pytest.mark.parametrize(
    ("reference", "own"),
    [(None, []), ("matmul", []), ("own.py:product", ["own.py"]), ("refs/a:b.py:two", ["refs/a:b.py"])],
)
def test_the_files_that_a_result_depends_on(reference, own):
    """Data of bindings, and the file of a reference that is not built in."""
    bindings = [SimpleNamespace(file=file) for file in (None, Path("x.npy"), Path("y.npy"))]
    kernel = SimpleNamespace(bindings=bindings, reference=reference, path=Path("kernels/k.toml"))
    files = [file.as_posix() for file in work._files(kernel)]
    assert files == ["x.npy", "y.npy", *(f"kernels/{name}" for name in own)]

"""Sweeps: figures computed by hand, rows for failures, tables, and workers on other machines."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.sweep import COLUMNS, cases, parse_dims, processes, sweep, table_files, work
from bankshot.oracle.sweep.columns import columns
from bankshot.oracle.sweep.work import group_by_run
from bankshot.oracle.workers import progress
from bankshot.sim.launch.threads import processors
from tests.sweep.scaled_cases import MANIFEST, RACY, SHADER, Here, rows_of, table, wanted

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.usefixtures("folder")


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


# ---- tables ------------------------------------------------------------------------------------------


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

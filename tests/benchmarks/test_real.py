"""The benchmark of other people's kernels."""

import os
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.errors import LIMIT, DriverDied, UsageError
from bankshot.sim.run import prepared
from benchmarks import real
from benchmarks.real import Row, some, summary
from benchmarks.real_page import PARTS, Explained, Source, page, read_sources

DOUBLE = """@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 2.0 * x[id.x]; }
"""
LONG = DOUBLE.replace(
    "y[id.x] = 2.0", "var v = 0u; for (var k = 0u; k < 200000u; k++) { v = v * 3u + k; } y[id.x] = f32(v)"
)
NOTHING = "@compute @workgroup_size(64) fn main() {}"


@pytest.fixture(autouse=True)
def limit(monkeypatch):
    """The command sets the limit of the process that runs wgpu; this puts it back."""
    monkeypatch.setenv(LIMIT, "300")


def rows(*ratios):
    """Rows of kernels that take a second on wgpu."""
    return [Row("k.wgsl", "main", 1.0, {"plain": n, "counters": 2 * n, "all": 4 * n}) for n in ratios]


def test_the_summary_has_the_median_the_90th_and_the_worst():
    """Of 1 to 20, the median is 10.5, and 18 of 20 are at most 18."""
    lines = summary(rows(*range(20, 0, -1)), Counter({"not valid": 3}))
    assert lines[0] == "20 entry points; simulator's time / wgpu's"
    assert lines[2].split() == ["plain", "10.50", "18.00", "20.00"]
    assert lines[4].split() == ["all", "42.00", "72.00", "80.00"]
    assert lines[5] == "left out: 3 not valid"


@pytest.mark.parametrize(
    ("workgroups", "wanted"),
    [
        (1, {0: (), 1: (1,), 2: (1, 1), 3: (1, 1, 1)}),
        (128, {0: (), 1: (128,), 2: (16, 8), 3: (8, 4, 4)}),
        (2048, {0: (), 1: (2048,), 2: (64, 32), 3: (16, 16, 8)}),
    ],
)
def test_a_grid_has_so_many_workgroups_on_as_many_axes_as_are_read(workgroups, wanted):
    assert real.grids(workgroups) == wanted


def test_a_ratio_is_the_time_of_the_simulator_in_times_of_wgpu():
    row = Row("k.wgsl", "main", 0.5, {"plain": 0.25, "counters": 1.0, "all": 2.0})
    assert [row.ratio(name) for name in real.PROBES] == [0.5, 2.0, 4.0]


@pytest.mark.usefixtures("lavapipe")
def test_a_folder_is_timed_and_what_is_left_out_is_named(tmp_path, monkeypatch):
    """A row for what runs; the reason for what does not; the same figures in the JSON and on the page."""
    monkeypatch.setattr(prepared, "WORK", 1 << 20)
    for name, text in {"double": DOUBLE, "nothing": NOTHING, "wrong": "fn", "long": LONG}.items():
        (tmp_path / f"{name}.wgsl").write_text(text)
    monkeypatch.setattr(real, "OUTPUT", tmp_path / "output")
    page = tmp_path / "page.md"
    done = CliRunner().invoke(real.main, [str(tmp_path), "--rounds", "1", "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "1 entry points" in done.stdout
    assert "left out: 1 not valid" in done.stdout
    assert "left out: 1 no output changed" in done.stdout
    assert "left out: 1 not ended within the default budget" in done.stdout
    assert "double.wgsl:main" in page.read_text()
    assert '"entry": "main"' in (tmp_path / "output" / "real.json").read_text()


@pytest.mark.usefixtures("lavapipe")
def test_the_page_names_repositories_and_explains_the_slowest(tmp_path, monkeypatch):
    (tmp_path / "cloned").mkdir()
    (tmp_path / "cloned" / "double.wgsl").write_text(DOUBLE)
    (tmp_path / "sources").write_text("cloned someone/kernels 0123abc\n")
    monkeypatch.setattr(real, "OUTPUT", tmp_path / "output")
    into = tmp_path / "page.md"
    options = ["--rounds", "1", "--sources", str(tmp_path / "sources"), "--page", str(into)]
    done = CliRunner().invoke(real.main, [str(tmp_path), *options])
    assert done.exit_code == 0, done.output
    text = into.read_text()
    assert "| [someone/kernels](https://github.com/someone/kernels) | `0123abc` | 1 |" in text
    assert "## The slowest 1, explained" in text
    (slowest,) = [line for line in text.partition("explained")[2].splitlines() if line.startswith("| someone")][:-1]
    cells = slowest.split("|")
    assert cells[1] == " someone/kernels `double.wgsl:main` "
    assert "**" in slowest
    assert cells[-3:] == [" 100% ", " none ", ""]
    assert "not part of this one; all shaders." in text
    assert "2.0 * x" not in text  # no line of the shader


def test_the_largest_part_is_bold_and_findings_are_counted():
    seconds = dict.fromkeys(PARTS, 0.001) | {"verdicts": 0.002}
    each = Explained(rows(1)[0], seconds, {"race": 3}, 0.25)
    conditions = {"cores": 2, "processor": "p", "python": "3", "load": 0, "adapter": "a", "workgroups": 128,
                  "chosen": "all shaders"}  # fmt: skip
    lines = list(page(rows(1), ["1 entry points"], [each], [], conditions))
    assert "| `k.wgsl:main` | 4.00 | 1.00 | 1.00 | 1.00 | **2.00** | 1.00 | 25% | 3 race |" in lines
    assert not any(line.startswith("| repository") for line in lines)


def test_at_most_so_many_shaders_of_a_folder_evenly_spaced():
    assert [some(range(n), 4) for n in (0, 3, 4, 10)] == [range(0), range(3), range(4), range(0, 10, 3)]
    assert some(range(10), None) == range(10)


def test_sources_are_a_folder_a_name_and_a_commit(tmp_path):
    (tmp_path / "sources").write_text("a/b me/it 12\n\n")
    assert read_sources(tmp_path / "sources") == [Source((tmp_path / "a" / "b").resolve(), "me/it", "12")]
    for folder in (tmp_path, tmp_path / "a" / "b", tmp_path / "a" / "b" / "shaders"):
        assert len(read_sources(tmp_path / "sources", [folder])) == 1
    with pytest.raises(UsageError, match=r"sources: no line is for .*; folders are relative to the file"):
        read_sources(tmp_path / "sources", [tmp_path / "a", tmp_path / "b"])
    (tmp_path / "sources").write_text("a me/it 12\na me/it\n")
    with pytest.raises(UsageError, match="sources:2: a line must be FOLDER OWNER/NAME COMMIT"):
        read_sources(Path(tmp_path / "sources"))


@pytest.mark.usefixtures("lavapipe")
def test_a_kernel_that_takes_wgpu_too_long_is_left_out(tmp_path, monkeypatch):
    (tmp_path / "double.wgsl").write_text(DOUBLE)
    limits = []

    def on_wgpu(case, repeats):
        limits.append(os.environ[LIMIT])
        raise DriverDied("did not answer for 7 s")

    monkeypatch.setattr(real.Timed, "on_wgpu", on_wgpu)
    done = CliRunner().invoke(real.main, [str(tmp_path), "--patience", "7"])
    assert "double.wgsl:main: left out: wgpu takes too long, or its driver dies" in done.stderr
    assert limits == ["7"]


@pytest.mark.usefixtures("lavapipe")
def test_a_folder_without_shaders_is_an_error(tmp_path):
    done = CliRunner().invoke(real.main, [str(tmp_path)])
    assert done.exit_code == 2
    assert "no WGSL found" in done.output

"""The benchmark of other people's kernels."""

from collections import Counter

import pytest
from click.testing import CliRunner

from benchmarks import real
from benchmarks.real import Row, summary

DOUBLE = """@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) { y[id.x] = 2.0 * x[id.x]; }
"""
NOTHING = "@compute @workgroup_size(64) fn main() {}"


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


def test_a_ratio_is_the_time_of_the_simulator_in_times_of_wgpu():
    row = Row("k.wgsl", "main", 0.5, {"plain": 0.25, "counters": 1.0, "all": 2.0})
    assert [row.ratio(name) for name in real.PROBES] == [0.5, 2.0, 4.0]


@pytest.mark.usefixtures("lavapipe")
def test_a_folder_is_timed_and_what_is_left_out_is_named(tmp_path, monkeypatch):
    """A row for what runs; the reason for what does not; the same figures in the JSON and on the page."""
    for name, text in {"double": DOUBLE, "nothing": NOTHING, "wrong": "fn"}.items():
        (tmp_path / f"{name}.wgsl").write_text(text)
    monkeypatch.setattr(real, "OUTPUT", tmp_path / "output")
    page = tmp_path / "page.md"
    done = CliRunner().invoke(real.main, [str(tmp_path), "--rounds", "1", "--page", str(page)])
    assert done.exit_code == 0, done.output
    assert "1 entry points" in done.stdout
    assert "left out: 1 not valid" in done.stdout
    assert "left out: 1 no output changed" in done.stdout
    assert "double.wgsl:main" in page.read_text()
    assert '"entry": "main"' in (tmp_path / "output" / "real.json").read_text()


@pytest.mark.usefixtures("lavapipe")
def test_a_folder_without_shaders_is_an_error(tmp_path):
    done = CliRunner().invoke(real.main, [str(tmp_path)])
    assert done.exit_code == 2
    assert "no WGSL found" in done.output

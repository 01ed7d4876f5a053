"""The benchmark of predictions."""

from itertools import islice

import pytest
from click.testing import CliRunner

import bankshot
from benchmarks import prediction
from benchmarks.prediction import Row, summary
from tests.benchmarks.test_real import DOUBLE, NOTHING
from tests.hardware.timed_families import dispatches


def test_the_summary_has_the_median_the_90th_and_the_worst():
    """Of 1% to 20%, the median is 10.5%, and 18 of 20 are at most 18%. Each counts by its time in the last figure."""
    rows = [Row("k.wgsl:main", 1.0, n / 100, 1.0) for n in range(20, 1, -1)]
    rows.append(Row("k.wgsl:long", 81.0, 0.81, 1.0))
    assert summary(rows) == (
        "20 dispatches; predicting / simulating: median 10.5%, 90th 18.0%, worst 20.0%; all together 2.9%"
    )


def test_a_folder_is_timed(tmp_path):
    """A row for what runs, with the predicted time of the same dispatch; the reason for what does not."""
    for name, text in {"double": DOUBLE, "nothing": NOTHING, "wrong": "fn"}.items():
        (tmp_path / f"{name}.wgsl").write_text(text)
    done = CliRunner().invoke(prediction.main, [str(tmp_path)])
    assert done.exit_code == 0, done.output
    (row, total) = done.stdout.splitlines()
    assert row.endswith("double.wgsl:main")
    assert total.startswith("1 dispatch; ")
    assert "nothing.wgsl:main: left out: no output changed" in done.stderr
    module = bankshot.check(DOUBLE)
    case = prediction.inputs(module, module.entry_points[0], "nvidia-h200")
    run = bankshot.simulate(module, grid=case.grid, bindings=case.given, device="nvidia-h200", probes="counters")
    assert f" {run.predicted_time.us:.17g} us" in row


def test_larger_grids_have_longer_arrays(tmp_path):
    """Each of 2,048 times 64 invocations has an element of 4 bytes."""
    (tmp_path / "double.wgsl").write_text(DOUBLE)
    done = CliRunner().invoke(prediction.main, [str(tmp_path), "--workgroups", "2048"])
    assert done.exit_code == 0, done.output
    module = bankshot.check(DOUBLE)
    case = prediction.inputs(module, module.entry_points[0], "nvidia-h200", workgroups=2048)
    assert case.grid == (2048, 1, 1)
    assert len(case.given["x"]) // 4 >= 2048 * 64


def test_a_grid_that_is_no_power_of_two_is_an_error(tmp_path):
    (tmp_path / "double.wgsl").write_text(DOUBLE)
    done = CliRunner().invoke(prediction.main, [str(tmp_path), "--workgroups", "100"])
    assert (done.exit_code, "--workgroups must be a power of two, not 100" in done.stderr) == (2, True)


def test_a_folder_without_entry_points_is_an_error(tmp_path):
    (tmp_path / "wrong.wgsl").write_text("fn")
    done = CliRunner().invoke(prediction.main, [str(tmp_path)])
    assert done.exit_code == 2
    assert "no entry point could be timed" in done.stderr


def test_dispatches_that_were_timed_are_timed_at_their_sizes(monkeypatch):
    found = list(islice(dispatches(), 6))
    monkeypatch.setattr(prediction, "dispatches", lambda: iter(found))
    done = CliRunner().invoke(prediction.main, ["--every", "3"])
    assert done.exit_code == 0, done.output
    *rows, total = done.stdout.splitlines()
    assert total.startswith("2 dispatches; ")
    names = [f"{each.family}: {each.kernel}, {each.shape}" for each in found[::3]]
    assert [row.partition(" us  ")[2] for row in rows] == names


@pytest.mark.parametrize("option", [["--embedded"], ["--most", "3"]])
def test_shaders_are_selected_in_folders_alone(option):
    done = CliRunner().invoke(prediction.main, ["--every", "3", *option])
    assert (done.exit_code, "--every takes none" in done.stderr) == (2, True)


def test_folders_and_timed_dispatches_exclude_each_other(tmp_path):
    for given in ([], [str(tmp_path), "--every", "500"]):
        done = CliRunner().invoke(prediction.main, given)
        assert (done.exit_code, "name folders, or dispatches that were timed with --every" in done.stderr) == (2, True)

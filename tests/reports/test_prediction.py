"""The predicted time of a run as text and as JSON."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.reports.cost_places import cost_places
from bankshot.oracle.reports.prediction import longest_lines, prediction_entry, prediction_words
from bankshot.sim.device_files import find, write_profile

SHADER = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 2048>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) g: vec3u) {
  for (var k = 0u; k < 64u; k++) { t[(i * 32u + k) % 2048u] = f32(k); workgroupBarrier(); }
  y[g.x] = t[i * 32u];
}
"""


def run(device: str | Path, probes: Sequence[str] | str = "all") -> bankshot.Run:
    y = np.zeros(128_000, np.float32)
    return bankshot.simulate(SHADER, grid=2000, bindings={"y": y}, device=device, probes=probes)


def test_a_device_with_costs_has_a_time_its_parts_and_what_would_save_time() -> None:
    found = run("nvidia-h200").predicted_time
    first, parts, *saved = prediction_words(run("nvidia-h200"))
    assert first.startswith(f"predicted time {found.us:,.3g} us, 90% within {found.low:,.3g} us to ")
    assert parts.startswith("by unit: ")
    assert f"% {found.limiter}" in parts
    assert found.limiter == "workgroup memory"  # 32-way conflicts
    assert saved[0].startswith("no bank conflicts would save ")
    assert len(saved) == len(run("nvidia-h200").time_savings)
    assert prediction_entry(run("nvidia-h200"))["predicted_time"]["limiter"] == "workgroup memory"


def test_one_line_has_the_roofs_of_all_levels_of_memory() -> None:
    text = SHADER.replace("t[i * 32u]", "t[i * 32u] * 3.0")  # a FLOP for each 4 bytes, whole lines
    found = bankshot.simulate(text, grid=2000, bindings={"y": np.zeros(128_000, np.float32)}, device="nvidia-h200")
    (line,) = (words for words in prediction_words(found) if words.startswith("roofline"))
    lowest, *others = found.roofs
    assert (lowest.name, lowest.intensity) == ("L2 cache", 0.25)
    assert line.startswith(
        f"roofline, FLOP per second: at most {lowest.attainable / 1e9:.3g}G by L2 cache (0.25 FLOP per"
    )
    assert ", 67.0T by arithmetic" in line
    assert "device memory" not in line  # the buffer stays in the L2 cache
    assert 128_000 / found.predicted_time.us * 1e6 < lowest.attainable < min(roof.attainable for roof in others)
    entry = prediction_entry(found)["predicted_time"]["roofline"]
    assert [roof["name"] for roof in entry] == [roof.name for roof in found.roofs]
    assert json.loads(json.dumps(entry)) == entry  # no infinite number
    assert run("nvidia-h200").roofs == []  # no FLOPs


def test_without_conflicts_the_time_is_what_was_said_to_remain() -> None:
    slow, fast = (
        bankshot.simulate(text, grid=2000, bindings={"y": np.zeros(128_000, np.float32)}, device="nvidia-h200")
        for text in (SHADER, SHADER.replace("(i * 32u + k)", "(i + k)").replace("t[i * 32u]", "t[i]"))
    )
    remains = slow.predicted_time.us - slow.predicted_time.savings["no bank conflicts"]
    assert fast.predicted_time.us == pytest.approx(remains, rel=0.1)


def test_a_device_without_costs_has_no_prediction() -> None:
    assert prediction_words(run("nvidia")) == []
    assert prediction_entry(run("nvidia")) == {}


COUNT_WORK = ("lanes", "banks", "sectors")


@pytest.mark.parametrize("missing", COUNT_WORK)
def test_a_run_that_does_not_count_all_work_has_no_prediction(missing: str) -> None:
    found = run("nvidia-h200", [probe for probe in COUNT_WORK if probe != missing])
    assert prediction_words(found) == longest_lines(found) == []
    assert prediction_entry(found) == {}
    assert all(place.saved_us is None for place in cost_places(found))
    with pytest.raises(ValueError, match=f"needs a run with the probes {missing}, too"):
        _ = found.predicted_time


def test_a_run_that_counts_just_the_work_has_the_same_prediction() -> None:
    assert prediction_entry(run("nvidia-h200", COUNT_WORK)) == prediction_entry(run("nvidia-h200"))


@pytest.mark.parametrize("probes", ["none", "banks"])
def test_the_command_runs_a_device_with_costs_with_any_probes(tmp_path: Path, probes: str) -> None:
    (tmp_path / "k.wgsl").write_text(SHADER)
    asked = ["run", str(tmp_path / "k.wgsl"), "--grid", "2", "--bind", "y=zeros:f32:128", "--device", "nvidia-h200"]
    done = CliRunner().invoke(main, [*asked, "--probes", probes])
    assert done.exit_code == 0
    assert "predicted time" not in done.stdout


def test_a_device_that_was_not_calibrated_claims_no_time(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('base = "nvidia-h200"\nname = "mine"\ncores = 60\n')
    found = run(tmp_path / "mine.toml")
    first, parts = prediction_words(found)[:2]
    assert "for ranking only" in first
    assert "us" not in first.split()
    assert parts.startswith("by unit: ")
    entry = prediction_entry(found)["predicted_time"]
    assert entry.keys() == {"relative", "limiter", "shares", "savings", "lines", "calibrated"}
    assert (entry["limiter"], entry["calibrated"]) == ("workgroup memory", False)
    assert sum(entry["shares"].values()) == pytest.approx(1.0)
    assert entry["lines"][0].keys() == {"file", "line", "share", "limiter"}
    assert 0.5 < entry["savings"]["no bank conflicts"] < 1  # of the time, which 32-way conflicts take
    assert {place.entry()["saved_us"] for place in cost_places(found)} == {None}
    assert all(place.entry()["saved_us"] > 0 for place in cost_places(run("nvidia-h200")))


def test_costs_that_lack_one_are_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "k.wgsl").write_text(SHADER)
    (tmp_path / "mine.toml").write_text('base = "nvidia"\n[costs]\nwavefront = { value = 1.0, source = "a guess" }\n')
    result = CliRunner().invoke(main, ["run", str(tmp_path / "k.wgsl"), "--grid", "1", "--bind", "y=zeros:f32:64",
                                       "--device", str(tmp_path / "mine.toml")])  # fmt: skip
    assert result.exit_code == 2
    assert "lacks 'clock_mhz'" in result.output


def test_json_has_the_prediction(tmp_path: Path) -> None:
    (tmp_path / "k.wgsl").write_text(SHADER)
    args = ["run", str(tmp_path / "k.wgsl"), "--grid", "2", "--bind", "y=zeros:f32:128", "--json"]
    entries = {
        device: json.loads(CliRunner().invoke(main, [*args, "--device", device]).stdout)
        for device in ("nvidia", "nvidia-h200")
    }
    assert '"predicted_time"' in json.dumps(entries["nvidia-h200"])
    assert '"predicted_time"' not in json.dumps(entries["nvidia"])


def test_a_profile_with_costs_reads_back_with_the_same_predictions(tmp_path: Path) -> None:
    known = find("nvidia-h200")
    write_profile(tmp_path / "copy.toml", known, known.costs)
    assert run(tmp_path / "copy.toml").predicted_time == run("nvidia-h200").predicted_time


def test_text_and_page_show_the_lines_that_take_the_time(tmp_path: Path) -> None:
    (tmp_path / "k.wgsl").write_text(SHADER)
    args = ["audit", str(tmp_path / "k.wgsl"), "--no-gpu", "--grid", "2000", "--bind", "y=zeros:f32:128000", "-v",
            "--html", str(tmp_path / "page.html"), "--device"]  # fmt: skip
    shown = CliRunner().invoke(main, [*args, "nvidia-h200"]).stdout
    (line,) = [each for each in shown.splitlines() if each.endswith("k.wgsl:5  workgroup memory")]
    assert line.split()[0].endswith("%")
    assert "of the predicted time" in shown
    page = (tmp_path / "page.html").read_text()
    assert "Where the predicted time goes" in page
    assert "mostly workgroup memory" in page
    without = CliRunner().invoke(main, [*args, "nvidia"]).stdout
    assert "predicted time" not in without
    assert "Where the predicted time goes" not in (tmp_path / "page.html").read_text()


def test_json_has_the_lines_with_limiters_and_savings(tmp_path: Path) -> None:
    entry = prediction_entry(run("nvidia-h200"))["predicted_time"]
    assert next((line["line"], line["limiter"]) for line in entry["lines"]) == (5, "workgroup memory")
    assert entry["savings"]["no bank conflicts"] > 0

"""Advice with predicted times, on a device whose costs are known."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

SHADER = """\
const PITCH = 32u;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
var<workgroup> t: array<f32, 32u * PITCH>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) w: vec3u) {
  for (var k = 0u; k < 32u; k++) { t[k * PITCH + i] = x[w.x * 1024u + k * 32u + i]; }
  workgroupBarrier();
  for (var k = 0u; k < 32u; k++) { y[w.x * 1024u + k * 32u + i] = t[i * PITCH + k]; }
}
"""


@pytest.fixture
def shader(tmp_path: Path) -> Path:
    (tmp_path / "k.wgsl").write_text(SHADER)
    return tmp_path / "k.wgsl"


def advise(shader: Path, device: str, *options: str) -> str:
    args = ["advise", str(shader), "--device", device, "--grid", "800", "--bind", "x=normal:f32:819200",
            "--bind", "y=zeros:f32:819200", *options]  # fmt: skip
    return CliRunner().invoke(main, args).stdout


def test_times_before_and_after_are_shown(shader: Path) -> None:
    assert "; " in next(line for line in advise(shader, "nvidia-h200").splitlines() if "predicted time: " in line)


def test_a_better_layout_is_predicted_to_be_faster(shader: Path) -> None:
    (case,) = json.loads(advise(shader, "nvidia-h200", "--json"))["cases"]
    before, after = case["predicted_us"]
    assert after < before


def test_a_device_without_costs_shows_none(shader: Path) -> None:
    assert "predicted" not in advise(shader, "nvidia")
    (case,) = json.loads(advise(shader, "nvidia", "--json"))["cases"]
    assert case["predicted_us"] == []

"""`bankshot calibrate` on a software adapter, with few micro-benchmarks."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.calibration import fit, measure
from bankshot.oracle.calibration.measure import micro_benchmarks
from bankshot.oracle.cli.main import main
from bankshot.sim.device_files import read_profile
from bankshot.sim.models.time_model import SOFTWARE

pytest.importorskip("scipy", reason="calibrating needs SciPy: pip install 'bankshot[calibrate]'")

SHADER = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(1) fn main() { y[0] = 1u; }
"""


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        measure, "micro_benchmarks", lambda *args, **given: list(micro_benchmarks(*args, **given))[20:32]
    )


def calibrate(*args: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["calibrate", *args])
    return result.exit_code, result.output


@pytest.mark.usefixtures("lavapipe", "few")
def test_the_file_holds_every_cost_and_predicts(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    code, output = calibrate(str(file), "--adapter", "llvmpipe", "--cores", "2", "--scale", "1", "--rounds", "2")
    assert code == 0, output
    assert f"wrote {file}" in output
    device = read_profile(file)
    assert (device.name, device.cores, device.calibrated) == ("mine", 2, True)
    assert device.costs is not None
    assert set(device.costs.costs) == set(SOFTWARE.costs)
    assert "llvmpipe" in device.costs.adapter
    command = "bankshot calibrate --adapter llvmpipe --base nvidia --cores 2 --scale 1 --rounds 2"
    assert device.costs.costs["fp32_ns"].command == command
    (tmp_path / "k.wgsl").write_text(SHADER)
    ran = CliRunner().invoke(main, ["run", str(tmp_path / "k.wgsl"), "--grid", "1", "--bind", "y=zeros:u32:1",
                                    "--device", str(file)])  # fmt: skip
    assert "predicted time " in ran.output


@pytest.mark.usefixtures("lavapipe", "few")
def test_json_has_the_costs_and_the_errors(tmp_path: Path) -> None:
    args = [
        str(tmp_path / "a.toml"),
        "--adapter",
        "llvmpipe",
        "--cores",
        "2",
        "--scale",
        "1",
        "--rounds",
        "2",
        "--json",
    ]
    code, output = calibrate(*args)
    assert code == 0, output
    found = json.loads(output)
    assert set(found["costs"]) == set(SOFTWARE.costs)
    assert 2 <= len(found["points"]) <= 12
    assert all(point["us"] > 0 for point in found["points"])


@pytest.mark.usefixtures("lavapipe")
def test_too_little_to_time_says_what_to_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "micro_benchmarks", lambda *args, **given: [next(micro_benchmarks(*args, **given))])
    code, output = calibrate(str(tmp_path / "a.toml"), "--adapter", "llvmpipe", "--cores", "2")
    assert code == 2
    assert "use a larger --scale" in output


def test_an_unknown_base_is_named(tmp_path: Path) -> None:
    code, output = calibrate(str(tmp_path / "mine.toml"), "--base", "nvdia")
    assert code == 2
    assert "nvdia" in output


def test_an_unknown_adapter_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    code, output = calibrate(str(tmp_path / "mine.toml"), "--adapter", "no such card")
    assert code == 2
    assert "no such card" in output
    assert not (tmp_path / "mine.toml").exists()


@pytest.mark.usefixtures("lavapipe", "few")
def test_without_scipy_the_message_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object, **__: object) -> None:
        raise fit.NoSciPy("calibrating needs SciPy: pip install 'bankshot[calibrate]'")

    monkeypatch.setattr(fit, "_least_squares", missing)
    code, output = calibrate(
        str(tmp_path / "mine.toml"), "--adapter", "llvmpipe", "--cores", "2", "--scale", "1", "--rounds", "2"
    )
    assert code == 2
    assert "bankshot[calibrate]" in output


@pytest.mark.usefixtures("lavapipe", "few")
def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "missing" / "mine.toml"
    code, output = calibrate(str(file), "--adapter", "llvmpipe", "--cores", "2", "--scale", "1", "--rounds", "2")
    assert code == 2
    assert str(file) in output
    assert "Traceback" not in output

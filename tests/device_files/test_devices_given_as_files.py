"""A device file stands wherever a device's name does: in Python, in every command that charges, and in tests."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import bankshot
from bankshot.oracle.cli.main import main
from bankshot.oracle.pytest_plugin.hooks import device_of

# Each invocation stores to every second word: two to a bank on 32 banks, and one where there are 64.
STRIDED = """\
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[2u * i] = i;
    y[i] = i;
}
"""


@pytest.fixture
def mine(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('name = "wide"\nbase = "nvidia"\nbanks = 64\n')
    return path


@pytest.fixture
def shader(tmp_path):
    path = tmp_path / "strided.wgsl"
    path.write_text(STRIDED)
    return path


@pytest.mark.parametrize("as_given", [str, lambda path: path], ids=["text", "path"])
def test_simulate_charges_as_the_file_says(mine, as_given):
    y = {"y": np.zeros(32, np.uint32)}
    run = bankshot.simulate(STRIDED, grid=1, bindings=y, device=as_given(mine))
    assert (run.device.name, run.counters["shared_wavefronts"]) == ("wide", 1)
    assert bankshot.simulate(STRIDED, grid=1, bindings=y).counters["shared_wavefronts"] == 2


def test_an_invalid_file_is_an_error_of_the_argument(mine):
    mine.write_text('base = "nvidia"\nbanks = 3\n')
    with pytest.raises(bankshot.WgslError, match=r"mine.toml:2:9: error: `banks` must be"):
        bankshot.simulate(STRIDED, grid=1, bindings={"y": np.zeros(32, np.uint32)}, device=mine)


def test_audit_and_run_compare_a_file_with_a_name(mine, shader):
    for verb, more in (("audit", ["--no-gpu"]), ("run", [])):
        words = [verb, str(shader), "--grid", "1", "--bind", "y=zeros:u32:32", "--json", *more]
        done = CliRunner().invoke(main, [*words, "--device", f"nvidia, {mine}"])
        assert done.exit_code == 0, done.output
        (case,) = json.loads(done.stdout)["cases"]
        rows = case["devices"]
        assert [(row["device"], row["counters"]["shared_wavefronts"]) for row in rows] == [("nvidia", 2), ("wide", 1)]


def test_a_sweep_has_a_row_for_a_file(mine, shader, tmp_path):
    out = tmp_path / "rows.csv"
    words = ["sweep", str(shader), "--grid", "1", "--bind", "y=zeros:u32:32", "--out", str(out), "--jobs", "1"]
    done = CliRunner().invoke(main, [*words, "--device", f"nvidia,{mine}", "--json"])
    assert done.exit_code == 0, done.output
    rows = {row["device"]: row["shared_wavefronts"] for row in json.loads(done.stdout)["cases"]}
    assert rows == {"nvidia": 2, "wide": 1}
    mine.write_text('name = "wide"\nbase = "nvidia"\nbanks = 32\n')
    done = CliRunner().invoke(main, [*words, "--device", f"nvidia,{mine}", "--json"])
    assert {row["shared_wavefronts"] for row in json.loads(done.stdout)["cases"]} == {2}  # the old row does not count


@pytest.mark.usefixtures("adapter")
def test_diff_takes_a_file_and_points_into_a_wrong_one(mine, shader):
    words = ["diff", str(shader), "--grid", "1", "--bind", "y=zeros:u32:32", "--device", str(mine), "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code in (0, 1), done.output
    assert json.loads(done.stdout)["cases"][0]["device"] == "wide"
    mine.write_text("banks = 3")
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, f"{mine}:1:9: error: `banks`" in done.output) == (2, True)
    done = CliRunner().invoke(main, [*words, "--device", "none"])
    assert (done.exit_code, "there is no device 'none'" in done.output) == (2, True)


@pytest.mark.parametrize("verb", ["advise", "audit", "explore", "fix", "run", "sweep"])
def test_commands_point_into_a_wrong_file(mine, shader, verb, tmp_path):
    mine.write_text('base = "nvidia"\nbanks = 3\n')
    words = [verb, str(shader), "--grid", "1", "--bind", "y=zeros:u32:32", "--device", str(mine)]
    words += ["--out", str(tmp_path / "rows.csv")] if verb == "sweep" else []
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2, done.output
    assert f"{mine}:2:9: error: `banks` must be a power of two, 4 to 64" in done.output
    assert "\nbanks = 3\n        ^\n" in done.output


@pytest.mark.parametrize("verb", ["advise", "audit", "explore", "run"])
def test_other_commands_take_a_file_and_name_its_profile(mine, shader, verb):
    words = [verb, str(shader), "--grid", "1", "--bind", "y=zeros:u32:32", "--device", str(mine), "--json"]
    done = CliRunner().invoke(main, [*words, "--no-gpu"] if verb == "audit" else words)
    assert done.exit_code in (0, 1), done.output
    assert json.loads(done.stdout)["cases"][0]["device"] == "wide"


def test_two_files_of_one_name_are_refused(mine, shader):
    words = ["run", str(shader), "--grid", "1", "--device", f"{mine},{mine}"]
    done = CliRunner().invoke(main, words)
    assert (done.exit_code, "wide is named twice" in done.output) == (2, True)


@pytest.mark.parametrize(
    ("option", "ini", "device"),
    [
        (None, "nvidia", "nvidia"),
        (None, "devices/mine.toml", "ROOT/devices/mine.toml"),
        ("mine.toml", "nvidia", "mine.toml"),
    ],
)
def test_an_ini_file_names_a_device_file_from_its_own_folder(tmp_path, option, ini, device):
    config = SimpleNamespace(getoption=lambda name: option, getini=lambda name: ini, rootpath=tmp_path)
    assert device_of(config) == device.replace("ROOT", str(tmp_path))

"""`predicted_us_max` in a manifest: a slow case fails, and a device that claims no time is an error."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from bankshot.oracle.cli.main import main
from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.manifest_loader import load
from tests import scaling

SHADER = """\
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3u) { y[g.x] = x[g.x]; }
"""
MANIFEST = scaling.manifest("[expect]\n", source="k.wgsl", kernel='reference = "k.py:copied"', n=64, lanes=64)


def device(folder: Path, text: str) -> Path:
    file = folder / "mine.toml"
    file.write_text(text)
    return file


def manifest(folder: Path, expect: str) -> Path:
    (folder / "k.wgsl").write_text(SHADER)
    (folder / "k.py").write_text('def copied(arrays, dims):\n    return {"y": arrays["x"]}\n')
    (folder / "k.toml").write_text(MANIFEST + expect)
    return folder / "k.toml"


def audit(folder: Path, expect: str, profile: str | Path = "nvidia-h200", *options: str) -> Result:
    args = ["audit", str(manifest(folder, expect)), "--no-gpu", "--device", str(profile), *options]
    return CliRunner().invoke(main, args)


def entry(result: Result) -> dict:
    (case,) = json.loads(result.stdout)["cases"]
    return case


def test_a_case_within_the_bound_is_clean_and_shows_prediction_interval_and_limiter(tmp_path: Path) -> None:
    result = audit(tmp_path, "predicted_us_max = 1000")
    assert result.exit_code == 0
    (line,) = [line for line in result.stdout.splitlines() if "as the manifest allows" in line]
    assert "90% within" in line
    assert "limited by launch" in line  # one workgroup does next to nothing


def test_the_largest_bound_is_the_largest_integer(tmp_path: Path) -> None:
    load(manifest(tmp_path, f"predicted_us_max = {(1 << 53) - 1}"))
    with pytest.raises(UsageError, match="must be a positive number of microseconds"):
        load(manifest(tmp_path, f"predicted_us_max = {1 << 53}"))


def test_a_case_above_the_bound_fails_and_says_by_how_much(tmp_path: Path) -> None:
    result = audit(tmp_path, "predicted_us_max = 0.25")
    assert result.exit_code == 1
    assert "the manifest allows 0.25 us" in result.stdout
    case = entry(audit(tmp_path, "predicted_us_max = 0.25", "nvidia-h200", "--json"))
    assert (case["outcome"], case["expected_time"]["ok"]) == ("failed", False)
    assert case["expected_time"]["most_us"] == 0.25
    assert case["expected_time"]["us"] == case["predicted_time"]["us"] > 0.25


def test_the_bound_may_depend_on_sizes(tmp_path: Path) -> None:
    case = entry(audit(tmp_path, 'predicted_us_max = "N * 10 / 4"', "nvidia-h200", "--json"))
    assert case["expected_time"]["most_us"] == 160


def test_an_annotation_is_at_the_line_of_the_manifest(tmp_path: Path) -> None:
    result = audit(tmp_path, "predicted_us_max = 0.25", "nvidia-h200", "--format", "github")
    line = MANIFEST.count("\n") + 1
    (words,) = [each for each in result.stdout.splitlines() if each.startswith("::error")]
    assert f"line={line}" in words
    assert "predicted time" in words


def test_no_bound_is_no_check(tmp_path: Path) -> None:
    assert entry(audit(tmp_path, "", "nvidia-h200", "--json"))["expected_time"] is None


@pytest.mark.parametrize(
    ("profile", "why"),
    [
        ("nvidia", "the profile nvidia has no costs"),
        ('base = "nvidia-h200"\nname = "mine"\ncores = 60\n', "the profile mine was not calibrated"),
    ],
)
def test_a_device_that_claims_no_time_is_an_error_of_the_case(tmp_path: Path, profile: str, why: str) -> None:
    given = device(tmp_path, profile) if "\n" in profile else profile
    case = entry(audit(tmp_path, "predicted_us_max = 1000", given, "--json"))
    line = MANIFEST.count("\n") + 1
    assert case["outcome"] == "error"
    assert f"k.toml:{line}: `predicted_us_max` needs a predicted time, and {why}" in case["error"]
    assert "--device" in case["error"]


def test_a_sample_is_not_compared_with_the_bound(tmp_path: Path) -> None:
    manifest(tmp_path, "predicted_us_max = 0.25")
    text = (tmp_path / "k.toml").read_text().replace("N = 64", "N = 640")
    (tmp_path / "k.toml").write_text(text)
    args = ["audit", str(tmp_path / "k.toml"), "--no-gpu", "--device", "nvidia-h200", "--sample", "2", "--json"]
    case = entry(CliRunner().invoke(main, args))
    assert case["outcome"] == "unchecked"
    assert "predicted_us_max: not compared" in case["unchecked"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0", "must be a positive number of microseconds, not 0"),
        ("-3.5", "must be a positive number of microseconds, not -3.5"),
        ("nan", "must be a positive number of microseconds, not nan"),
        ("inf", "must be a positive number of microseconds, not inf"),
        ("true", "must be an integer or a number or a string, not True"),
        ('"M / 2"', "uses M, which is no dimension"),
        ("[3]", "must be an integer or a number or a string, not [3]"),
    ],
)
def test_a_bad_bound_is_an_error_at_its_line(tmp_path: Path, value: str, words: str) -> None:
    path, line = manifest(tmp_path, f"predicted_us_max = {value}"), MANIFEST.count("\n") + 1
    with pytest.raises(UsageError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ['"N - 64"', '"N / (N - 64)"'])
def test_a_bound_without_a_positive_value_at_some_size_is_an_error(tmp_path: Path, value: str) -> None:
    case = entry(audit(tmp_path, f"predicted_us_max = {value}", "nvidia-h200", "--json"))
    assert case["outcome"] == "error"
    assert f"k.toml:{MANIFEST.count(chr(10)) + 1}: at N=64: " in case["error"]


def test_the_page_shows_the_check_and_the_prediction(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    audit(tmp_path, "predicted_us_max = 0.25", "nvidia-h200", "--html", str(page))
    assert "the manifest allows 0.25 us" in page.read_text()
    assert "Predicted time " in page.read_text()

"""The problem matcher of docs/exit-codes.md finds what `check` and `audit` print, and nothing else."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

PAGE = (Path(__file__).parents[2] / "docs/exit-codes.md").read_text(encoding="utf-8")
BROKEN = "fn f() -> u32 { return true; }\n@compute @workgroup_size(64) fn main() { nothing(); }\n"
RACING = """\
@group(0) @binding(0) var<storage, read_write> y: array<f32, 64>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = f32(i);
    y[i] = tile[(i + 1) % 64];
    y[i] += y[70 * i];
}
"""


def task():
    (block,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    (alternative,) = re.findall(r"`\"args\": (\[.*?\])`", PAGE)
    (found,) = json.loads(block)["tasks"]
    return found, json.loads(alternative)


@pytest.fixture
def problems(tmp_path, monkeypatch):
    """Run `bankshot` in a folder; return what the matcher finds, with the fields that it names."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    Path("kernels").mkdir()
    pattern = task()[0]["problemMatcher"]["pattern"]
    fields = {name: group for name, group in pattern.items() if name != "regexp"}

    def run(arguments):
        done = CliRunner().invoke(main, arguments)
        matches = filter(None, map(re.compile(pattern["regexp"]).match, done.output.splitlines()))
        return [{name: match[group] for name, group in fields.items()} for match in matches]

    return run


def test_errors_of_shaders_are_problems(problems):
    Path("kernels/bad.wgsl").write_text(BROKEN)
    first, second = problems(task()[1])
    assert first == {
        "file": "kernels/bad.wgsl",
        "line": "1",
        "column": "24",
        "severity": "error",
        "code": None,
        "message": "the value that 'f' returns must be u32, not bool",
    }
    assert (second["line"], second["column"]) == ("2", "42")


def test_findings_are_problems(problems):
    Path("kernels/k.wgsl").write_text(RACING)
    Path("kernels/k.toml").write_text(
        '[kernel]\nsource = "k.wgsl"\ndispatch = [1]\n[bind.y]\ndtype = "f32"\nshape = [64]\ninit = "zeros"\n'
    )
    found = problems(task()[0]["args"])
    assert {(each["file"], each["line"], each["code"]) for each in found} == {
        ("kernels/k.wgsl", "5", "race"),
        ("kernels/k.wgsl", "6", "out-of-bounds"),
    }
    assert {each["severity"] for each in found} <= {"error", "warning", "info"}
    assert all(int(each["column"]) > 0 and each["message"] for each in found)


def test_a_drive_is_part_of_a_path():
    pattern = task()[0]["problemMatcher"]["pattern"]
    match = re.match(pattern["regexp"], r"C:\kernels\k.wgsl:5:12: warning[uninit]: invocation 0 loads w[0]")
    assert match is not None
    assert match[pattern["file"]] == r"C:\kernels\k.wgsl"

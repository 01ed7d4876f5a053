"""`bankshot explore`: outcomes as text and as JSON, and the exit code."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main

TEXT = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 2>;
@group(0) @binding(1) var<storage, read_write> r: array<u32, 2>;
@compute @workgroup_size(1) fn main(@builtin(workgroup_id) w: vec3u) {
    atomicStore(&m[w.x], 1u);
    r[w.x] = atomicLoad(&m[1u - w.x]);
}
"""
ARGUMENTS = ("--grid", "2", "--bind", "m=u32:0,0", "--bind", "r=u32:0,0")


@pytest.fixture
def path(tmp_path):
    (tmp_path / "sb.wgsl").write_text(TEXT)
    return tmp_path / "sb.wgsl"


def bankshot(*arguments):
    return CliRunner().invoke(main, ["explore", *map(str, arguments)])


def test_the_weak_outcome_is_a_finding(path):
    result = bankshot(path, *ARGUMENTS)
    assert result.exit_code == 1
    assert "4 outcomes; all " in result.stdout
    assert "r[0] = 0, r[1] = 0   (only with weak memory)" in result.stdout
    assert "r[0] = 1, r[1] = 1\n" in result.stdout
    assert "sb.wgsl:6:14: warning: workgroup (1, 0, 0) may read 0 from m[0] after" in result.stdout


def test_sequential_memory_has_three_outcomes_and_no_finding(path):
    result = bankshot(path, *ARGUMENTS, "--memory", "sc")
    assert result.exit_code == 0
    assert "3 outcomes; all " in result.stdout
    assert "weak" not in result.stdout


def test_json_has_every_outcome_with_its_witness(path):
    result = bankshot(path, *ARGUMENTS, "--json")
    (case,) = json.loads(result.stdout)["cases"]
    assert (case["complete"], case["ok"], case["memory"]) == (True, False, "weak")
    weak = {tuple(each["outputs"]["r"]): each["weak"] for each in case["outcomes"]}
    assert weak == {(0, 0): True, (0, 1): False, (1, 0): False, (1, 1): False}
    assert all(len(each["witness"]) >= 4 for each in case["outcomes"])
    assert {step["line"] for each in case["outcomes"] for step in each["witness"]} == {5, 6}
    assert case["findings"][0]["code"] == "weak-order"


def test_a_limit_is_said(path):
    result = bankshot(path, *ARGUMENTS, "--states", "3")
    assert "raise --states or --seconds" in result.stdout
    assert json.loads(bankshot(path, *ARGUMENTS, "--states", "3", "--json").stdout)["cases"][0]["complete"] is False


def test_a_large_dispatch_is_refused(path):
    result = bankshot(path, "--grid", "100", "--bind", "m=u32:0,0", "--bind", "r=u32:0,0")
    assert result.exit_code == 2
    assert "100 invocations, and the search runs at most 64" in result.stderr


def test_the_page_shows_what_is_printed(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "explore.md").read_text(encoding="utf-8")
    text, shown = (re.search(rf"```{kind}\n(.*?)```", page, re.DOTALL)[1] for kind in ("wgsl", "text"))
    (tmp_path / "guarded.wgsl").write_text(text)
    result = bankshot(tmp_path / "guarded.wgsl", "--grid", "2")
    assert shown in result.stdout

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


@pytest.fixture
def documented(tmp_path):
    """The kernel of `docs/explore.md` that may starve, and what the page says that Bankshot prints."""
    page = (Path(__file__).parents[2] / "docs" / "explore.md").read_text(encoding="utf-8")
    _, section = page.split("## Progress\n")
    kernel, printed = (re.search(rf"```{kind}\n(.*?)```", section, re.DOTALL)[1] for kind in ("wgsl", "text"))
    (tmp_path / "lookback.wgsl").write_text(kernel, encoding="utf-8")
    return tmp_path / "lookback.wgsl", printed


def test_progress_is_shown_as_the_page_has_it(documented):
    path, printed = documented
    result = bankshot(path, "--grid", "3", "--bind", "sums=zeros:u32:3", "--progress", "fair,lobe,obe")
    assert result.exit_code == 1
    assert printed in result.stdout
    assert (
        "lookback.wgsl:8:26: error: workgroup (1, 0, 0) may wait here forever for sums[0], under OBE" in result.stdout
    )
    assert "lookback.wgsl:12:5: note: workgroup (0, 0, 0) stores to it here" in result.stdout


def test_json_has_the_verdict_of_each_model_with_its_run(documented):
    path, _ = documented
    result = bankshot(path, "--grid", "3", "--bind", "sums=zeros:u32:3", "--progress", "all", "--json")
    (case,) = json.loads(result.stdout)["cases"]
    ends = {each["model"]: each["ends"] for each in case["progress"]}
    assert ends == {"fair": True, "hsa": True, "obe": False, "hsa+obe": True, "lobe": True, "none": False}
    obe = case["progress"][2]
    assert (obe["within"], obe["never"], obe["memory"], obe["way"]) == ("fair", False, "weak", [])
    assert [(step["workgroup"], step["line"]) for step in obe["cycle"]] == [([1, 0, 0], 8)]
    assert [finding["code"] for finding in case["findings"]] == ["starvation"]


def test_models_that_the_kernel_ends_under_are_no_finding(documented):
    path, _ = documented
    result = bankshot(path, "--grid", "3", "--bind", "sums=zeros:u32:3", "--progress", "lobe")
    assert result.exit_code == 0
    assert "ends under LOBE" in result.stdout


@pytest.mark.parametrize("wrong", [("--progress", "fair,often"), ("--within", "often")])
def test_a_progress_model_that_does_not_exist(path, wrong):
    result = bankshot(path, *ARGUMENTS, *wrong)
    assert result.exit_code == 2
    assert f"{wrong[0]} cannot be 'often'; the progress models are fair, hsa," in result.stderr


def test_a_verdict_of_another_memory_model_says_so(tmp_path):
    lock = """
@group(0) @binding(0) var<storage, read_write> m: array<atomic<u32>, 1>;
@compute @workgroup_size(1) fn main() {
    while atomicExchange(&m[0], 1u) == 1u {}
    atomicStore(&m[0], 0u);
}
"""
    (tmp_path / "lock.wgsl").write_text(lock)
    options = ("--grid", "2", "--bind", "m=zeros:u32:1", "--states", "200", "--progress", "obe")
    result = bankshot(tmp_path / "lock.wgsl", *options)
    assert "  ends under OBE   (with sequentially consistent memory)\n" in result.stdout


def test_the_page_shows_which_barriers_matter(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "explore.md").read_text(encoding="utf-8").partition("## Barriers")[2]
    kernel, said = re.findall(r"```(?:wgsl|text)\n(.*?)```", page, re.DOTALL)[:2]
    (tmp_path / "flag.wgsl").write_text(kernel)
    result = bankshot(tmp_path / "flag.wgsl", "--grid", "1", "--barriers")
    assert all(line in result.stdout for line in said.splitlines())
    [entry] = json.loads(bankshot(tmp_path / "flag.wgsl", "--grid", "1", "--barriers", "--json").stdout)["cases"]
    assert entry["barriers"] == [
        {"line": 8, "matters": True, "outcomes": 2},
        {"line": 10, "matters": False, "outcomes": 0},
    ]

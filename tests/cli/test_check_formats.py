"""`bankshot check` of folders, and the formats that programs read."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.check import FORMATS
from bankshot.oracle.cli.main import main
from bankshot.oracle.exit_codes import CLEAN, FOUND, INTERNAL, INTERRUPTED, WRONG_USE
from bankshot.oracle.reports import formats

ROOT = Path(__file__).parents[2]
GOOD = "@compute @workgroup_size(1) fn main() {}\n"
WRONG = "fn f() -> u32 {\n    return missing;\n}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    (tmp_path / "deep").mkdir()
    (tmp_path / "good.wgsl").write_text(GOOD)
    (tmp_path / "deep" / "wrong.wgsl").write_text(WRONG)
    return tmp_path


def check(*arguments):
    return CliRunner().invoke(main, ["check", *arguments])


def test_every_shader_of_a_folder_is_checked(folder):
    done = check(".")
    assert done.exit_code == WRONG_USE
    assert done.stdout == "good.wgsl: ok, compute entry point main\n"
    assert "deep/wrong.wgsl:2:12: error: " in done.stderr


def test_annotations_name_the_place(folder):
    done = check(".", "--format", "github")
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("::")]
    assert line.startswith("::error file=deep/wrong.wgsl,line=2,col=12,endColumn=19,title=bankshot%3A ")


def test_sarif_is_one_log_on_stdout(folder):
    done = check(".", "--format", "sarif")
    assert done.exit_code == WRONG_USE
    (run,) = json.loads(done.stdout)["runs"]
    (result,) = run["results"]
    place = result["locations"][0]["physicalLocation"]
    assert (place["artifactLocation"]["uri"], place["region"]["startLine"]) == ("deep/wrong.wgsl", 2)
    assert json.loads(check("good.wgsl", "--format", "sarif").stdout)["runs"][0]["results"] == []


def test_json_is_the_same_by_either_option(folder):
    assert check(".", "--json").stdout == check(".", "--format", "json").stdout


def test_the_page_of_exit_codes_names_every_code_and_format():
    text = (ROOT / "docs" / "exit-codes.md").read_text(encoding="utf-8")
    codes = {int(found) for found in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert codes == {CLEAN, FOUND, WRONG_USE, INTERNAL, INTERRUPTED}
    named = set(re.findall(r"^\| `(?:--format |--)([\w]+)", text, re.MULTILINE))
    assert named >= {each.name for each in formats.formats()} | set(FORMATS)


def test_the_hook_of_pre_commit_runs_a_command_that_exists():
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = re.findall(r"entry: bankshot (\w+)", text)
    assert entries == ["check"]
    assert set(entries) <= set(main.list_commands(None))

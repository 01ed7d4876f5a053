"""`bankshot fix` and `audit --patch`: what they show, what they change, and their exit codes."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.fix import Fixed, races
from bankshot.oracle.judge.coverage import CaseOutcome, Compared
from bankshot.sim.cures.patches import Patch
from bankshot.sim.cures.search import Cures
from bankshot.sim.run import cured

SHADER = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    STORE
    y[i] = t[63u - i];
}
"""
MANIFEST = """[kernel]
source = "k.wgsl"
dispatch = [1]
reference = "reference.py:expected"
[bind.y]
dtype = "u32"
shape = [64]
init = "zeros"
"""
REFERENCE = """import numpy as np
from bankshot.oracle.references import Expected
def expected(arrays, dims):
    return {"y": Expected(np.arange(63, -1, -1).astype(np.float64))}
"""
RACY, CURED = SHADER.replace("STORE", "t[i] = i;"), SHADER.replace("STORE", "t[i] = i;\n    workgroupBarrier();")
UNCURED = SHADER.replace("STORE", "t[0] = i;\n    workgroupBarrier();")


@pytest.fixture
def command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(verb: str, *options: str, text: str = RACY):
        (tmp_path / "k.wgsl").write_text(text, encoding="utf-8")
        return CliRunner().invoke(main, [verb, "k.wgsl", "--grid", "1", "--bind", "y=zeros:u32:64", *options])

    return run


def test_fix_shows_a_diff_and_changes_nothing(command, tmp_path) -> None:
    done = command("fix")
    assert done.exit_code == 1
    assert "a workgroupBarrier() after line 5 removes the race in line 6" in done.output
    assert "--- a/k.wgsl\n+++ b/k.wgsl\n" in done.output
    assert "\n+    workgroupBarrier();\n" in done.output
    assert "before: failed, 1 race" in done.output
    assert "after:  clean, no findings" in done.output
    assert (tmp_path / "k.wgsl").read_text(encoding="utf-8") == RACY


def test_fix_says_what_several_changes_remove(command, monkeypatch) -> None:
    find = cured.find_cures

    def found(*args: object) -> Cures:
        (one,) = find(*args).cures
        return Cures((replace(one, words="a barrier and a copy", joint=True),))

    monkeypatch.setattr(cured, "find_cures", found)
    assert "a barrier and a copy remove the race in line 6" in command("fix").output


def test_fix_write_changes_the_file(command, tmp_path) -> None:
    done = command("fix", "--write")
    assert done.exit_code == 0, done.output
    assert "changed: k.wgsl" in done.output
    assert (tmp_path / "k.wgsl").read_text(encoding="utf-8") == CURED


def test_fix_of_a_text_without_races(command) -> None:
    done = command("fix", text=CURED)
    assert done.exit_code == 0
    assert "no race was found" in done.output


def test_fix_of_a_race_without_a_cure(command, tmp_path) -> None:
    done = command("fix", "--write", text=UNCURED)
    assert done.exit_code == 1
    assert "no cure was found" in done.output
    assert (tmp_path / "k.wgsl").read_text(encoding="utf-8") == UNCURED


def test_fix_json(command) -> None:
    (case,) = json.loads(command("fix", "--json").output)["cases"]
    assert case["cures"][0]["words"] == "a workgroupBarrier() after line 5"
    assert [f["code"] for f in case["before"]["findings"]] == ["race"]
    assert case["after"]["findings"] == []
    assert "+    workgroupBarrier();" in case["diff"]


def test_fix_shows_the_verdicts_of_a_manifest(command, tmp_path) -> None:
    (tmp_path / "k.wgsl").write_text(RACY, encoding="utf-8")
    (tmp_path / "k.toml").write_text(MANIFEST, encoding="utf-8")
    (tmp_path / "reference.py").write_text(REFERENCE, encoding="utf-8")
    done = CliRunner().invoke(main, ["fix", "k.toml"])
    assert "before: failed, 1 race" in done.output
    assert "after:  clean, no findings" in done.output
    done = CliRunner().invoke(main, ["fix", "k.toml", "--write"])
    assert done.exit_code == 0, done.output
    audited = CliRunner().invoke(main, ["audit", "k.toml", "--no-gpu"])
    assert audited.exit_code == 0, audited.output


def test_audit_writes_the_cures_as_a_patch(command, tmp_path) -> None:
    done = command("audit", "--no-gpu", "--patch", "cure.diff")
    assert done.exit_code == 1
    assert "hint: a workgroupBarrier() after line 5 removes this race" in done.output
    diff = (tmp_path / "cure.diff").read_text(encoding="utf-8")
    assert diff.startswith("--- a/k.wgsl\n+++ b/k.wgsl\n")
    assert "\n+    workgroupBarrier();\n" in diff
    assert command("audit", "--no-gpu", "--patch", "none/cure.diff").exit_code == 2
    assert command("audit", "--no-gpu", "--patch", "cure.diff", text=CURED).exit_code == 0
    assert (tmp_path / "cure.diff").read_text(encoding="utf-8") == ""


# ---- what decides the outcome ------------------------------------------------------------------------


def audited(*findings):
    """An audit with findings, each by its code and whether the manifest allows it."""
    checks = [SimpleNamespace(finding=SimpleNamespace(code=code), allowed=allowed) for code, allowed in findings]
    return SimpleNamespace(findings=checks)


RACE, ALLOWED, OTHER = ("race", False), ("race", True), ("out-of-bounds", False)
NONE, RACES = audited(), audited(RACE)


@pytest.mark.parametrize(
    ("findings", "count"), [((), 0), ((RACE,), 1), ((ALLOWED,), 0), ((OTHER,), 0), ((RACE, OTHER, ALLOWED, RACE), 2)]
)
def test_races_are_counted_that_the_manifest_does_not_allow(findings, count) -> None:
    assert races(audited(*findings)) == count


UNMAPPED = Patch({}, ("a reason",))


@pytest.mark.parametrize(
    ("fixed", "ok"),
    [
        (Fixed(NONE), True),
        (Fixed(RACES), False),
        (Fixed(RACES, NONE), False),  # the files are as they were
        (Fixed(RACES, NONE, written=("k.wgsl",)), True),
        (Fixed(RACES, RACES, written=("k.wgsl",)), False),
        (Fixed(NONE, RACES, written=("k.wgsl",)), False),
        (Fixed(RACES, NONE, UNMAPPED, written=("k.wgsl",)), False),  # a cure has no place in the files
        (Fixed(NONE, None, UNMAPPED), True),
    ],
)
def test_a_fix_is_ok_if_its_files_have_no_races(fixed, ok) -> None:
    assert (fixed.ok, fixed.outcome) == (ok, CaseOutcome.CLEAN if ok else CaseOutcome.FAILED)
    assert fixed.compared == Compared()

"""Cures as a unified diff: of files, through the preprocessor, and where there is no line to change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.cures.patches import changed_files, patch_of, unified

BODY = """    t[i] = i;
    y[i] = t[63u - i];
"""
SHADER = """@group(0) @binding(0) var<storage, read_write> y: array<u32>;
var<workgroup> t: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {{
{body}}}
"""


def patch(path: Path):
    module = bankshot.check(path)
    run = bankshot.simulate(module, grid=1, bindings={"y": np.zeros(64, np.uint32)}, cures=True)
    assert run.cures
    return patch_of(module.source, run.cures)


def races(path: Path) -> list[bankshot.Finding]:
    run = bankshot.simulate(bankshot.check(path), grid=1, bindings={"y": np.zeros(64, np.uint32)})
    return [f for f in run.findings if f.code == "race"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_diff_applies_with_git(tmp_path, monkeypatch, line_break) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "k.wgsl"
    file.write_bytes(SHADER.format(body=BODY).replace("\n", line_break).encode())
    (tmp_path / "cure.diff").write_bytes(unified(patch(file)).encode())
    subprocess.run(["git", "apply", "cure.diff"], check=True, cwd=tmp_path)
    lines = file.read_bytes().decode().split(line_break)
    assert lines[5] == "    workgroupBarrier();"
    assert "\n" not in "".join(lines)
    assert races(file) == []


def test_a_line_of_an_included_file_is_changed_there(tmp_path) -> None:
    (tmp_path / "k.wgsl").write_text('#define N 64u\n#include "body.wgsl"\n', encoding="utf-8")
    (tmp_path / "body.wgsl").write_text(SHADER.format(body=BODY), encoding="utf-8")
    found = patch(tmp_path / "k.wgsl")
    ((name, (before, after)),) = changed_files(found).items()
    assert Path(name) == tmp_path / "body.wgsl"
    assert before == SHADER.format(body=BODY)
    assert after == SHADER.format(body=BODY.replace("i;\n", "i;\n    workgroupBarrier();\n", 1))
    assert found.unmapped == ()


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"k.wgsl": "#define BOTH t[i] = i; y[i] = t[63u - i];\n" + SHADER.format(body="    BOTH\n")},
            "the preprocessor makes another line of",
        ),
        (
            {
                "k.wgsl": SHADER.format(body='#include "part.wgsl"\nworkgroupBarrier();\n#include "part.wgsl"\n'),
                "part.wgsl": BODY,
            },
            "is included more than once",
        ),
    ],
)
def test_a_line_that_is_no_line_of_a_file_is_said(tmp_path, files, why) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = patch(tmp_path / "k.wgsl")
    assert unified(found) == ""
    assert found.unmapped
    assert all(why in each for each in found.unmapped)


def test_patches_of_several_cases_are_united(tmp_path) -> None:
    file = tmp_path / "k.wgsl"
    file.write_text(SHADER.format(body=BODY), encoding="utf-8")
    one = patch(file)
    assert one | one == one

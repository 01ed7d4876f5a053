"""`bankshot audit --format table`: a row for each case, as it comes."""

import re

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from tests.scaling import PARAMS, SHADER, manifest

SWEEP = '\n[[sweep]]\nN = [32, 40, 64]\n\n[expect]\nflops = "N"\nunchecked = { y = "its costs matter" }\n'
RACY = SHADER.replace("if id.x < params.n {", "y[0] = f32(id.x); if id.x < params.n {")


def table(folder, source, *options):
    """The exit code, the rows as cells by heading, and all lines."""
    (folder / "scale.wgsl").write_text(source)
    (folder / "scale.toml").write_text(manifest(PARAMS, SWEEP))
    result = CliRunner().invoke(main, ["audit", str(folder / "scale.toml"), "--format", "table", *options])
    lines = result.stdout.splitlines()
    columns = [(match.group(), match.start()) for match in re.finditer(r"\S+", lines[0])]
    ends = [start for _, start in columns[1:]] + [None]
    rows = [line for line in lines if line.startswith(("ok ", "NOT OK"))]
    cells = [
        {name: row[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
        | {"verdict": row[: columns[0][1]].strip()}
        for row in rows
    ]
    return result.exit_code, cells, lines


def test_each_case_is_a_row(tmp_path):
    code, rows, lines = table(tmp_path, SHADER, "--no-gpu")
    assert code == 0
    assert all(0 <= float(row.pop("seconds")) < 600 for row in rows)
    same = {"verdict": "ok", "kernel": "scale", "reference": "-", "wgpu": "-", "counters": "1 ok", "findings": "none"}
    same |= {"notes": "1"}  # that there is no reference
    ran = [("N=32", "1"), ("N=40", "2"), ("N=64", "1 for 2")]
    assert rows == [{**same, "shape": shape, "workgroups": workgroups} for shape, workgroups in ran]
    line = "audit: 3 of 3 cases clean; compared with expected counters (3); 3 not compared with wgpu: not asked for; "
    assert lines[-1].partition("; took")[0] == line + "3 outputs unchecked, with a reason in the manifest"


@pytest.mark.usefixtures("adapter")
def test_what_a_gpu_was_held_to_is_said(tmp_path):
    _, rows, _ = table(tmp_path, SHADER)
    assert [row["wgpu"] for row in rows] == ["exact"] * 3


def test_a_case_that_is_not_clean_is_shown_whole_below_its_row(tmp_path):
    code, rows, lines = table(tmp_path, RACY, "--no-gpu")
    assert code == 1
    assert {(row["verdict"], row["findings"], row["counters"]) for row in rows} == {("NOT OK", "FOUND race", "1 ok")}
    assert sum("charged as nvidia" in line for line in lines) == 3
    assert lines[-1].startswith("audit: 0 of 3 cases clean; 3 failed; compared with expected counters (3); ")

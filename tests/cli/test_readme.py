"""What the README shows is what happens."""

import re
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.oracle.manifests import manifest_loader

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def block(language):
    text, *_ = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    return text


def test_the_python_example_runs():
    names = {}
    exec(block("python"), names)
    run = names["run"]
    np.testing.assert_array_equal(run.outputs["y"], np.arange(8, dtype=np.float32) * 2)
    assert run.counters["flops"] == 8


def test_the_manifest_example_loads(tmp_path):
    (tmp_path / "matmul.wgsl").write_text("")
    (tmp_path / "matmul.toml").write_text(block("toml").replace("[[sweep]]", "[bind.Y]\ndtype='f32'\n"
                                          "shape=['M','N']\ninit='zeros'\n[[sweep]]"))  # fmt: skip
    kernel = manifest_loader.load(tmp_path / "matmul.toml")
    assert [str(s) for s in kernel.shapes] == ["M=1 K=52 N=768", "M=65 K=52 N=768"]


def test_the_audit_example_is_real(monkeypatch):
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(
        main, ["audit", "shaders/matmul.toml", "--kernel", "matmul", "--set", "M=512", "--no-gpu"]
    )
    assert result.exit_code == 0
    printed = {" ".join(line.split()) for line in result.stdout.splitlines()}
    shown = [" ".join(line.split()) for line in block("text").splitlines() if "wgpu" not in line]
    assert len(shown) > 15
    assert [line for line in shown if line not in printed] == []

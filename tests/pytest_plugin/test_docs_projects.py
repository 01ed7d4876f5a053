"""docs/projects.md is followed exactly, in a repository in Rust and in one in TypeScript."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bankshot.sim.disk_cache import cache_home

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "projects.md").read_text()
FILES = {
    "src/shaders/scale.wgsl": "wgsl",
    "src/shaders/scale.toml": "toml",
    "src/shaders/reference.py": "python",
    "tests/kernels.rs": "rust",
    "tests/kernels.test.mjs": "js",
}
CARGO = '[package]\nname = "project"\nversion = "0.1.0"\nedition = "2021"\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project with the page's files, and a function that runs its commands; goldens are there."""
    folder = tmp_path_factory.mktemp("project")
    for name, language in FILES.items():
        (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
        assert f"`{name}`" in PAGE
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "Cargo.toml").write_text(CARGO)
    (folder / "src" / "lib.rs").write_text("")
    command = folder / "bin" / "bankshot"  # where a shell finds it, installed or not
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m bankshot "$@"\n')
    command.chmod(0o755)
    environment = os.environ | {
        "PATH": f"{command.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "BANKSHOT_CACHE": str(cache_home().parent),
    }

    def run(line):
        assert f"    {line}\n" in PAGE
        return subprocess.run(line, shell=True, cwd=folder, env=environment, capture_output=True, text=True)

    assert run("bankshot audit src/shaders --update-golden").returncode == 0
    run.folder = folder
    return run


@pytest.mark.parametrize(
    ("program", "line"), [("cargo", "cargo test --test kernels"), ("node", "node --test tests/kernels.test.mjs")]
)
def test_the_tests_of_a_project_pass_and_notice_a_fault(project, program, line):
    if not shutil.which(program):
        pytest.skip(f"needs {program} in PATH")
    done = project(line)
    assert done.returncode == 0, done.stdout + done.stderr
    kernel = project.folder / "src/shaders/scale.wgsl"
    text = kernel.read_text()
    kernel.write_text(text.replace("3.0 *", "2.0 *"))
    try:
        done = project(line)
    finally:
        kernel.write_text(text)
    assert done.returncode != 0
    assert "DIFFERS" in done.stdout + done.stderr

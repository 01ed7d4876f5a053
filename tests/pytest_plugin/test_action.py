"""The steps of action.yml run as GitHub runs them, but for those that install."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from bankshot.sim.disk_cache import cache_home

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "action.yml").read_text()
ACTION = yaml.safe_load(TEXT)
MANIFEST = """\
[kernel]
source = "k.wgsl"
dispatch = [1]
[bind.x]
dtype = "f32"
shape = [32]
init = "normal"
"""
SHADER = """\
@group(0) @binding(0) var<storage, read_write> x: array<f32, 32>;
@compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) { x[i] = 2 * x[i]; }
"""


def inputs():
    """The inputs of the action, with their defaults."""
    return {name: each["default"] for name, each in ACTION["inputs"].items()}


def step(name):
    """A step, by its name."""
    (found,) = (each for each in ACTION["runs"]["steps"] if each.get("name") == name)
    return found


@pytest.fixture
def audit(tmp_path):
    """Run the step that audits, with inputs."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels/k.wgsl").write_text(SHADER)
    (tmp_path / "kernels/k.toml").write_text(MANIFEST)
    program = tmp_path / "temp/bankshot/bin/bankshot"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m bankshot "$@"\n')
    program.chmod(0o755)

    def run(**given):
        audits, values = step("Audit"), inputs() | given
        variables = {
            name: value.removeprefix("${{ inputs.").removesuffix(" }}") for name, value in audits["env"].items()
        }
        environment = os.environ | {name: values[value] for name, value in variables.items()}
        environment |= {
            "RUNNER_TEMP": str(tmp_path / "temp"),
            "GITHUB_ACTIONS": "true",
            "CI": "true",
            "PYTHONPATH": str(ROOT),
            "BANKSHOT_CACHE": str(cache_home().parent),
        }
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", audits["run"]]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    run.folder = tmp_path
    return run


@pytest.mark.usefixtures("adapter")
def test_a_right_kernel_passes_and_leaves_sarif(audit):
    done = audit(paths="kernels", options="--device amd")
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"2.1.0"' in (audit.folder / "bankshot.sarif").read_text()


def test_an_output_that_nothing_checks_fails_without_wgpu(audit):
    done = audit(paths="kernels", gpu="false")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "UNCHECKED" in done.stdout


def test_inputs_are_never_part_of_a_script():
    """A branch or file name must not become a command."""
    assert "${{" not in step("Install")["run"] + step("Audit")["run"]
    assert set(re.findall(r"inputs\.(\w+)", TEXT)) == set(inputs())

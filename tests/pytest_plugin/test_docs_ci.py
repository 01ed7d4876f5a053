"""docs/ci.md is followed exactly in a repository of its own: its files, its commands, what it promises."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.sim.disk_cache import cache_home

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ci.md").read_text()
WORKFLOW = (ROOT / "docs" / "ci.yml").read_text()

FILES = {"kernels/transpose.wgsl": "wgsl", "kernels/transpose.toml": "toml", "kernels/test_transpose.py": "python"}


def block(language):
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


class Repository:
    """A folder in which the page's commands are run as people would, in processes of their own."""

    def __init__(self, path):
        self.path = path
        for name, language in FILES.items():
            assert f"`{name}`" in PAGE
            (path / name).parent.mkdir(exist_ok=True)
            (path / name).write_text(block(language))
        self.environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # the plugin is given by name, installed or not
            "PYTEST_ADDOPTS": "-p bankshot.oracle.pytest_plugin.hooks -p no:cacheprovider",
            "BANKSHOT_CACHE": str(cache_home().parent),
        }

    def __call__(self, command, **environment):
        """Run a command of the page, which must say it."""
        assert command in PAGE + WORKFLOW
        program, *arguments = shlex.split(command)
        module = {"pytest": "pytest", "bankshot": "bankshot"}[program]
        return subprocess.run(
            [sys.executable, "-m", module, *arguments],
            cwd=self.path,
            env=self.environment | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def replace(self, name, old, new):
        text = (self.path / name).read_text()
        assert old in text
        (self.path / name).write_text(text.replace(old, new))


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    return Repository(tmp_path_factory.mktemp("repository"))


@pytest.mark.usefixtures("adapter")
def test_the_page_is_true(repository):
    done = repository("bankshot audit kernels --no-gpu")
    assert done.returncode == 1
    assert "golden transpose-W32-H96.json: there is none" in done.stdout
    assert "DIFFERS  golden" in done.stdout
    assert done.stdout.count("DIFFERS") == 1  # the golden of the first shape, and nothing else
    assert "failed in 1 more case of transpose: W=64 H=96" in done.stdout

    done = repository("pytest kernels --bankshot-update", CI="true")
    assert (done.returncode, "CI is set" in done.stderr) == (4, True)
    done = repository("pytest kernels --bankshot-update")
    assert done.returncode == 0, done.stdout
    made = sorted(file.name for file in (repository.path / "kernels/golden").iterdir())
    assert made == [
        "test_transpose-test_a_tile_costs_nothing_extra.json",
        "transpose-W32-H96.json",
        "transpose-W64-H96.json",
    ]
    done = repository("pytest kernels", CI="true")
    assert (done.returncode, "5 passed" in done.stdout) == (0, True), done.stdout

    repository.replace("kernels/transpose.wgsl", "const PITCH", "// The pitch of a row.\nconst PITCH")
    assert repository("pytest kernels").returncode == 0
    repository.replace("kernels/transpose.wgsl", "// The pitch of a row.\n", "")
    repository.replace("kernels/transpose.wgsl", "PITCH = 33u", "PITCH = 32u")
    done = repository("pytest kernels")
    assert done.returncode == 1
    assert block("text").strip() in map(str.strip, done.stdout.splitlines())


@pytest.mark.usefixtures("adapter")
def test_the_workflow_runs(repository):
    """After the test above has made the goldens and broken the kernel."""
    (command,) = re.findall(r"run: (pytest .*)", WORKFLOW)
    summary = repository.path / "summary.md"
    done = repository(
        command, CI="true", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary), BANKSHOT_REQUIRE_GPU="1",
        GITHUB_WORKSPACE=str(repository.path),
    )  # fmt: skip
    assert done.returncode == 1, done.stdout + done.stderr
    words = block("text").strip()
    assert f"::error file=kernels/transpose.wgsl,line=17,title=bankshot%3A golden::{words} (in 2 cases)" in done.stdout
    assert f"`golden` {words}" in summary.read_text()
    for name in re.findall(r"kernels\.\w+", command):
        assert (repository.path / name).stat().st_size
        assert WORKFLOW.count(name) == 2  # written and uploaded
    assert "BANKSHOT_REQUIRE_GPU" in WORKFLOW


def test_every_option_of_the_page_exists():
    help_ = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "bankshot.oracle.pytest_plugin.hooks", "--help", "-o", "addopts="],
        cwd=ROOT, capture_output=True, text=True, check=False, env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    ).stdout  # fmt: skip
    ours = [CliRunner().invoke(main, [*command, "--help"]).output for command in (["audit"], ["golden", "review"])]
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert len(named) > 12
    assert {option for option in named if not any(option in text for text in (help_, *ours))} == set()
    assert set(re.findall(r"--bankshot-[a-z]+", help_)) - named == set()

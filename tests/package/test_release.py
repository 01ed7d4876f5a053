"""What a release consists of: one version, a changelog, an sdist that builds the same wheel, and workflows."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import bankshot

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def build(target: str, source: Path, into: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = into.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    """The unpacked sdist."""
    archive = build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))
    folder = tmp_path_factory.mktemp("source")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data")
    (source,) = folder.iterdir()
    return source


def test_there_is_one_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    locked = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    (own,) = [each for each in locked if each["name"] == "bankshot"]
    assert bankshot.__version__ == project["version"] == own["version"]


def test_the_changelog_has_a_section_for_this_version_or_what_comes_next():
    sections = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert bankshot.__version__ in sections
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", section) for section in sections[1:])


def test_the_sdist_builds_the_wheel_of_the_checkout(sdist, tmp_path):
    names = []
    for source in (ROOT, sdist):
        into = tmp_path / source.name
        into.mkdir()
        with zipfile.ZipFile(build("wheel", source, into)) as wheel:
            names.append(sorted(wheel.namelist()))
    assert names[0] == names[1]


def test_the_sdist_has_what_its_tests_need(sdist):
    """Release.yml runs tests/package on it."""
    needed = (
        "tools/setup.sh",
        "uv.lock",
        "Makefile",
        "tests/package/test_wheel.py",
        "tests/conftest.py",
        "tools/words.py",
    )
    assert [name for name in needed if not (sdist / name).is_file()] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_is_complete(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    jobs = workflow["jobs"]
    for job in jobs.values():
        needs = job.get("needs", [])
        assert ({needs} if isinstance(needs, str) else set(needs)) <= set(jobs)
        assert all(("run" in step) != ("uses" in step) for step in job["steps"])


def test_workflows_run_targets_and_files_that_exist():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"run: make ([\w-]+)", text)
    assert targets
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
    files = re.findall(r"(?:\s|: )((?:\.ci|tools|tests)/[\w./-]+)", text)
    assert {".ci/run", "tools/setup.sh", "tests/package"} <= set(files)
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_nothing_is_published_before_all_checks():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))["jobs"]
    assert set(jobs["publish"]["needs"]) == {"build", "install", "test"}
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "run" not in "".join(str(step) for step in jobs["publish"]["steps"])

"""The pytest plugin in processes of its own: on workers, without a manifest, and left out."""

import subprocess
import sys
from pathlib import Path

import pytest

from bankshot.sim.disk_cache import cache_home
from tests.pytest_plugin.small_kernel import CONFLICTS

ROOT = Path(__file__).parents[2]


def pytest_in_a_process(project, *arguments):
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "bankshot.oracle.pytest_plugin.hooks",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    return subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)


@pytest.fixture
def _importable(monkeypatch):
    """From other folders too, and compiled already: pytester gives its children a home of their own."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("BANKSHOT_CACHE", str(cache_home().parent))


@pytest.mark.usefixtures("_importable")
def test_workers_share_the_tests_and_one_process_tells(project, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(project.path / "summary.md"))
    xdist = ("-p", "xdist", "-n", "2")
    done = pytest_in_a_process(project, *xdist, "--bankshot-update")
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(file.name for file in project.goldens.iterdir()) == ["k-N32.json", "k-N64.json"]
    project.edit("k.wgsl", *CONFLICTS)
    (project.path / "summary.md").unlink()
    done = pytest_in_a_process(project, *xdist)
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.count("::error file=k.wgsl,line=5,") == 1
    assert (project.path / "summary.md").read_text().count("### bankshot: 2 of 3 cases") == 0
    assert (project.path / "summary.md").read_text().count("### bankshot: 2 of 2 cases failed") == 1


@pytest.mark.usefixtures("_importable")
def test_loading_it_brings_nothing_heavy(project):
    """Nor does collecting a folder that has no manifest."""
    (project.path / "k.toml").unlink()
    (project.path / "test_light.py").write_text(
        "import sys\n\ndef test_light():\n"
        "    assert not {'numpy', 'numba', 'wgpu', 'rich', 'click'} & set(sys.modules)\n"
    )
    done = pytest_in_a_process(project)
    assert done.returncode == 0, done.stdout


@pytest.mark.usefixtures("_importable")
def test_without_it_manifests_are_no_tests(project):
    (project.path / "test_one.py").write_text("def test_one(): pass\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:bankshot.oracle.pytest_plugin.hooks", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=project.path, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout

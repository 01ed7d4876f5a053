"""The wheel, installed in an environment of its own: one top-level package that leaves other people's `sim` alone."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USER = Path(__file__).parent / "user"


def run(*command: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV"))}
    return subprocess.run(
        [str(each) for each in command], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    done = run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the wheel, and the packages of this one, but not this checkout."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    packages = Path(next(folder.glob("lib/python*/site-packages")))
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(packages)
    (packages / "packages.pth").write_text("\n".join(site.getsitepackages()), encoding="utf-8")
    return folder / "bin" / "python"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A user's repository, whose own folders are named like Bankshot's."""
    folder = shutil.copytree(USER, tmp_path / "user", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "tests" / "check_own_packages.py").rename(folder / "tests" / "test_own_packages.py")
    return folder


def test_a_wheel_has_one_top_level_package(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = {name.split("/")[0] for name in archive.namelist()}
        files = set(archive.namelist())
    assert {name for name in names if not name.endswith(".dist-info")} == {"bankshot"}
    assert {"bankshot/py.typed", "bankshot/sim/__init__.py", "bankshot/oracle/reports/templates/case.html.j2"} <= files


def test_a_repository_with_a_sim_of_its_own_passes_its_tests(python, repository):
    done = run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=repository)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout


def test_the_wheel_is_what_is_imported_there(python, repository):
    code = "import bankshot.sim, bankshot.oracle; print(bankshot.__path__, bankshot.sim.__file__)"
    done = run(python, "-c", code, cwd=repository)
    assert done.returncode == 0, done.stderr
    assert str(ROOT) not in done.stdout


def test_the_command_works_there(python, repository):
    (repository / "k.wgsl").write_text("@compute @workgroup_size(1) fn main() {}", encoding="utf-8")
    done = run(python, "-m", "bankshot", "check", "k.wgsl", cwd=repository)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_folder_of_the_checkout_is_not_imported_by_a_short_name():
    done = run(sys.executable, "-c", "import sim", cwd=ROOT)
    assert "ImportError: import it as bankshot.sim" in done.stderr


# mypy takes a literal of values of several types for one of objects, which cannot be bound.
@pytest.mark.parametrize(("checker", "right"), [("mypy", ["snippet.py"]), ("pyright", ["snippet.py", "program.py"])])
def test_a_type_checker_finds_each_error_and_nothing_in_right_programs(checker, right, python, repository):
    """In one run, which reads the package once."""
    done = types(checker, [*right, "errors.py"], python, repository)
    assert done.returncode == 1, done.stdout + done.stderr
    assert [name for name in right if name in done.stdout] == []
    wrong = [n for n, line in enumerate((USER / "errors.py").read_text().splitlines(), 1) if "#" in line]
    assert {n for n in wrong if f"errors.py:{n}:" not in done.stdout} == set()


def types(checker: str, files: list[str], python: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Check files strictly."""
    if checker == "mypy":
        options = ("--strict", "--cache-dir", os.devnull, "--python-executable", python)
        return run(sys.executable, "-m", "mypy", *options, *files, cwd=folder)
    (folder / "pyrightconfig.json").write_text(json.dumps({"include": files, "strict": files}))
    return run(Path(sys.executable).with_name("pyright"), "-p", folder, "--pythonpath", python, cwd=folder)

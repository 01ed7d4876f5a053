"""No command runs a Python file that was not named; what runs code by design is in docs/trust.md."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from bankshot.oracle.cli.main import main
from bankshot.sim import child_program
from tests.scaling import PARAMS, SHADER, manifest

ROOT = Path(__file__).parents[2]
# Modules that Bankshot, its children or what they import bring, of Python and of others.
NAMES = (
    "multiprocessing json numpy typing click signal pickle subprocess numba llvmlite rich wgpu cffi difflib ctypes "
    "tomllib threading select queue tempfile html csv resource_tracker spawn sitecustomize usercustomize runpy"
)


@pytest.fixture
def poisoned(tmp_path):
    """A folder of kernels with files called as modules, each of which leaves a trace where it is run."""
    for name in NAMES.split():
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write('{name} ')\n")
    for size in (40, 64):
        (tmp_path / f"of_{size}.toml").write_text(manifest(PARAMS, n=size))
    (tmp_path / "scale.wgsl").write_text(SHADER)
    return tmp_path


def started(folder, arguments):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "arguments",
    [
        "check scale.wgsl",
        "audit . --no-gpu --jobs 2",
        "sweep . --out table.csv --jobs 2",
        "corpus . --jobs 1",
    ],
)
def test_files_beside_kernels_are_not_run(poisoned, arguments, request):
    if "corpus" in arguments:
        request.getfixturevalue("adapter")
    done = started(poisoned, [sys.executable, "-m", "bankshot", *arguments.split()])
    assert not (poisoned / "ran").exists(), (poisoned / "ran").read_text()
    assert done.returncode in (0, 1), done.stderr


def test_the_poison_works(poisoned):
    started(poisoned, [sys.executable, "-c", "import json, multiprocessing"])
    assert {"json", "multiprocessing"} <= {*(poisoned / "ran").read_text().split()}


def test_processes_of_our_own_import_nothing_from_the_current_folder(poisoned, monkeypatch):
    """Those that compile the machine, and those that run wgpu and references, are started in this way."""
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    program = "import json, multiprocessing, bankshot; print(bankshot.__file__, sys.argv[1])"
    done = started(poisoned, child_program.command(program, "given"))
    assert done.stdout == f"{ROOT / 'bankshot' / '__init__.py'} given\n"
    assert not (poisoned / "ran").exists()


# ---- --no-code ---------------------------------------------------------------------------------------

NAMED = {
    "reference": ('reference = "own.py:expected"', "not run, as --no-code leaves out reference own.py:expected"),
    "preprocess": ('preprocess = "touch ran"', "not run, as --no-code leaves out preprocessor touch ran"),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("options", [[], ["--jobs", "1"]])
def test_without_code_a_kernel_that_names_some_is_an_error(tmp_path, monkeypatch, name, options):
    monkeypatch.chdir(tmp_path)
    line, message = NAMED[name]
    Path("own.py").write_text("open('ran', 'w')\ndef expected(arrays, dims): return {'y': arrays['x']}\n")
    Path("scale.wgsl").write_text(SHADER)
    Path("named.toml").write_text(manifest(PARAMS, kernel=f"{line}\n"))
    Path("plain.toml").write_text(manifest(PARAMS))
    done = CliRunner().invoke(main, ["audit", ".", "--no-gpu", "--no-code", *options])
    assert done.exit_code == 2
    assert message in done.output
    assert not Path("ran").exists()


def test_a_preprocessor_on_the_command_line_contradicts_no_code(tmp_path):
    (tmp_path / "k.wgsl").write_text("@compute @workgroup_size(1) fn main() {}")
    done = CliRunner().invoke(main, ["audit", str(tmp_path / "k.wgsl"), "--no-code", "--preprocess", "cat"])
    assert (done.exit_code, "pass one of them" in done.output) == (2, True)

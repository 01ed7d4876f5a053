"""The two ways to compile the machine: which one is taken, what each imports, and that both compute the same."""

import ast
import os
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from everything import EVERYTHING

import bankshot
from bankshot.sim.machine.compile import build, loader, object_files, paths
from bankshot.sim.run.counters import Counters

ROOT = Path(__file__).parents[2]
COMPILE = ROOT / "sim" / "machine" / "compile"
FAST_ONLY = {"fast", "inlining", "numba_codegen", "numba_passes", "packed_arrays"}  # what knows Numba's inside
COUNTERS = [field.name for field in fields(Counters)]
WHICH = "from bankshot.sim.machine.compile import units; print(units.path.__name__.rpartition('.')[2])"
# Found by Python as it starts: the fast path cannot be imported then, as with a Numba that has moved what it needs.
BROKEN = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name.endswith("compile.numba_codegen"):
            raise ImportError("cannot import name 'CPUCodeLibrary' from 'numba.core.codegen'")
sys.meta_path.insert(0, Broken())
"""
SIMULATE = "import bankshot; bankshot.simulate('@compute @workgroup_size(1) fn main() {}', grid=1)"


@pytest.fixture(autouse=True)
def _not_requested(monkeypatch):
    monkeypatch.delenv(paths.VARIABLE, raising=False)


# ---- which one ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numba", "path"), [((0, 60), "plain"), ((0, 61), "fast"), ((0, 68), "fast"), ((0, 69), "plain"), ((1, 0), "plain")]
)
def test_the_fast_path_is_for_versions_of_numba_that_were_tested(monkeypatch, numba, path):
    monkeypatch.setattr(paths, "numba_version", lambda: numba)
    assert paths.wanted() == path


def test_an_install_takes_the_tested_versions_and_the_next_one_which_gets_the_plain_path():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    required = re.search(r'"numba>=(\d+)\.(\d+),<(\d+)\.(\d+)"', text)
    assert required is not None
    oldest, end = tuple(map(int, required.groups()[:2])), tuple(map(int, required.groups()[2:]))
    major, minor = paths.NEWEST_TESTED
    assert (oldest, end) == (paths.OLDEST_TESTED, (major, minor + 2))


def test_the_version_is_that_of_the_numba_that_is_imported(monkeypatch, tmp_path):
    import numba

    assert paths.numba_version.__wrapped__() == numba.version_info.short
    (tmp_path / "_version.py").write_text("def get_versions(): ...")  # as in a checkout
    monkeypatch.setattr(paths, "version_file", lambda package: tmp_path / "_version.py")
    assert paths.numba_version.__wrapped__() == numba.version_info.short


@pytest.mark.parametrize("path", ["fast", "plain"])
@pytest.mark.parametrize("numba", [(0, 61), (0, 99)])
def test_the_variable_asks_for_a_path(monkeypatch, numba, path):
    monkeypatch.setattr(paths, "numba_version", lambda: numba)
    monkeypatch.setenv(paths.VARIABLE, path)
    assert paths.wanted() == path


def test_the_variable_has_two_values(monkeypatch):
    monkeypatch.setenv(paths.VARIABLE, "quick")
    with pytest.raises(ValueError, match="BANKSHOT_COMPILE must be fast or plain, not 'quick'"):
        loader._machine.__wrapped__()
    monkeypatch.setenv(paths.VARIABLE, "")
    assert paths.requested() is None


# ---- where the fast one fails ------------------------------------------------------------------------


def python(program, folder, **environment):
    paths_ = os.pathsep.join((str(folder), str(ROOT)))
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths_, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def broken(tmp_path):
    """A folder on whose path the fast path cannot be imported."""
    (tmp_path / "sitecustomize.py").write_text(BROKEN)
    return tmp_path


def test_where_the_fast_path_cannot_be_imported_the_plain_one_is(broken):
    done = python(WHICH, broken)
    assert done.stdout == "plain\n"
    if paths.wanted() == paths.FAST:
        assert done.stderr.startswith("bankshot: the fast compile path fails with this Numba (ImportError: cannot imp")
        assert done.stderr.count("\n") == 1


def test_a_path_that_is_asked_for_is_not_replaced(broken):
    done = python(WHICH, broken, BANKSHOT_COMPILE="fast")
    assert done.returncode != 0
    assert "CPUCodeLibrary" in done.stderr
    done = python(SIMULATE, broken, BANKSHOT_COMPILE="fast", BANKSHOT_CACHE=str(broken))
    assert "CompileError: ImportError: cannot import name 'CPUCodeLibrary'" in done.stderr
    assert "compile path fails" not in done.stderr


@pytest.mark.skipif(paths.wanted() != paths.FAST, reason="this Numba is newer than those the fast path is for")
def test_a_simulation_takes_the_plain_path_where_the_fast_one_fails(plain_folder, broken):
    cache = broken / "cache"
    (cache / "bankshot").mkdir(parents=True)
    (cache / "bankshot" / plain_folder.name).symlink_to(plain_folder)
    first, second = (python(SIMULATE, broken, BANKSHOT_CACHE=str(cache)) for _ in range(2))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    begun, told = first.stderr.splitlines()
    assert begun.startswith("bankshot: compiling the machine")
    assert told.startswith("bankshot: the fast compile path fails with this Numba (ImportError: cannot import name")
    assert second.stderr == ""  # what failed is not tried again


def test_what_fails_to_compile_is_replaced_once(monkeypatch, tmp_path, capsys):
    tried = []

    def compiled(folder, path):
        tried.append(path)
        if path == paths.FAST:
            raise paths.CompileError("TypeError: no such pass")
        folder.mkdir(parents=True)
        (folder / object_files.INDEX).write_text('{"files": []}')
        return folder

    monkeypatch.setattr(paths, "numba_version", lambda: paths.NEWEST_TESTED)
    monkeypatch.setattr(loader, "cache_folder", lambda path: tmp_path / path)
    monkeypatch.setattr(build, "build", compiled)
    monkeypatch.setattr(loader, "load", lambda folder, index: folder.name)
    assert [loader._machine.__wrapped__() for _ in range(2)] == ["plain", "plain"]
    assert tried == ["fast", "plain"]
    assert capsys.readouterr().err.count("(TypeError: no such pass); using the plain one\n") == 1


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('print(\'{"failed": "no"}\')', "no"),
        ("import os; os.abort()", "the compiler ended with status -6"),
        ("", "the compiler ended with status 0"),
    ],
)
def test_a_worker_that_fails_ends_the_compilation(program, said):
    with pytest.raises(paths.CompileError, match=said):
        finish(program)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('print(\'{"failed": "OSError: no space", "again": false}\')', "OSError: no space"),
        ("import os; os.kill(os.getpid(), 9)", "compiling the machine was ended by SIGKILL"),
    ],
)
def test_a_failure_that_may_not_occur_again_is_not_the_path_s(program, said):
    with pytest.raises(RuntimeError, match=said) as caught:
        finish(program)
    assert not isinstance(caught.value, paths.CompileError)


def finish(program):
    """Wait for a worker that goes on for long, and for one that does not."""
    slow = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdout=subprocess.PIPE, text=True)
    fails = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    try:
        build._finish([slow, fails])
    finally:
        for each in (slow, fails):
            each.kill()
            each.communicate()


# ---- what they import --------------------------------------------------------------------------------


def _imported(file):
    """What a file imports of Numba, by full names."""
    text = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(text)) if "numba" in text else ():  # most do not name it, and parsing takes long
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{each.name}" for each in node.names)
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)


PYTHON = [file for top in ("bankshot", "sim", "oracle", "tools") for file in sorted((ROOT / top).rglob("*.py"))]
OUTSIDE = [file for file in PYTHON if not (file.parent == COMPILE and file.stem in FAST_ONLY)]


def test_only_the_fast_path_knows_the_inside_of_numba():
    documented = r"numba\.(njit|types|cfunc|carray|extending\.(intrinsic|register_jitable)|core\.cgutils)"
    assert OUTSIDE
    for file in OUTSIDE:
        foreign = [name for name in _imported(file) if name.split(".")[0] == "numba"]
        assert [name for name in foreign if not re.fullmatch(documented, name)] == [], file
        inside = re.search(r"numba\.(np|core(?!\.cgutils))\b(?! import cgutils)", file.read_text(encoding="utf-8"))
        assert not inside, file


def test_the_fast_path_has_files_of_its_own():
    assert {file.stem for file in COMPILE.glob("*.py")} >= FAST_ONLY
    done = python(f"import sys; {WHICH}; print(*sys.modules)", ROOT, BANKSHOT_COMPILE="plain")
    assert done.stdout.splitlines()[0] == "plain"
    assert not {f"bankshot.sim.machine.compile.{name}" for name in FAST_ONLY} & {*done.stdout.split()}


# ---- what they compute -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def plain_folder():
    """The machine by the plain path, compiled once and kept."""
    loader._compiled(paths.PLAIN)
    return loader.cache_folder(paths.PLAIN)


@pytest.mark.skipif(paths.wanted() != paths.FAST, reason="this Numba is newer than those the fast path is for")
def test_both_compute_the_same(monkeypatch):
    x = np.linspace(0.01, 0.99, 256, dtype=np.float32)
    given = {"x": x, "y": np.zeros(256, np.float32), "sum": np.zeros(1, np.uint32)}
    module, seen = bankshot.check(EVERYTHING), []
    for machine in map(loader._compiled, (paths.FAST, paths.PLAIN)):
        monkeypatch.setattr("bankshot.sim.launch.workspace.machine", lambda machine=machine: machine)
        done = bankshot.simulate(module, grid=4, bindings=given, probes="all")
        bits = [{n: array.tobytes() for n, array in arrays.items()} for arrays in (done.outputs, done.bounds)]
        sites = [(site.site, [getattr(site, name) for name in COUNTERS]) for site in done.sites]
        seen.append((*bits, dict(done.counters), sites, done.findings))
    assert np.isfinite(np.frombuffer(seen[0][0]["y"], np.float32)).any()
    assert len({finding.code for finding in seen[0][-1]}) >= 4
    assert seen[0] == seen[1]

"""The machine on disk: what a later process loads, and what it does where that is not whole."""

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import bankshot
from bankshot.sim.machine.compile import build, loader, object_files, paths
from bankshot.sim.machine.compile.object_files import find

UNIT = "bankshot.sim.machine.trace.trace"
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, numpy as np, bankshot
source = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\\n"
source += "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = sqrt(f32(i)); }"
done = bankshot.simulate(source, grid=1, bindings={"y": np.zeros(8, np.float32)})
assert np.array_equal(done.outputs["y"], np.sqrt(np.arange(8, dtype=np.float32)))
print(*({"numba", "llvmlite"} & {*sys.modules}))
"""


@pytest.fixture
def copy(tmp_path):
    """A folder for one test that holds the compiled machine."""
    bankshot.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)
    folder = tmp_path / "bankshot" / _folder().name
    shutil.copytree(_folder(), folder)
    return folder


def _folder():
    return loader.cache_folder(paths.wanted())


def run(folder):
    environment = {**os.environ, "BANKSHOT_CACHE": str(folder.parents[1]), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def damaged(folder, name, content):
    """An object file or an index that is not as it was written. None: it is gone."""
    file = find(folder, name) or folder / name
    old = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content(old))


GONE, SHORT, EMPTY, CHANGED = None, lambda old: old[:-100], lambda old: b"", lambda old: old[:5000] + b"?" + old[5001:]


def test_a_later_process_needs_no_compiler(copy):
    assert run(copy) == ("llvmlite", "")


@pytest.mark.parametrize(("what", "to"), [("__version__", "2.9.9"), ("processor", "another"), ("NUMBA_OPT", "1")])
def test_other_versions_and_processors_have_machines_of_their_own(monkeypatch, what, to):
    here = loader.cache_folder.__wrapped__(paths.wanted())
    assert here == _folder()
    match what:
        case "__version__":
            monkeypatch.setattr(np, what, to)
        case "processor":
            monkeypatch.setattr(loader, "_processor", lambda: to)
        case _:
            monkeypatch.setenv(what, to)
    assert loader.cache_folder.__wrapped__(paths.wanted()) != here


def test_another_release_of_the_compiler_has_a_machine_of_its_own(monkeypatch, tmp_path):
    here, file = _folder(), paths.version_file
    (tmp_path / "_version.py").write_text("version = 'another'")
    for other in ("numba", "llvmlite"):
        monkeypatch.setattr(
            paths, "version_file", lambda name, other=other: tmp_path / "_version.py" if name == other else file(name)
        )
        assert loader.cache_folder.__wrapped__(paths.wanted()) != here


def test_the_processor_is_known_by_what_does_not_change():
    first = loader._processor()
    assert first == loader._processor()
    assert any(word in first for word in ("flags", "Features", "+"))  # by Linux, or LLVM
    assert "MHz" not in first


def test_code_that_calls_numbas_helpers_is_loaded_with_numba(copy):
    index = json.loads((copy / object_files.INDEX).read_text())
    (copy / object_files.INDEX).write_text(json.dumps({**index, "needs_numba": True}))
    loaded, _ = run(copy)
    assert "numba" in loaded


@pytest.mark.parametrize("damage", [GONE, CHANGED, SHORT, EMPTY])
@pytest.mark.parametrize("name", [UNIT, object_files.INDEX])
def test_what_is_damaged_is_noticed(copy, name, damage):
    assert loader._is_whole(copy, loader._index(copy))
    damaged(copy, name, damage)
    assert not loader._is_whole(copy, loader._index(copy))


@pytest.mark.parametrize(("name", "damage"), [(UNIT, CHANGED), (object_files.INDEX, SHORT)])
def test_what_is_damaged_is_compiled_again(copy, name, damage):
    damaged(copy, name, damage)
    _, said = run(copy)
    assert "compiling the machine" in said
    assert find(copy, name) or name == object_files.INDEX
    assert run(copy)[1] == ""


def test_without_a_folder_to_write_to_the_machine_is_compiled_for_one_process(tmp_path, capsys):
    (tmp_path / "file").touch()
    folder = object_files.writable(tmp_path / "file" / "machine")
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    assert "cannot be kept" in capsys.readouterr().err


def test_a_unit_that_a_process_cannot_load_is_noticed(copy):
    index = loader._index(copy)
    assert build._loads(copy, index, needs_numba=False)
    index["files"] = [name for name in index["files"] if ".atomics." not in name]  # which `core.run` calls
    assert not build._loads(copy, index, needs_numba=False)


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError, match="other arrays"):
        loader.machine().record(np.zeros(3, np.float32))


def test_of_several_threads_one_loads(monkeypatch):
    loaded = []

    def slow(folder):
        time.sleep(0.02)
        loaded.append(folder)
        return "machine"

    monkeypatch.setattr(loader, "_machine", loader.cache(loader._machine.__wrapped__))
    monkeypatch.setattr(loader, "_compiled", slow)
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: loader.machine(), range(4))) == ["machine"] * 4
    assert len(loaded) == 1

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

import sim
from sim.machine import jit, native

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, numpy as np, sim
source = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\\n"
source += "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = sqrt(f32(i)); }"
done = sim.simulate(source, grid=1, bindings={"y": np.zeros(8, np.float32)})
assert np.array_equal(done.outputs["y"], np.sqrt(np.arange(8, dtype=np.float32)))
print("numba" in sys.modules)
"""


@pytest.fixture
def copy(tmp_path):
    """A folder of one's own that holds the compiled machine."""
    sim.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)
    folder = tmp_path / "bankshot" / native.cache_folder().name
    shutil.copytree(native.cache_folder(), folder)
    return folder


def run(folder):
    environment = {**os.environ, "BANKSHOT_CACHE": str(folder.parents[1]), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def test_a_later_process_needs_no_compiler(copy):
    assert run(copy) == ("False", "")


def test_code_that_calls_numbas_helpers_is_loaded_with_numba(copy):
    index = json.loads((copy / native.INDEX).read_text())
    (copy / native.INDEX).write_text(json.dumps({**index, "needs_numba": True}))
    assert run(copy) == ("True", "")


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(file.read_bytes()[:-100]), Path.unlink])
def test_a_damaged_file_is_compiled_again(copy, damage):
    symbol = "bankshot.sim.machine.tracing.trace"
    damage(native.find(copy, symbol))
    assert native.find(copy, symbol) is None
    _, said = run(copy)
    assert "compiling the machine" in said
    assert native.find(copy, symbol) is not None
    assert run(copy) == ("False", "")


def test_without_a_folder_to_write_to_the_machine_is_compiled_for_one_process(tmp_path, capsys):
    (tmp_path / "file").touch()
    folder = jit.writable(tmp_path / "file" / "machine")
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    assert "cannot be kept" in capsys.readouterr().err


def test_a_part_that_a_process_cannot_load_alone_is_noticed(copy):
    index = json.loads((copy / native.INDEX).read_text())
    index["units"][0]["symbol"] = "missing"  # which others call
    order = "native.load_all(sys.argv[1], sys.argv[2])"
    assert jit.started(order, str(copy), json.dumps(index), stderr=subprocess.DEVNULL).wait() != 0


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError, match="other arrays"):
        native.machine_for(set())(np.zeros(3, np.float32))


def test_threads_load_one_after_the_other(monkeypatch):
    """LLVM's engine crashes where two threads add to it at once."""

    class Slow:
        inside, most, ready = 0, 0, None

        def load(self, opcodes):
            self.inside += 1
            self.most = max(self.most, self.inside)
            time.sleep(0.02)
            self.inside -= 1

    slow = Slow()
    monkeypatch.setattr(native, "_machine", lambda: slow)
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(native.machine_for, [set()] * 4))
    assert slow.most == 1

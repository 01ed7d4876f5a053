"""The machine on disk: what a later process loads, and what it does where that is not whole."""

import json
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from bankshot.sim.machine.compile import loader, units
from bankshot.sim.run.counters import Counters

import bankshot

UNIT = "bankshot.sim.machine.tracing.trace"
ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, numpy as np, bankshot
source = "@group(0) @binding(0) var<storage, read_write> y: array<f32>;\\n"
source += "@compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) { y[i] = sqrt(f32(i)); }"
done = bankshot.simulate(source, grid=1, bindings={"y": np.zeros(8, np.float32)})
assert np.array_equal(done.outputs["y"], np.sqrt(np.arange(8, dtype=np.float32)))
print(*({"numba", "llvmlite"} & {*sys.modules}))
"""
COUNTERS = [field.name for field in fields(Counters)]
IMAGES = sys.platform == "linux" and platform.machine() == "x86_64"
images = pytest.mark.skipif(not IMAGES, reason="images are for Linux on x86-64")


@pytest.fixture
def copy(tmp_path):
    """A folder of one's own that holds the compiled machine."""
    bankshot.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)
    folder = tmp_path / "bankshot" / loader.cache_folder().name
    shutil.copytree(loader.cache_folder(), folder)
    return folder


def run(folder):
    environment = {**os.environ, "BANKSHOT_CACHE": str(folder.parents[1]), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


def damaged(folder, name, content):
    """An object file, an image or an index that is not as it was written. None: it is gone."""
    file = loader.find(folder, name) or folder / name
    old = file.read_bytes()
    file.unlink()
    if content is not None:
        file.write_bytes(content(old))


GONE, SHORT, EMPTY, CHANGED = None, lambda old: old[:-100], lambda old: b"", lambda old: old[:5000] + b"?" + old[5001:]


def test_a_later_process_needs_no_compiler(copy):
    loaded, said = run(copy)
    assert said == ""
    assert "numba" not in loaded


@images
def test_nor_does_it_need_llvm(copy):
    assert run(copy) == ("", "")


@images
@pytest.mark.parametrize("damage", [GONE, SHORT, EMPTY, CHANGED])
def test_an_image_that_cannot_be_used_is_made_again_in_silence(copy, damage):
    good = (copy / loader.IMAGE).read_bytes()
    damaged(copy, loader.IMAGE, damage)
    assert run(copy) == ("llvmlite", "")
    assert (copy / loader.IMAGE).read_bytes() == good
    assert run(copy) == ("", "")


@images
def test_where_an_image_cannot_be_written_llvm_loads_the_machine(copy):
    (copy / loader.IMAGE).unlink()
    (copy / loader.IMAGE / "in its place").mkdir(parents=True)
    assert run(copy) == ("llvmlite", "")


@pytest.mark.parametrize(("what", "to"), [("__version__", "2.9.9"), ("processor", "another"), ("NUMBA_OPT", "1")])
def test_other_versions_and_processors_have_machines_of_their_own(monkeypatch, what, to):
    here = loader.cache_folder.__wrapped__()
    assert here == loader.cache_folder()
    match what:
        case "__version__":
            monkeypatch.setattr(np, what, to)
        case "processor":
            monkeypatch.setattr(loader, "_processor", lambda: to)
        case _:
            monkeypatch.setenv(what, to)
    assert loader.cache_folder.__wrapped__() != here


def test_another_release_of_the_compiler_has_a_machine_of_its_own(monkeypatch, tmp_path):
    here, package = loader.cache_folder(), loader._package
    (tmp_path / "_version.py").write_text("version = 'another'")
    for other in ("numba", "llvmlite"):
        monkeypatch.setattr(loader, "_package", lambda name, other=other: tmp_path if name == other else package(name))
        assert loader.cache_folder.__wrapped__() != here


def test_the_processor_is_known_by_what_does_not_change():
    first = loader._processor()
    assert first == loader._processor()
    assert any(word in first for word in ("flags", "Features", "+"))  # by Linux, or LLVM
    assert "MHz" not in first


def test_code_that_calls_numbas_helpers_is_loaded_with_numba(copy):
    index = json.loads((copy / loader.INDEX).read_text())
    (copy / loader.INDEX).write_text(json.dumps({**index, "needs_numba": True}))
    (copy / loader.IMAGE).unlink(missing_ok=True)
    loaded, _ = run(copy)
    assert "numba" in loaded


@pytest.mark.parametrize(
    ("name", "damage"),
    [*((UNIT, each) for each in (GONE, CHANGED)), *((loader.INDEX, each) for each in (SHORT, EMPTY))],
)
def test_what_is_damaged_is_compiled_again_where_no_image_stands_for_it(copy, name, damage):
    damaged(copy, name, damage)
    (copy / loader.IMAGE).unlink(missing_ok=True)
    _, said = run(copy)
    assert "compiling the machine" in said
    assert loader.find(copy, name) or name == loader.INDEX
    assert run(copy)[1] == ""


def test_without_a_folder_to_write_to_the_machine_is_compiled_for_one_process(tmp_path, capsys):
    (tmp_path / "file").touch()
    folder = units.writable(tmp_path / "file" / "machine")
    assert folder.is_dir()
    assert tmp_path not in folder.parents
    assert "cannot be kept" in capsys.readouterr().err


def test_a_part_that_a_process_cannot_load_alone_is_noticed(copy):
    index = json.loads((copy / loader.INDEX).read_text())
    index["units"][0]["symbol"] = "missing"  # which others call
    assert units.started(units.LOAD, str(copy), json.dumps(index), stderr=subprocess.DEVNULL).wait() != 0


def test_arrays_of_other_types_are_refused():
    with pytest.raises(TypeError, match="other arrays"):
        loader.machine().record(np.zeros(3, np.float32))


def test_of_several_threads_one_loads(monkeypatch):
    loaded = []

    def slow(folder):
        time.sleep(0.02)
        loaded.append(folder)
        raise OSError

    monkeypatch.setattr(loader, "_machine", loader.cache(loader._machine.__wrapped__))
    monkeypatch.setattr(loader, "from_image", slow)
    monkeypatch.setattr(loader, "from_objects", lambda *_: "machine")
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: loader.machine(), range(4))) == ["machine"] * 4
    assert len(loaded) == 1


# Every function of C, arithmetic of every kind, atomics, exchange, what is found and charged.
EVERYTHING = """
enable f16;
enable subgroups;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> sum: atomic<u32>;
var<workgroup> tile: array<f32, 70>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32, @builtin(global_invocation_id) id: vec3u) {
    let v = x[id.x];
    var r = acos(v) + acosh(v + 2) + asin(v) + asinh(v) + atan(v) + atan2(v, 0.3) + atanh(v) + cos(v) + cosh(v);
    r += exp(v) + exp2(v) + log(v) + log2(v) + pow(v, 2.5) + sin(v) + sinh(v) + tan(v) + tanh(v) + v % 0.3;
    tile[i] = r + sqrt(v) / v;
    if i % 3 == 0 { r += f32(f16(v) * 3h) + tile[(i + 5) % 72]; }
    workgroupBarrier();
    r *= subgroupAdd(v);
    switch i % 4 {
        case 0: { r += tile[63 - i]; }
        default: { r += f32(u32(r) << (i % 9)); }
    }
    atomicAdd(&sum, u32(r) / (i % 5));
    y[id.x] = r;
    y[0] = 1;
}
"""


@images
def test_the_image_does_what_the_object_files_do(monkeypatch):
    x = np.linspace(0.01, 0.99, 256, dtype=np.float32)
    given = {"x": x, "y": np.zeros(256, np.float32), "sum": np.zeros(1, np.uint32)}
    folder, module, seen = loader.cache_folder(), bankshot.check(EVERYTHING), []
    for machine in (loader.from_image(folder), loader.from_objects(folder, loader._index(folder))):
        monkeypatch.setattr("bankshot.sim.launch.workspace.machine", lambda machine=machine: machine)
        done = bankshot.simulate(module, grid=4, bindings=given, probes="all")
        bits = [{n: array.tobytes() for n, array in arrays.items()} for arrays in (done.outputs, done.bounds)]
        sites = [(site.site, [getattr(site, name) for name in COUNTERS]) for site in done.sites]
        seen.append((*bits, dict(done.counters), sites, done.findings))
    assert np.isfinite(np.frombuffer(seen[0][0]["y"], np.float32)).any()
    assert len({finding.code for finding in seen[0][-1]}) >= 4
    assert seen[0] == seen[1]

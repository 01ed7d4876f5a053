"""Who may import whom, read from the files themselves, and how long a file may be."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import sim

ROOT = Path(__file__).parent.parent
# Bottom up: a room may import itself and the rooms named beside it. `sim` is the face: the files right under sim/.
_LANGUAGE = {"sim.machine", "sim.machine.scalar", "sim.models", "sim.program", "sim.wgsl"}
_SIM = {*_LANGUAGE, "sim.bindings", "sim.launch", "sim.findings"}
ROOMS = {
    "sim.machine.scalar": set(),
    "sim.models": set(),
    "sim.wgsl": {"sim.machine.scalar"},
    "sim.machine": {"sim.machine.scalar", "sim.models"},
    "sim.program": {"sim.machine", "sim.machine.scalar", "sim.models", "sim.wgsl"},
    "sim.bindings": _LANGUAGE,
    "sim.launch": {*_LANGUAGE, "sim.bindings"},
    "sim.findings": {*_LANGUAGE, "sim.bindings", "sim.launch"},
    "sim": _SIM,
    "oracle": {*_SIM, "sim"},
}
FILES = sorted(path for top in ("sim", "oracle") for path in (ROOT / top).rglob("*.py"))
LONGEST = 700


def module_of(path):
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room_of(module):
    """The most particular room that a module is in; None where it is not ours."""
    return next((room for room in sorted(ROOMS, key=len, reverse=True) if f"{module}.".startswith(f"{room}.")), None)


def imports(path):
    """Every module that a file imports, anywhere in it: names of modules, absolute."""
    module = module_of(path)
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    known = {module_of(p) for p in FILES}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                yield f"{base}.{alias.name}" if f"{base}.{alias.name}" in known else base


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_imports_go_down(path):
    room = room_of(module_of(path))
    for target in imports(path):
        other = room_of(target)
        if other is not None and other != room:
            assert other in ROOMS[room], f"{module_of(path)} imports {target}"


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_only_one_file_knows_wgpu(path):
    knows = any(target.split(".")[0] == "wgpu" for target in imports(path))
    assert knows <= (module_of(path) == "oracle.driver.library")


def test_a_room_knows_the_rooms_of_what_it_may_import():
    for room, below in ROOMS.items():
        assert all(ROOMS[other] <= below for other in below), room


@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_a_file_can_be_read_at_one_sitting(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST


@pytest.fixture(scope="module")
def _compiled():
    """The machine, on disk: the process that compiles it does need Numba."""
    sim.simulate("@compute @workgroup_size(1) fn main() {}", grid=1)


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import sim", "numba wgpu oracle"),
        ("import sim; sim.check('@compute @workgroup_size(1) fn main() {}').pipeline()", "numba wgpu oracle"),
        ("import sim; sim.simulate", "numba wgpu oracle"),
        ("from oracle import cli, gpu; gpu.adapters()", "wgpu"),
        ("import oracle.driver.serving; oracle.driver.library.library()", "numpy numba click"),
        ("import sim; sim.simulate('@compute @workgroup_size(1) fn main() {}', grid=1)", "numba wgpu oracle"),
    ],
)
@pytest.mark.usefixtures("_compiled")
def test_what_an_import_brings(statement, absent):
    code = f"import sys; {statement}; print([m for m in {absent.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")

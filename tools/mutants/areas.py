"""The areas that mutants are spread over, and the tests of each.

An area has the files of a room of `tools/import_graph.py`, or of a folder in it. Its tests run first; a mutant that
survives them must survive those of `wider` as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_PROGRAMS = ("tests/run/test_counters.py", "tests/findings/test_twins.py", "tests/shaders/test_kernels.py")
_FINDINGS = tuple(f"tests/findings/test_{name}.py" for name in ("twins", "verdicts", "conversions", "known_patterns"))
_MACHINE = tuple(
    f"tests/machine/test_{name}.py" for name in ("running", "memory", "subgroups", "vector_math", "schema")
)
_WIDER = (*_PROGRAMS, "tests/hardware", "tests/findings", "tests/lowering", "tests/codegen", "tests/launch")
_TEXT = ("tests/lowering", "tests/manifests", "tests/corpus", "tests/run/test_counters.py")
_JUDGED = ("tests/cli/test_end_to_end.py", "tests/judge", "tests/diagnosis", "tests/pytest_plugin", "tests/reports")


@dataclass(frozen=True)
class Area:
    """`paths`: files or folders. `tests`: what runs first. `wider`: what runs if those pass. `compiled`: whether Numba
    compiles these files, so that each mutant needs a machine of its own. `gpu`: whether the tests need an adapter."""

    name: str
    paths: tuple[str, ...]
    tests: tuple[str, ...]
    wider: tuple[str, ...]
    compiled: bool = False
    gpu: bool = False

    def files(self, root: Path) -> list[str]:
        """The Python files of the area, from the root; a file belongs to the first area that has it."""
        return [file for file, area in _area_of(root).items() if area is self]

    def all_files(self, root: Path) -> list[str]:
        """The Python files in the paths of the area, other areas' as well."""
        found = [file for path in self.paths for file in (sorted((root / path).rglob("*.py")) or [root / path])]
        return [file.relative_to(root).as_posix() for file in found]


def _sim(room: str, *tests: str, wider: tuple[str, ...] = _PROGRAMS, compiled: bool = False) -> Area:
    return Area(room, (f"sim/{room}",), (f"tests/{room}", *tests), wider, compiled)


def _wgsl(folder: str, *tests: str) -> Area:
    return Area(f"wgsl/{folder}", (f"sim/wgsl/{folder}",), tests or ("tests/wgsl",), ("tests/wgsl", *_TEXT))


def _oracle(room: str, *tests: str, gpu: bool = False) -> Area:
    return Area(room, (f"oracle/{room}",), (f"tests/{room}", *tests), _JUDGED, gpu=gpu)


AREAS = (
    _sim("scalar", "tests/wgsl/test_consteval.py", compiled=True),
    _sim("models", "tests/hardware", compiled=True),
    Area(
        "machine/compile",
        ("sim/machine/compile",),
        tuple(f"tests/machine/test_{name}.py" for name in ("inlined", "loader", "arrays", "paths")),
        _MACHINE,
        compiled=True,
    ),
    Area(
        "machine",
        ("sim/machine",),
        (*_MACHINE, "tests/run/test_counters.py", "tests/launch", "tests/analysis/test_tail_lanes.py", *_FINDINGS),
        ("tests/machine/test_arrays.py", *_WIDER, "tests/run", "tests/analysis", "tests/bindings", "tests/instrument"),
        compiled=True,
    ),
    _wgsl("syntax"),
    _wgsl("check"),
    _wgsl("builtins", "tests/wgsl/test_builtin_table.py", "tests/wgsl/test_overloads.py", "tests/instrument"),
    _wgsl("analysis"),
    _wgsl("preprocess"),
    Area(
        "wgsl",
        tuple(
            f"sim/wgsl/{name}.py"
            for name in ("diagnostics", "regular_files", "source", "texel_formats", "typed", "typed_printer", "types")
        ),
        ("tests/wgsl", "tests/bindings"),
        _TEXT,
    ),
    _sim("ir", "tests/lowering", wider=("tests/test_dump.py", "tests/codegen", *_PROGRAMS)),
    _sim("lowering", "tests/run/test_counters.py", *_MACHINE, "tests/bindings", wider=("tests/test_dump.py", *_WIDER)),
    _sim("analysis", "tests/launch", wider=(*_PROGRAMS, "tests/findings", "tests/test_dump.py")),
    _sim("instrument", "tests/judge/test_derived_bounds.py"),
    _sim("codegen", "tests/ir", "tests/lowering", wider=("tests/test_dump.py", "tests/analysis", *_WIDER)),
    _sim("bindings", "tests/lowering"),
    _sim("launch", "tests/analysis", *_FINDINGS, *_MACHINE[:1], wider=("tests/findings", "tests/run", *_PROGRAMS)),
    _sim("findings", "tests/machine/test_running.py"),
    _sim("run", "tests/launch", "tests/instrument", wider=(*_PROGRAMS, "tests/test_dump.py")),
    Area(
        "sim",
        tuple(f"sim/{name}.py" for name in ("bounded_cache", "disk_cache", "dump", "fast_dataclass", "front_end")),
        ("tests/test_fast_dataclass.py", "tests/test_dump.py", "tests/cli", "tests/machine/test_loader.py"),
        ("tests/wgsl", *_PROGRAMS),
    ),
    _oracle("comparison", "tests/judge"),
    _oracle("manifests", "tests/cli/test_docs_manifests.py", "tests/cli/test_bad_input.py"),
    _oracle("references", "tests/shaders"),
    _oracle("gpu_counters", gpu=True),
    _oracle("gpu_account", "tests/gpu_counters"),
    _oracle("wgpu_client", "tests/wgpu_worker", gpu=True),
    _oracle("wgpu_worker", "tests/wgpu_client", gpu=True),
    _oracle("diagnosis"),
    _oracle("goldens", "tests/pytest_plugin", "tests/cli/test_end_to_end.py"),
    _oracle("judge", "tests/cli", "tests/gpu_counters"),
    _oracle("advise"),
    _oracle("workers", "tests/cli/test_process.py"),
    _oracle("corpus"),
    _oracle("reports", "tests/cli"),
    _oracle("sweep", "tests/cli/test_docs_sweeps.py"),
    _oracle("cli"),
    _oracle("pytest_plugin", "tests/goldens"),
)


@cache
def _area_of(root: Path) -> dict[str, Area]:
    found: dict[str, Area] = {}
    for area in AREAS:
        found = {**dict.fromkeys(area.all_files(root), area), **found}
    return found


def files_of(root: Path, paths: tuple[str, ...]) -> list[str]:
    """The test files of folders and files, each once, in order."""
    found: dict[str, None] = {}
    for path in paths:
        files = sorted((root / path).rglob("test_*.py")) if (root / path).is_dir() else [root / path]
        found |= dict.fromkeys(file.relative_to(root).as_posix() for file in files)
    return list(found)

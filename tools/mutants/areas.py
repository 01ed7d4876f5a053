"""The areas that mutants are spread over, and the tests of each.

An area has the files of a room of `tools/import_graph.py`, or of a folder in it. Its tests run first; a mutant that
survives them must survive those of `wider` as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_PROGRAMS = ("tests/test_dump.py", "tests/run", "tests/shaders/test_kernels.py", "tests/findings/test_twins.py")
_MACHINE = (*_PROGRAMS, "tests/hardware", "tests/findings", "tests/lowering", "tests/codegen/test_divergence.py")
_TEXT = ("tests/lowering", "tests/test_dump.py", "tests/manifests", "tests/corpus", "tests/run/test_counters.py")
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
        """The Python files of the area, from the root."""
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
    _sim("machine", "tests/run", "tests/findings", wider=_MACHINE, compiled=True),
    _wgsl("syntax"),
    _wgsl("check"),
    _wgsl("builtins", "tests/wgsl/test_builtin_table.py", "tests/wgsl/test_overloads.py", "tests/instrument"),
    _wgsl("analysis"),
    _wgsl("preprocess"),
    Area(
        "wgsl",
        tuple(
            f"sim/wgsl/{name}.py"
            for name in ("diagnostics", "source", "texel_formats", "typed", "typed_printer", "types")
        ),
        ("tests/wgsl", "tests/bindings"),
        _TEXT,
    ),
    _sim("ir", "tests/test_dump.py", "tests/lowering"),
    _sim("lowering", "tests/test_dump.py", "tests/run", "tests/machine/test_subgroups.py", "tests/bindings"),
    _sim("analysis", "tests/findings/test_deleted_barriers.py", "tests/launch"),
    _sim("instrument", "tests/judge/test_derived_bounds.py"),
    _sim("codegen", "tests/analysis", "tests/test_dump.py"),
    _sim("bindings", "tests/lowering"),
    _sim("launch", "tests/analysis", "tests/findings", "tests/run"),
    _sim("findings", "tests/machine/test_running.py"),
    _sim("run", "tests/launch", "tests/instrument"),
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


def test_files(root: Path, paths: tuple[str, ...]) -> list[str]:
    """The test files of folders and files, each once, in order."""
    found: dict[str, None] = {}
    for path in paths:
        files = sorted((root / path).rglob("test_*.py")) if (root / path).is_dir() else [root / path]
        found |= dict.fromkeys(file.relative_to(root).as_posix() for file in files)
    return list(found)

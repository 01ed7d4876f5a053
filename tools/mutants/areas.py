"""The areas that mutants are spread over: each has the files of a room, or of a part of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

_MACHINE = tuple(
    f"tests/machine/test_{name}.py"
    for name in ("running", "watched_words", "memory", "subgroups", "vector_math", "schema")
)
_QUICK = (
    "tests/findings/test_conversions.py",
    "tests/findings/test_redundant_in_loops.py",
    "tests/launch/test_priorities.py",
    "tests/findings/test_effort.py",
)
_PROGRAMS = ("tests/run/test_counters.py", "tests/findings/test_twins.py", "tests/shaders/test_kernels.py")


@dataclass(frozen=True)
class Area:
    """`paths`: files or folders. `compiled`: the tests of files that Numba compiles: their lines cannot be measured,
    and each mutant needs a machine of its own. `gpu`: whether the tests need an adapter."""

    name: str
    paths: tuple[str, ...]
    compiled: tuple[str, ...] = ()
    gpu: bool = False

    @property
    def tests(self) -> str:
        """The folder of the area's own tests."""
        return f"tests/{self.name.partition('/')[0]}/"

    def files(self, root: Path) -> list[str]:
        """The Python files of the area, from the root; a file belongs to the first area that has it."""
        return [file for file, area in _area_of(root).items() if area is self]

    def all_files(self, root: Path) -> list[str]:
        """The Python files in the paths of the area, other areas' as well."""
        found = [file for path in self.paths for file in (sorted((root / path).rglob("*.py")) or [root / path])]
        return [file.relative_to(root).as_posix() for file in found]


def _sim(room: str) -> Area:
    return Area(room, (f"sim/{room}",))


def _oracle(room: str) -> Area:
    return Area(room, (f"oracle/{room}",), gpu=room in ("gpu_counters", "wgpu_client", "wgpu_worker"))


_COMPILED = (
    Area("scalar", ("sim/scalar",), ("tests/scalar", "tests/wgsl/test_consteval.py", *_PROGRAMS)),
    Area("models", ("sim/models",), ("tests/models", "tests/hardware", *_PROGRAMS)),
    Area(
        "machine/compile",
        ("sim/machine/compile",),
        (*(f"tests/machine/test_{name}.py" for name in ("inlined", "loader", "arrays", "paths")), *_MACHINE),
    ),
    Area(
        "machine",
        ("sim/machine",),
        ("tests/codegen/test_outer_products.py", *_QUICK, *_MACHINE, *_PROGRAMS[:2], "tests/launch",
         "tests/analysis/test_tail_lanes.py", "tests/findings", "tests/machine/test_arrays.py", *_PROGRAMS,
         "tests/hardware", "tests/lowering", "tests/codegen", "tests/run", "tests/analysis", "tests/bindings",
         "tests/instrument"),
    ),
)  # fmt: skip
_WGSL = ("syntax", "check", "builtins", "analysis", "preprocess")
_SIM = ("ir", "lowering", "analysis", "instrument", "utilization", "codegen", "explore", "bindings", "launch",
        "findings", "cures", "run", "device_files", "performance")  # fmt: skip
_ORACLE = ("comparison", "manifests", "references", "gpu_counters", "gpu_account", "wgpu_client", "wgpu_worker",
           "diagnosis", "goldens", "judge", "advise", "workers", "corpus", "guesses", "reports", "sweep",
           "cli", "pytest_plugin", "calibration")  # fmt: skip
_FILES = {
    "wgsl": (
        "diagnostics",
        "enumerants",
        "layout_rules",
        "regular_files",
        "source",
        "texel_formats",
        "text_edits",
        "typed",
        "typed_printer",
        "types",
    ),
    "sim": ("bounded_cache", "child_program", "disk_cache", "dump", "fast_dataclass", "front_end"),
    "oracle": (
        "audit",
        "child_process",
        "errors",
        "exit_codes",
        "fix",
        "from_python",
        "kernel_timing",
        "notebook_runs",
        "patch_files",
    ),
}

AREAS = (
    *_COMPILED,
    *(Area(f"wgsl/{name}", (f"sim/wgsl/{name}",)) for name in _WGSL),
    Area("wgsl", tuple(f"sim/wgsl/{name}.py" for name in _FILES["wgsl"])),
    *map(_sim, _SIM),
    Area("sim", tuple(f"sim/{name}.py" for name in _FILES["sim"])),
    *map(_oracle, _ORACLE),
    Area("oracle", tuple(f"oracle/{name}.py" for name in _FILES["oracle"])),
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

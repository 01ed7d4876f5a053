"""Which file imports which, read from the files themselves, by room.

A room is a folder right under `sim/` or `oracle/`, with all folders in it, or one of the single files there. `ROOMS`
lists them bottom up: a room may import itself and any room above its own line in that list that it names.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "bankshot"
TOPS = ("bankshot", "sim", "oracle")

_LANGUAGE = (
    *("sim.fast_dataclass", "sim.mechanisms", "sim.bounded_cache", "sim.without_gc"),
    *("sim.scalar", "sim.wgsl", "sim.ir"),
)
_PROGRAM = (
    *_LANGUAGE,
    *("sim.machine", "sim.lowering", "sim.analysis", "sim.instrument", "sim.utilization", "sim.codegen"),
)
_SIM = (
    *_PROGRAM,
    "sim",
    "sim.front_end",
    "sim.disk_cache",
    "sim.child_program",
    "sim.models",
    "sim.device_files",
    "sim.bindings",
    "sim.launch",
    "sim.findings",
    "sim.cures",
    "sim.dump",
    "sim.performance",
    "sim.run",
    "sim.explore",
)
_JUDGE = (
    "oracle.errors",
    "oracle.comparison",
    "oracle.manifests",
    "oracle.references",
    "oracle.wgpu_worker",
)
_JUDGED = (
    *_JUDGE,
    "oracle.wgpu_client",
    "oracle.gpu_account",
    "oracle.gpu_counters",
    "oracle.diagnosis",
    "oracle.goldens",
    "oracle.judge",
)
_REPORTED = (
    *(*_JUDGED, "oracle.guesses", "oracle.exit_codes", "oracle.advise", "oracle.fix", "oracle.corpus"),
    "oracle.kernel_timing",
    "oracle.reports",
)
_ALL = (*_REPORTED, "oracle.workers", "oracle.sweep", "oracle.audit", "oracle.calibration")

# Room -> the rooms that it may import.
ROOMS: dict[str, tuple[str, ...]] = {
    "sim.fast_dataclass": (),
    "sim.mechanisms": (),
    "sim.bounded_cache": ("sim.mechanisms",),
    "sim.without_gc": (),
    "sim.disk_cache": (),
    "sim.child_program": (),
    "sim.scalar": ("sim.fast_dataclass",),
    "sim.models": ("sim.fast_dataclass",),
    "sim.wgsl": ("sim.fast_dataclass", "sim.bounded_cache", "sim.scalar"),
    "sim.front_end": ("sim.wgsl", "sim.models", "sim.without_gc"),
    "sim.device_files": ("sim.fast_dataclass", "sim.models", "sim.wgsl"),
    "sim.ir": ("sim.fast_dataclass", "sim.scalar", "sim.wgsl"),
    "sim.machine": (
        *("sim.fast_dataclass", "sim.without_gc", "sim.disk_cache", "sim.child_program", "sim.scalar", "sim.models"),
    ),
    "sim.lowering": (*_LANGUAGE, "sim.machine"),
    "sim.analysis": _LANGUAGE,
    "sim.instrument": _LANGUAGE,
    "sim.utilization": (*_LANGUAGE, "sim.machine", "sim.models"),
    "sim.performance": (*_LANGUAGE, "sim.analysis"),
    "sim.codegen": (*_LANGUAGE, "sim.machine", "sim.lowering", "sim.analysis", "sim.instrument", "sim.utilization"),
    "sim.bindings": ("sim.fast_dataclass", "sim.wgsl", "sim.ir", "sim.instrument"),
    "sim.launch": (*_PROGRAM, "sim.models", "sim.bindings"),
    "sim.findings": (*_PROGRAM, "sim.models", "sim.bindings", "sim.launch"),
    "sim.cures": ("sim.fast_dataclass", "sim.bounded_cache", "sim.wgsl", "sim.ir", "sim.findings"),
    "sim.dump": (*_PROGRAM, "sim.launch"),
    "sim.run": (
        *_PROGRAM,
        *("sim.front_end", "sim.models", "sim.device_files", "sim.bindings", "sim.launch", "sim.findings", "sim.cures"),
        *("sim.dump", "sim.performance"),
    ),
    "sim.explore": (
        *_PROGRAM,
        "sim.models",
        "sim.device_files",
        "sim.bindings",
        "sim.launch",
        "sim.findings",
        "sim.run",
    ),
    "sim": (
        "sim.front_end",
        "sim.run",
        "sim.explore",
        "sim.models",
        "sim.findings",
        "sim.bindings",
        "sim.launch",
        "sim.wgsl",
    ),
    "oracle": (),
    "oracle.errors": (),
    "oracle.child_process": ("sim.child_program", "oracle.errors"),
    "oracle.exit_codes": (*_SIM, "oracle.errors"),
    "oracle.comparison": (*_SIM, "oracle.errors"),
    "oracle.wgpu_worker": ("sim.fast_dataclass", "sim.disk_cache", "oracle.errors", "oracle.child_process"),
    "oracle.manifests": (*_SIM, "oracle.errors", "oracle.comparison"),
    "oracle.from_python": (*_SIM, "oracle.errors", "oracle.comparison", "oracle.manifests"),
    "oracle.references": (*_SIM, "oracle.errors", "oracle.child_process", "oracle.comparison", "oracle.manifests"),
    "oracle.wgpu_client": (*_SIM, "oracle.errors", "oracle.child_process", "oracle.manifests", "oracle.wgpu_worker"),
    "oracle.gpu_account": ("sim.fast_dataclass", "sim.wgsl"),
    "oracle.gpu_counters": (*_SIM, "oracle.errors", "oracle.manifests", "oracle.gpu_account"),
    "oracle.diagnosis": (
        *(*_SIM, "oracle.errors", "oracle.comparison", "oracle.manifests", "oracle.references"),
        "oracle.gpu_counters",
    ),
    "oracle.goldens": (*_SIM, "oracle.errors", "oracle.comparison", "oracle.diagnosis"),
    "oracle.judge": (*_SIM, *_JUDGED[:-1]),
    "oracle.kernel_timing": (*_SIM, *_JUDGED),
    "oracle.calibration": (*_SIM, *_JUDGED, "oracle.kernel_timing"),
    "oracle.audit": ("oracle.judge",),
    "oracle.patch_files": (*_SIM, "oracle.errors"),
    "oracle.advise": (*_SIM, *_JUDGED, "oracle.patch_files"),
    "oracle.fix": (*_SIM, *_JUDGED, "oracle.patch_files"),
    "oracle.guesses": (*_SIM, "oracle.errors", "oracle.comparison", "oracle.manifests"),
    "oracle.workers": (*_SIM, "oracle.errors", "oracle.child_process", "oracle.wgpu_worker"),
    "oracle.corpus": (*_SIM, *_JUDGED, "oracle.guesses", "oracle.workers"),
    "oracle.notebook_runs": (*_SIM, *_JUDGED, "oracle.advise"),
    "oracle.reports": (*_SIM, *_REPORTED[:-1]),
    "oracle.sweep": (*_SIM, *_REPORTED, "oracle.workers"),
    "oracle.cli": (*_SIM, *_ALL),
    "oracle.pytest_plugin": (*_SIM, *_ALL),
    "bankshot": (*_SIM, *_ALL, "oracle.cli", "oracle.from_python", "oracle.pytest_plugin"),
}

# Room -> the modules and rooms that it may import only for types: reports read results, and run nothing.
TYPES_ONLY: dict[str, tuple[str, ...]] = {
    "oracle.reports": (
        "sim.run.result",
        "sim.run.dispatch",
        "sim.launch",
        "oracle.judge.audit",
        "oracle.judge.adapter_checks",
        "oracle.judge.case_run",
        "oracle.judge.counter_diff",
        "oracle.judge.device_comparison",
        "oracle.judge.diff",
        "oracle.judge.golden_check",
        "oracle.judge.output_checks",
        "oracle.judge.verdict",
        "oracle.gpu_counters",
        "oracle.diagnosis",
        "oracle.references",
        "oracle.wgpu_client",
        "oracle.wgpu_worker",
        "oracle.kernel_timing",
        "oracle.advise",
    ),
}


def module_of(path: Path) -> str:
    """The name of a file as a module: `sim.ir.sites`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
MODULES = {module_of(path): path for path in FILES}


def room_of(module: str) -> str | None:
    """The room of a module; None where it is not part of Bankshot."""
    parts = module.split(".")
    if parts[0] not in TOPS:
        return None
    return parts[0] if parts[0] == PACKAGE or len(parts) == 1 else ".".join(parts[:2])


def imports(path: Path, *, for_types: bool = True) -> tuple[str, ...]:
    """Every module that a file imports, anywhere in it; Bankshot's own without the leading `bankshot.`. `for_types`:
    with what it imports under `if TYPE_CHECKING` only."""
    return tuple(module for module, is_type in _imports(path) if for_types or not is_type)


@cache  # reading a file takes longer than what each use does with its imports
def _imports(path: Path) -> tuple[tuple[str, bool], ...]:
    """Every import of a file: the module, and whether it is under `if TYPE_CHECKING`."""
    package = module_of(path).split(".") if path.name == "__init__.py" else module_of(path).split(".")[:-1]
    package = package if package[0] == PACKAGE else [PACKAGE, *package]
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for_types = {id(node) for node in _for_types(nodes)}
    found: list[tuple[str, bool]] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            found += [(_without_package(alias.name), id(node) in for_types) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*start, *(node.module or "").split(".")]).strip(".")
            for alias in node.names:
                full = _without_package(f"{base}.{alias.name}")
                found.append((full if full in MODULES else _without_package(base), id(node) in for_types))
    return tuple(found)


def _for_types(nodes: list[ast.AST]) -> Iterator[ast.AST]:
    for node in nodes:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                yield from ast.walk(statement)


def _without_package(module: str) -> str:
    short = module.removeprefix(f"{PACKAGE}.")
    return short if short.split(".")[0] in TOPS else module


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The sets of modules that import each other in a circle, sorted. (Tarjan's strongly connected components.)"""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in index:
                visit(target)
            if target in stack:
                low[module] = min(low[module], low[target])
        if low[module] == index[module]:
            members = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(members) > 1:
                found.append(sorted(members))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found


def graph(paths: Iterable[Path] = FILES) -> dict[str, set[str]]:
    """Module -> the modules of Bankshot that it imports when it runs."""
    return {module_of(path): {m for m in imports(path, for_types=False) if m in MODULES} for path in paths}

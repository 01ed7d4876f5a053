"""Turn the paths of a command line into cases: manifests, folders of them, bare WGSL files.

A manifest has everything that a run needs. For a bare shader, one without a manifest of the same name beside it, the
rest is inferred from its text, and anything unspecified must be passed.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ...sim.bindings.binding import is_array
from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t
from ...sim.wgsl.diagnostics import Crash, WgslError, first_words
from ..comparison.bits import Array
from ..errors import UsageError, printable
from . import inputs, manifest_loader
from .bare_grid import bare_grid
from .dimension_arithmetic import fraction
from .manifest import Case, Kernel, Override, Shape
from .manifest_files import manifests_in
from .reflection import check_module, entry_point


@frozen
class Request:
    """What the command line adds to files. `kernel` selects one of a family; `quick` skips heavy shapes."""

    dims: Mapping[str, int] = field(default_factory=dict[str, int])
    arrays: Mapping[str, Any] = field(default_factory=dict[str, Any])
    grid: tuple[int, ...] | None = None
    kernel: str | None = None
    entry: str | None = None
    overrides: Mapping[str, Override] = field(default_factory=dict[str, Override])
    defines: Mapping[str, str] = field(default_factory=dict[str, str])
    include_dirs: tuple[Path, ...] = ()
    preprocess: str | None = None
    budget: int | None = None  # of loop iterations
    quick: bool = False
    sweep: bool = True  # every shape of a manifest; else its default sizes only
    code: bool = True  # run what manifests name: references in Python files, preprocessors

    @property
    def as_in_manifest(self) -> bool:
        """Whether kernels run as their manifests specify, so that their goldens apply."""
        return not (self.arrays or self.grid or self.entry or self.overrides)


@frozen
class Plan:
    """A kernel and the shapes to run. Arrays are created only when a case is requested."""

    kernel: Kernel
    shapes: tuple[Shape, ...]
    request: Request
    assumed: tuple[str, ...] = ()  # descriptions of what was inferred
    left_out: int = 0  # heavy shapes, where only quick ones were requested

    def cases(self) -> Iterator[Case]:
        for shape in self.shapes:
            yield self.case(shape)

    def numbers(self, shape: Shape) -> tuple[int, int]:
        """Estimate from the manifest how many numbers a case reads, and may write. Raises `UsageError`."""
        given = self.request.arrays
        bound = [b for b in self.kernel.bindings if not given.keys() & {b.name, b.var}]
        all_ = sum(b.numbers(shape.dims) for b in bound) + sum(getattr(array, "size", 0) for array in given.values())
        written = sum(b.numbers(shape.dims) for b in bound if b.init in inputs.BLANK or b.name in self.kernel.rules)
        return all_ - written, written

    def refuse_code(self) -> None:
        """Raise `UsageError` if the kernel names code and the request runs none."""
        reference = self.kernel.reference or ""
        names = [f"reference {reference}"] if ":" in reference else []
        names += [f"preprocessor {first_words(self.kernel.preprocess)}"] if self.kernel.preprocess else []
        if names and not self.request.code:
            raise UsageError(f"{self.kernel.path}: not run, as --no-code leaves out {' and '.join(names)}")

    def case(self, shape: Shape) -> Case:
        self.refuse_code()
        case = self.kernel.case(shape)
        given = {case.name_of(name): array for name, array in self.request.arrays.items()}
        fitted = {name: _fitted(name, array, case.arrays.get(name)) for name, array in given.items()}
        return replace(case, arrays={**case.arrays, **fitted}, grid=self.request.grid or case.grid)


@frozen
class Broken:
    """A manifest or shader that cannot be planned, and why."""

    path: Path
    error: Exception


def _fitted(name: str, array: Array, like: object) -> Array:
    """Reshape `array` like the manifest's array; return it unchanged where `like` is no array."""
    if not is_array(like):
        return array
    array = inputs.as_numbers(array, like.dtype)
    if array.dtype != like.dtype or array.size != like.size:
        ours, theirs = (f"{a.dtype}{list(a.shape)}" for a in (array, like))
        raise UsageError(f"--bind {name}: {ours} does not fit the manifest's {theirs}")
    return array.reshape(like.shape)


def plans(paths: Sequence[Path], request: Request, broken: list[Broken] | None = None) -> list[Plan]:
    """Plan every kernel that `paths` name, in order. Raises `UsageError`.

    If `broken` is given, errors of a manifest or shader (rather than of the request) go there, and the other files are
    planned; if one kernel is requested, only where it is not found elsewhere.
    """
    files = [_named(file) for path in paths for file in _files(_named(path))]
    found: list[Plan] = []
    names: list[str] = []
    for file in files:
        try:
            kernels = _kernels(file, request)
        except (UsageError, WgslError, OSError, RecursionError) as problem:
            error = problem if isinstance(problem, UsageError | WgslError) else _unusable(file, problem)
            if broken is None:
                raise error from None
            broken.append(Broken(file, error))
            continue
        names += [kernel.name for kernel in kernels]
        found += _plans(file, kernels, request)
    if broken and found and request.kernel is not None:
        broken.clear()  # the requested kernel was found
    if names and not found:
        raise UsageError(f"no kernel is named {request.kernel}; there are {', '.join(names)}")
    return found


def _named(path: Path) -> Path:
    """Refuse a path that would garble a report."""
    if str(path) != printable(str(path)):
        raise UsageError(f"{printable(str(path))}: the name of this file holds control characters; rename it")
    return path


def _unusable(file: Path, problem: OSError | RecursionError) -> UsageError:
    if isinstance(problem, RecursionError):
        return UsageError(f"{file}: is nested too deeply")
    there = f"{problem.filename}: " if problem.filename and str(problem.filename) != str(file) else ""
    return UsageError(f"{file}: {there}{problem.strerror or problem}")


def _files(path: Path) -> list[Path]:
    """Return the manifest or shader that `path` names; for a folder, every manifest in it."""
    if not path.exists() and not path.is_symlink():
        raise UsageError(f"{path}: there is no such file or folder")
    if path.is_dir():
        found = manifests_in(path)
        if not found:
            raise UsageError(f"{path}: holds no manifest (a .toml file with a [kernel] table)")
        return found
    beside = path.with_suffix(".toml")
    return [beside if path.suffix == ".wgsl" and os.path.lexists(beside) else path]


def _kernels(path: Path, request: Request) -> tuple[Kernel, ...]:
    """Load the kernels of a manifest, or read and check the one of a bare shader."""
    if path.is_dir():
        raise UsageError(f"{path}: this folder cannot be read")
    if path.suffix.lower() == ".toml":
        return manifest_loader.load_all(path)
    kernel = _with(_unplanned(path, request), request)
    check_module(kernel)
    return (kernel,)


def _plans(path: Path, kernels: Sequence[Kernel], request: Request) -> list[Plan]:
    if path.suffix.lower() != ".toml":
        return [_bare(path, kernel, request) for kernel in kernels]
    return [_plan(path, kernel, request) for kernel in kernels if request.kernel in (None, kernel.name)]


def _plan(path: Path, kernel: Kernel, request: Request) -> Plan:
    kernel = _with(kernel, request)
    known = {name for binding in kernel.bindings for name in (binding.name, binding.var)}
    for name in request.arrays.keys() - known:
        raise UsageError(f"{path}: no binding is named {name}; there are {', '.join(sorted(known))}")
    if request.dims or not request.sweep:
        shapes = (kernel.shape(request.dims),)
    else:
        shapes = tuple(shape for shape in kernel.shapes if not request.quick or shape.cost == "quick")
        return Plan(kernel, shapes, request, left_out=len(kernel.shapes) - len(shapes))
    return Plan(kernel, shapes, request)


def _with(kernel: Kernel, request: Request) -> Kernel:
    """Return the kernel with the command line's settings, which override the manifest's."""
    return replace(
        kernel,
        entry=request.entry or kernel.entry,
        overrides={**kernel.overrides, **request.overrides},
        defines={**kernel.defines, **request.defines},
        include_dirs=(*request.include_dirs, *kernel.include_dirs),
        preprocess=request.preprocess or kernel.preprocess,
        budget=request.budget or kernel.budget,
    )


# ---- shaders without a manifest ----------------------------------------------------------------------


def _unplanned(path: Path, request: Request) -> Kernel:
    return Kernel(
        path=path,
        name=path.stem,
        source=path,
        entry=None,
        dims={},
        dispatch=request.grid or (1, 1, 1),
        bindings=(),
        shapes=(Shape({}),),
    )


def _bare(path: Path, kernel: Kernel, request: Request) -> Plan:
    if request.dims:
        raise UsageError(f"{path}: --set gives sizes to a manifest's dims, and {path.name} has no manifest beside it")
    entry = entry_point(check_module(kernel), request.entry)
    arrays, assumed = _infer(entry, request, path)
    kernel = replace(kernel, entry=entry.name)
    request = replace(request, arrays=arrays)
    if request.grid is None:
        launch = Plan(kernel, kernel.shapes, request).case(kernel.shapes[0]).launch
        grid, chosen = bare_grid(kernel, launch)
        assumed.insert(0, chosen)
        kernel = replace(kernel, dispatch=grid)
    return Plan(kernel, kernel.shapes, request, tuple(assumed))


def _infer(entry: typed.Function, request: Request, path: Path) -> tuple[dict[str, Any], list[str]]:
    """Return contents for the bindings of `entry`: those given, and inferred ones where the shader fixes size and type;
    and descriptions of the inferred ones. Raises `UsageError` for a binding that has neither."""
    arrays: dict[str, Any] = dict(request.arrays)
    assumed: list[str] = []
    needed: list[str] = []
    declared = [v for v in entry.globals if v.binding is not None]
    names = [v.name for v in declared]
    for name in request.arrays.keys() - set(names):
        raise UsageError(f"{path}: {entry.name} uses no binding named {name}; it uses {', '.join(names) or 'none'}")
    for variable in declared:
        if variable.name in arrays:
            continue
        made = _made(variable)
        if made is None:
            needed.append(f"  --bind {variable.name}=…   {_described(variable)}")
        else:
            kind, arrays[variable.name] = made
            assumed.append(f"{kind} contents for {variable.name} ({_described(variable)})")
    if needed:
        lines = [
            f"{path}: there is no manifest {path.stem}.toml, and the shader does not say what these hold; give",
            *needed,
            "as NAME=FILE.npy, NAME=u32:1,2,3 or NAME=normal:f32:512,768",
        ]
        raise UsageError("\n".join(lines))
    return arrays, assumed


def _made(variable: typed.Variable) -> tuple[str, Any] | None:
    """Infer contents for a sampler, or for a storage binding of fixed size and one scalar type: their kind, and the
    contents. None for any other binding."""
    if isinstance(variable.type, t.Sampler):
        return "default", {"compare": "less"} if variable.type.comparison else {}
    if variable.space != "storage" or not t.has_creation_fixed_footprint(variable.type):
        return None
    try:
        dtype = str(t.element_of(variable.type))
    except Crash:  # a struct has no single scalar type
        return None
    kind = "zeros" if variable.access != "read" else "normal" if dtype.startswith("f") else "uniform"
    count = t.size_of(variable.type) // np.dtype(inputs.DTYPES[dtype]).itemsize
    return kind, inputs.generate(kind, variable.name, (count,), dtype)


def _described(variable: typed.Variable) -> str:
    if variable.space == "handle":
        return str(variable.type)
    access = f", {variable.access}" if variable.space == "storage" else ""
    return f"{variable.type}, {variable.space}{access}"


def expected_counters(case: Case) -> dict[str, int | float]:
    """Return the manifest's figures for counters at this shape: integers, or fractions such as 5 / 256 rounded once."""
    try:
        exact = {name: fraction(expression, case.shape.dims) for name, expression in case.kernel.counters.items()}
    except UsageError as error:
        raise UsageError(f"{case.kernel.path}: at {case.shape}: {error}") from None
    return {name: int(value) if value.denominator == 1 else float(value) for name, value in exact.items()}

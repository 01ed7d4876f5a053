"""Shorter ways to run kernels from Python: by a manifest, and with the call of wgpu-py's `compute_with_buffers`."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .. import sim
from ..sim.front_end import read
from .errors import UsageError
from .manifests.binding_checks import fit
from .manifests.manifest_loader import load
from .manifests.reflection import check_module
from .manifests.rendering_stages import check_for_compute

if TYPE_CHECKING:
    from ..sim import Run
    from ..sim.bindings.binding import Value
    from ..sim.device_files import DeviceChoice

Shape: TypeAlias = int | str | tuple[int | str, ...] | type[ctypes.Array[Any]]

_FORMATS = frozenset("bBhHeiIf")  # of memoryviews


def run_manifest(
    path: str | Path, kernel: str | None = None, /, *, device: DeviceChoice = "nvidia", **dims: int
) -> Run:
    """Simulate a kernel of a manifest: `bankshot.run_manifest("matmul.toml", M=65)`.

    `kernel`: which, of a manifest with several. `dims`: sizes, where they are not the manifest's. Only the simulator
    runs; nothing is compared. Raises `UsageError`, `WgslError`.
    """
    found = load(Path(path), kernel)
    case = found.case(found.shape(dims))
    module = check_module(found)
    fit(case, module)
    return sim.simulate(module, **case.launch, device=device)


def compute_with_buffers(
    input_arrays: Mapping[int, Value],
    output_arrays: Mapping[int, Shape],
    shader: str | Path,
    constants: Mapping[str, bool | int | float] | None = None,
    n: int | tuple[int, int, int] | None = None,
) -> dict[int, Any]:
    """Run a shader in the simulator, with the arguments and results of `wgpu.utils.compute.compute_with_buffers`.

    `input_arrays`: the contents of storage buffers, by binding. `output_arrays`: by binding a size in bytes, a shape
    with a format (`(8, 4, "f")` or "8x4xf"), or a type of ctypes arrays; a buffer that is no input starts as zeros.
    `constants`: overrides. `n`: workgroups; by default the length of the first output. Returns memoryviews, or arrays
    of ctypes. Raises `WgslError`, `UsageError`.
    """
    if not output_arrays:
        raise UsageError("output_arrays must name a binding")
    shapes = {binding: _shape(binding, wanted) for binding, wanted in output_arrays.items()}
    bindings: dict[tuple[int, int], Value] = {(0, binding): value for binding, value in input_arrays.items()}
    for binding, (sizes, format_) in shapes.items():
        bindings.setdefault((0, binding), bytes(prod(sizes) * np.dtype(format_).itemsize))
    groups = next(iter(shapes.values()))[0][0] if n is None else n
    module = check_for_compute(read(shader))
    run = sim.simulate(module, grid=groups, bindings=bindings, overrides=constants, probes="none")
    made: dict[int, Any] = {}
    for binding, (sizes, format_) in shapes.items():
        if (0, binding) not in run.outputs:
            raise UsageError(f"output_arrays names binding {binding}, which the shader does not write")
        data = bytearray(np.ascontiguousarray(run.output((0, binding))).tobytes())
        wanted = output_arrays[binding]
        if isinstance(wanted, type):
            made[binding] = wanted.from_buffer(data)
        else:
            numbers: Any = np.frombuffer(data, format_, prod(sizes)).reshape(sizes)  # a memoryview casts to no f16
            made[binding] = memoryview(numbers)
    return made


def _shape(binding: int, wanted: Shape) -> tuple[tuple[int, ...], str]:
    """The sizes and the format of an output."""
    if isinstance(wanted, type):
        return (ctypes.sizeof(wanted),), "B"
    parts = wanted.split("x") if isinstance(wanted, str) else (wanted, "B") if isinstance(wanted, int) else wanted
    match parts:
        case [*sizes, str(format_)] if sizes and format_ in _FORMATS and all(map(_is_size, sizes)):
            return tuple(map(int, sizes)), format_
        case _:
            raise UsageError(
                f"output_arrays: binding {binding} is {wanted!r}; write (sizes, format), as in (8, 4, 'f')"
            )


def _is_size(size: object) -> bool:
    return re.fullmatch(r"0*[1-9]\d*", str(size), re.ASCII) is not None

"""The project's own kernels on the GPU, against their references: the WGSL is right whatever the simulator says."""

from pathlib import Path

import numpy as np
import pytest

from oracle import gpu, manifest, references
from oracle.compare import Rule, compare

SHADERS = Path(__file__).parents[2] / "shaders"
MANIFESTS = sorted(SHADERS.rglob("*.toml"))
STORAGE = ("storage-read", "storage-read", "storage-write", "uniform")


def run(kernel, shape):
    case = kernel.case(shape)
    slots = [gpu.Slot(b.var, 0, i, STORAGE[i]) for i, b in enumerate(kernel.bindings)]
    return case, gpu.run(kernel.source.read_text(), kernel.entry, case.grid, case.bindings, slots=slots).outputs


@pytest.mark.usefixtures("adapter")
@pytest.mark.parametrize("path", [p for p in MANIFESTS if p.stem.startswith("matmul")], ids=lambda p: p.stem)
@pytest.mark.parametrize("sizes", [(1, 52, 68), (65, 4, 60), (64, 64, 64), (130, 100, 196)], ids=str)
def test_matmul_keeps_to_the_bound_of_its_reference(path, sizes):
    kernel = manifest.load(path)
    case, outputs = run(kernel, kernel.shape(dict(zip("MKN", sizes, strict=True))))
    truth = references.find(kernel.reference)(case.arrays, case.shape.dims)["Y"]
    result = compare(outputs["Y"], truth.value, Rule("bound"), bound=truth.bound)
    assert result.ok, result


@pytest.mark.usefixtures("adapter")
def test_both_twins_write_the_same_bits():
    kernels = [manifest.load(SHADERS / f"{name}.toml") for name in ("matmul", "matmul_single")]
    first, second = (run(kernel, kernel.shape({"M": 70, "K": 36, "N": 68}))[1]["Y"] for kernel in kernels)
    assert np.array_equal(first.view(np.uint32), second.view(np.uint32))

"""The dispatches to time: each text is valid, and each kernel computes what a NumPy reference says, at small sizes."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bankshot
from tests.hardware.timed.dispatch import Timed
from tests.hardware.timed_families import dispatches

SCALE = 256  # most shapes of a family become one
Arrays = dict[str, Any]


def transposed(given: Arrays) -> Arrays:
    return {"b": given["a"].T}


def product(given: Arrays) -> Arrays:
    return {"c": given["a"] @ given["b"]}


def vector_product(given: Arrays) -> Arrays:
    return {"y": given["a"] @ given["x"]}


def packed_product(given: Arrays) -> Arrays:
    w, x = given["w"], given["x"]
    bits = 32 * w.shape[1] // x.size
    fields = w[:, :, None] >> np.arange(0, 32, bits, dtype=np.uint32) & np.uint32((1 << bits) - 1)
    weights = fields.astype(np.int64)
    weights[weights >= 1 << (bits - 1)] -= 1 << bits
    scales = np.repeat(given["scales"], x.size // given["scales"].shape[1], axis=1)
    return {"y": ((weights.reshape(scales.shape) * scales) @ x.astype(float)).astype(np.float32)}


def total(given: Arrays) -> Arrays:
    return {"total": given["x"].sum(keepdims=True, dtype=np.uint32)}


def scanned(given: Arrays) -> Arrays:
    return {"y": given["x"].cumsum(axis=1, dtype=np.uint32)}


def histogram(given: Arrays) -> Arrays:
    return {"bins": np.bincount(given["x"], minlength=given["bins"].size).astype(np.uint32)}


def smoothed(given: Arrays) -> Arrays:
    a, b = given["a"], np.zeros_like(given["a"])
    around = a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:]
    b[1:-1, 1:-1] = a[1:-1, 1:-1] / 2 + around / 8
    return {"b": b}


def filtered(given: Arrays) -> Arrays:
    return {"y": np.correlate(given["x"], given["w"], "valid").astype(np.float32)}


def filtered_channels(given: Arrays) -> Arrays:
    windows = np.lib.stride_tricks.sliding_window_view(given["x"], (3, 3), axis=(1, 2))
    return {"y": np.einsum("chwij,fcij->fhw", windows, given["w"])}


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def normalized(given: Arrays) -> Arrays:
    x = given["x"].astype(float)
    return {"y": (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)}


def attended(given: Arrays) -> Arrays:
    q, k, v = (given[name].astype(float) for name in "qkv")
    return {"o": np.einsum("hk,hkd->hd", softmax(np.einsum("hd,hkd->hk", q, k) / 8), v)}


def sparse_product(given: Arrays) -> Arrays:
    products = given["values"] * given["x"][given["columns"]]
    sums = np.concatenate([[0], np.cumsum(products, dtype=float)])
    return {"y": np.diff(sums[given["starts"]]).astype(np.float32)}


def number(timed, pattern: str) -> int:
    """The number after or before a word in the names of a dispatch, as `pattern` says."""
    found = re.search(pattern, f"{timed.kernel}; {timed.shape}")
    assert found, (pattern, timed.kernel, timed.shape)
    return int(found[1])


def copied(timed) -> Arrays:
    x = timed.bindings["x"]
    if "stride" not in timed.kernel:
        return {"y": x}
    table = x.reshape(-1, number(timed, r"stride (\d+)"), x.shape[1])
    if "written" in timed.kernel:
        table = x.reshape(table.shape[1], -1, x.shape[1])
    return {"y": table.swapaxes(0, 1).reshape(x.shape)}


def gathered(given: Arrays) -> Arrays:
    return {"y": given["x"][given["indices"]]}


def scattered(given: Arrays) -> Arrays:
    y = np.zeros_like(given["x"])
    y[given["indices"]] = given["x"]
    return {"y": y}


def reversed_bits(v: Any) -> Any:
    return np.packbits(np.unpackbits(v.view(np.uint8), bitorder="little").reshape(-1, 32), axis=1).view(">u4")[:, 0]


# One step of each map, in float64 or wrapping u32.
FUNCTIONS: dict[str, Callable[[Any, int], Any]] = {
    "multiply and add": lambda v, i: v / 2 + 0.25,
    "exp": lambda v, i: np.exp(v / 2 - 1),
    "sin": lambda v, i: np.sin(v),
    "sqrt": lambda v, i: np.sqrt(v * v + 1),
    "inverseSqrt": lambda v, i: (v * v + 1) ** -0.5,
    "division": lambda v, i: 1 / (v * v + 1),
    "log": lambda v, i: np.log(v * v + 1.5),
    "pow": lambda v, i: (v * v + 1) ** 0.25,
    "tanh": lambda v, i: np.tanh(v),
    "tanh by exp": lambda v, i: np.tanh(v),
    "hash": lambda v, i: (v ^ (v >> np.uint32(15))) * np.uint32(2654435769),
    "integer division": lambda v, i: v // np.uint32(7) + np.uint32(i * 1000003),
    "integer remainder": lambda v, i: (v + np.uint32(12345)) % np.uint32(i * 2 + 1000003),
    "count bits": lambda v, i: v + np.array([int(word).bit_count() for word in v], np.uint32),
    "reverse bits": lambda v, i: (reversed_bits(v) + np.uint32(1)).astype(np.uint32),
}


def mapped(timed) -> Arrays:
    v = timed.bindings["x"]
    v = v.astype(float) if v.dtype == np.float32 else v
    for i in range(number(timed, r"(\d+) times")):
        v = FUNCTIONS[timed.kernel](v, i)
    return {"y": v}


def attracted(given: Arrays) -> Arrays:
    at, mass = given["bodies"][:, :3].astype(float), given["bodies"][:, 3]
    away = at[None] - at[:, None]
    pulls = mass[None] * ((away**2).sum(axis=2) + 0.01) ** -1.5
    return {"forces": np.concatenate([(away * pulls[:, :, None]).sum(axis=1), np.zeros((len(at), 1))], axis=1)}


def escaped(timed) -> Arrays:
    """By the operations of the kernel in f32."""
    side, one = len(timed.bindings["y"]), np.float32(1)
    steps = np.arange(side, dtype=np.float32) * (np.float32(3) / np.float32(side))
    cx, cy = np.meshgrid(steps - np.float32(2.25), steps - np.float32(1.5))
    zx, zy, n = np.zeros_like(cx), np.zeros_like(cy), np.zeros(cx.shape, np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(number(timed, r"to (\d+)")):
            n += zx * zx + zy * zy < 4 * one
            zx, zy = zx * zx - zy * zy + cx, 2 * one * zx * zy + cy
    return {"y": n}


def collatz(given: Arrays) -> Arrays:
    v, n = given["x"].astype(np.int64), np.zeros_like(given["x"])
    while (v > 1).any():
        n += v > 1
        v = np.where(v > 1, np.where(v % 2 == 0, v // 2, 3 * v + 1), v)
    return {"y": n}


def chained(timed) -> Arrays:
    x = timed.bindings["x"]
    v = x[: timed.bindings["y"].size]
    for i in range(number(timed, r"(\d+) ")):
        if "loads" in timed.kernel:
            v = x[v] if "global" in timed.kernel else x[:1024][v % 1024] % 1024
        elif "integer division" in timed.kernel:
            v = v // np.uint32(i % 3 + 1) + np.uint32(1000000)
        elif "f32" in timed.kernel:
            v = (v.view(np.float32) / 2 + 1).astype(np.float32).view(np.uint32)
        elif "square root" in timed.kernel:
            v = np.sqrt(v.view(np.float32) + np.float32(1)).view(np.uint32)
        else:
            v = v * np.uint32(1664525) + np.uint32(1013904223)
    return {"y": v}


def polynomial(given: Arrays) -> Arrays:
    v, total = given["x"].astype(float), 1.0
    for _ in range(256):
        total = total * v / 2 + 0.25
    return {"y": total}


def reversed_32s(given: Arrays) -> Arrays:
    return {"y": given["x"].reshape(-1, 32)[:, ::-1].reshape(-1)}


def rotated(timed) -> Arrays:
    x = timed.bindings["x"]
    return {"y": np.roll(x.reshape(-1, 32), -number(timed, r"(\d+) steps"), axis=1).reshape(x.shape)}


def strided_sums(timed) -> Arrays:
    lanes = np.arange(timed.bindings["y"].size) % 128
    places = lanes[:, None] * number(timed, r"stride (\d+)") + np.arange(number(timed, r"(\d+) steps"))
    return {"y": timed.bindings["x"][places % 4096].sum(axis=1, dtype=np.uint32)}


def last_stores(timed) -> Arrays:
    steps, v = number(timed, r"(\d+) steps"), timed.bindings["x"][:128]
    return {"y": np.resize(2 * v + np.uint32(2 * steps - 3), timed.bindings["y"].size)}


# By atomic function: what all calls make of the values that reach a word; the others depend on their order.
UPDATES = {
    "add": lambda values, times: np.uint32(values.sum(dtype=np.uint64) * times & 0xFFFFFFFF),
    "add one": lambda values, times: np.uint32(values.size * times),
    "max": lambda values, times: values.max(),
    "or": lambda values, times: np.bitwise_or.reduce(values),
}


def updated(timed) -> Arrays:
    """`y` stays 0; words of global memory get all values."""
    x, times = timed.bindings["x"], number(timed, r"(\d+) times")
    expected = {"y": np.zeros_like(x)}
    kind, target = timed.kernel.removesuffix(", result used").rsplit(", ", 1)
    kind = kind.partition(",")[0]
    if timed.family == "global atomics" and kind in UPDATES:
        threads = np.arange(x.size)
        words = {"same word": threads * 0, "word per lane": threads % 256, "word per thread": threads,
                 "32 words": threads % 32}[target]  # fmt: skip
        z = np.zeros_like(x)
        for word in np.unique(words):
            z[word] = UPDATES[kind](x[words == word], times)
        expected["z"] = z
    return expected


def of_arrays(reference: Callable[[Arrays], Arrays]) -> Callable[[Timed], Arrays]:
    return lambda timed: reference(timed.bindings)


# By family: the expected values of outputs. All are exact but those in TOLERANCES.
REFERENCES: dict[str, Callable[[Timed], Arrays]] = {
    "transpose": of_arrays(transposed),
    "matmul": of_arrays(product),
    "gemv": of_arrays(vector_product),
    "gemv of 4-bit weights": of_arrays(packed_product),
    "gemv of 8-bit weights": of_arrays(packed_product),
    "reduction": of_arrays(total),
    "scan of blocks": of_arrays(scanned),
    "histogram": of_arrays(histogram),
    "stencil": of_arrays(smoothed),
    "conv1d": of_arrays(filtered),
    "conv2d": of_arrays(filtered_channels),
    "softmax": lambda timed: {"y": softmax(timed.bindings["x"].astype(float))},
    "layernorm": of_arrays(normalized),
    "attention": of_arrays(attended),
    "sparse rows": of_arrays(sparse_product),
    "copy": copied,
    "gather": of_arrays(gathered),
    "scatter": of_arrays(scattered),
    "map": mapped,
    "n-body": of_arrays(attracted),
    "mandelbrot": escaped,
    "collatz": of_arrays(collatz),
    "sort per thread": lambda timed: {"y": np.sort(timed.bindings["x"], axis=1)},
    "chain": chained,
    "workgroup size, saxpy": lambda timed: {"y": timed.bindings["x"] / 2 + np.float32(0.25)},
    "workgroup size, polynomial": of_arrays(polynomial),
    "workgroup size, reversal in 32s": of_arrays(reversed_32s),
    "global atomics": updated,
    "workgroup atomics": updated,
    "barriers in a loop": rotated,
    "workgroup loads by stride": strided_sums,
    "workgroup stores by stride": last_stores,
}
# Relative to the largest value: what functions, and sums of at most 4,096 terms, lose in f32.
TOLERANCES = dict.fromkeys(("softmax", "layernorm", "attention", "n-body", "workgroup size, polynomial"), 1e-5)
TOLERANCES["map"] = 1e-4  # 128 steps, each on the result of the one before


def check_compaction(timed, outputs):
    """The kept values may have any order."""
    x, percent = timed.bindings["x"], number(timed, r"(\d+)%")
    expected = np.sort(x[x < percent])
    np.testing.assert_array_equal(outputs["count"], [expected.size])
    np.testing.assert_array_equal(np.sort(outputs["kept"][: expected.size]), expected)


def check_outputs(timed, outputs):
    if timed.family == "compaction":
        return check_compaction(timed, outputs)
    for name, expected in REFERENCES[timed.family](timed).items():
        given = timed.bindings[name]
        obtained = np.asarray(outputs[name]).reshape(expected.shape)
        if expected.dtype == np.float32 and obtained.dtype == np.uint32:  # an output of atomics holds the bits
            obtained = obtained.view(np.float32)
        assert given.nbytes == obtained.nbytes
        exact = timed.family not in TOLERANCES or given.dtype != np.float32
        tolerance = 0.0 if exact else TOLERANCES[timed.family] * np.abs(expected).max()
        np.testing.assert_allclose(obtained, expected, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def small():
    return list(dispatches(SCALE))


def test_names_are_unique(small):
    names = [(timed.family, timed.kernel, timed.shape) for timed in small]
    assert len(names) == len(set(names)) >= 300


def test_each_family_has_kernels_to_order(small):
    kernels: dict[str, dict[str, set[str]]] = {}
    for timed in small:
        kernels.setdefault(timed.family, {}).setdefault(timed.shape, set()).add(timed.kernel)
    assert len(kernels) >= 16
    assert kernels.keys() == {*REFERENCES, "compaction"}
    for family, of_shape in kernels.items():
        assert min(map(len, of_shape.values())) >= 3, family


@pytest.mark.parametrize(("grid", "megabytes"), [((65536, 1, 1), (1,)), ((1, 1, 1), (65,)), ((1, 1, 1), (60,) * 4)])
def test_no_dispatch_exceeds_the_limits(grid, megabytes):
    bindings = {f"b{i}": np.empty(size << 20, np.uint8) for i, size in enumerate(megabytes)}
    with pytest.raises(ValueError, match="grid"):
        Timed("family", "kernel", "shape", "", grid, bindings)


def test_scale_divides_sizes():
    assert next(dispatches(8)).shape == "128x256"
    assert next(dispatches(1)).shape == "1024x2048"


@pytest.mark.parametrize("family", [*REFERENCES, "compaction"])
def test_each_kernel_of_a_family_computes_its_reference(small, family):
    timed_ones = [timed for timed in small if timed.family == family]
    assert timed_ones
    for timed in timed_ones:
        module = bankshot.check(timed.wgsl)
        run = bankshot.simulate(module, entry=timed.entry, grid=timed.grid, bindings=timed.bindings, probes="none")
        check_outputs(timed, run.outputs)

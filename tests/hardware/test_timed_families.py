"""The dispatches to time: each text is valid, and each kernel computes what a NumPy reference says, at small sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bankshot
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


# By family: the expected values of outputs in the arrays given. All are exact but those in TOLERANCES.
REFERENCES: dict[str, Callable[[Arrays], Arrays]] = {
    "transpose": transposed,
    "matmul": product,
    "gemv": vector_product,
    "gemv of 4-bit weights": packed_product,
    "gemv of 8-bit weights": packed_product,
    "reduction": total,
    "scan of blocks": scanned,
    "histogram": histogram,
    "stencil": smoothed,
    "conv1d": filtered,
    "conv2d": filtered_channels,
    "softmax": lambda given: {"y": softmax(given["x"].astype(float))},
    "layernorm": normalized,
    "attention": attended,
    "sparse rows": sparse_product,
}
# Relative to the largest value: what exp, rsqrt and sums of 4,096 terms lose in f32.
TOLERANCES = {"softmax": 1e-5, "layernorm": 1e-5, "attention": 1e-5}


def check_compaction(timed, outputs):
    """The kept values may have any order."""
    x, percent = timed.bindings["x"], int(timed.shape.split()[1].rstrip("%"))
    expected = np.sort(x[x < percent])
    np.testing.assert_array_equal(outputs["count"], [expected.size])
    np.testing.assert_array_equal(np.sort(outputs["kept"][: expected.size]), expected)


def check_outputs(timed, outputs):
    if timed.family == "compaction":
        return check_compaction(timed, outputs)
    for name, expected in REFERENCES[timed.family](timed.bindings).items():
        obtained = np.asarray(outputs[name]).reshape(expected.shape)
        if obtained.dtype != expected.dtype and obtained.dtype.itemsize == expected.dtype.itemsize == 4:
            obtained = obtained.view(expected.dtype)
        tolerance = TOLERANCES.get(timed.family, 0.0) * np.abs(expected).max()
        np.testing.assert_allclose(obtained, expected, rtol=0, atol=tolerance)


@pytest.fixture(scope="module")
def small():
    return list(dispatches(SCALE))


@pytest.mark.parametrize("family", [*REFERENCES, "compaction"])
def test_each_kernel_of_a_family_computes_its_reference(small, family):
    timed_ones = [timed for timed in small if timed.family == family]
    assert timed_ones
    for timed in timed_ones:
        run = bankshot.simulate(
            bankshot.check(timed.wgsl), entry=timed.entry, grid=timed.grid, bindings=timed.bindings, probes="none"
        )
        check_outputs(timed, run.outputs)

"""References of quantized and normalizing kernels: values by exact sums, bounds by sums that round at each step."""

from fractions import Fraction

import numpy as np
import pytest

from bankshot.oracle.manifests.quantization import FORMATS
from bankshot.oracle.references import find

F32 = np.float32
ULP = 2.0**-23


def packed(name, rows, columns, seed=0):
    """The arrays of a product, and the weights as fractions."""
    rng = np.random.default_rng(seed)
    parts = FORMATS[name].pack(rng.standard_normal((rows, columns)))
    weights = FORMATS[name].unpack(parts, rows, columns)
    x = rng.standard_normal((2, columns)).astype(F32)
    return {"X": x, **{part or "W": array for part, array in parts.items()}}, weights


@pytest.mark.parametrize("name", FORMATS)
def test_a_product_with_packed_weights(name):
    arrays, weights = packed(name, 3, 300)
    y = find(f"matmul_t_{name}")(arrays, {"M": 2, "N": 3, "K": 300})["Y"]
    for i, x in enumerate(arrays["X"]):
        for j, row in enumerate(weights.value):
            exact = sum(Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x, row, strict=True))
            assert abs(Fraction(float(y.value[i, j])) - exact) <= Fraction(float(y.bound[i, j])) / 2**20
            made = F32(0)
            for a, b in zip(x, row.astype(F32), strict=True):
                made = F32(made + a * b)
            assert abs(float(made) - float(exact)) <= y.bound[i, j]
            terms = float(np.abs(x) @ weights.magnitude[j])  # K + 3 roundings of each
            assert 303 * 2**-24 * terms <= y.bound[i, j] <= 303 * 2**-24 * terms * 1.0001


def test_a_kernel_may_sum_scales_and_mins_separately():
    """As many Q4_K kernels do: d * scale times the sum of q * x, less dmin * min times the sum of x."""
    arrays, weights = packed("q4_k", 1, 256)
    x, low = arrays["X"][0].reshape(8, 32), (weights.magnitude - weights.value).reshape(8, 32)[:, 0] / 2
    scaled = ((weights.magnitude + weights.value) / 2).reshape(8, 32).astype(F32)
    made = F32(0)
    for part, q, minimum in zip(x, scaled, low.astype(F32), strict=True):
        high, below = F32(0), F32(0)
        for a, b in zip(part, q, strict=True):
            high, below = F32(high + a * b), F32(below + a)
        made = F32(made + F32(high - F32(minimum * below)))
    y = find("matmul_t_q4_k")({**arrays, "X": arrays["X"][:1]}, {"M": 1, "N": 1, "K": 256})["Y"]
    assert abs(float(made) - y.value[0, 0]) <= y.bound[0, 0]


def test_f16_may_go_to_either_neighbour_and_no_further():
    arrays, weights = packed("q4_k", 2, 300)
    y = find("dequant_q4_k")(arrays, {"N": 2, "K": 300})["Y"]
    nearest = weights.value.astype(np.float16)
    below = np.where(nearest > weights.value, np.nextafter(nearest, np.float16(-np.inf)), nearest)
    above = np.nextafter(below, np.float16(np.inf))
    between = below != weights.value
    for neighbour, further in ((below, -np.inf), (above, np.inf)):
        assert (np.abs(neighbour - weights.value) <= y.bound).all()
        assert (np.abs(np.nextafter(neighbour, np.float16(further)) - weights.value) > y.bound)[between].all()


@pytest.mark.parametrize("sign", [1, -1])
def test_silu_with_all_the_errors_that_wgsl_allows(sign):
    x = np.linspace(-30, 30, 2001, dtype=F32)
    y = find("silu")({"X": x}, {"N": 2001})["Y"]
    wide = x.astype(np.float64)
    e = np.exp(-wide) * (1 + sign * (3 + 2 * np.abs(wide)) * ULP / 2)
    made = wide / ((1 + e) * (1 + sign * ULP / 2)) * (1 - sign * 2.5 * ULP / 2)
    assert (np.abs(made - y.value) <= y.bound).all()
    assert (np.abs(made - y.value) > 0.3 * y.bound).mean() > 0.9


@pytest.mark.parametrize("sign", [1, -1])
def test_rmsnorm_with_all_the_errors_that_wgsl_allows(sign):
    rng = np.random.default_rng(2)
    x, w = rng.standard_normal((3, 50)).astype(F32), rng.standard_normal(50).astype(F32)
    params = np.array([(50, 1e-6)], [("columns", "u4"), ("epsilon", "f4")])
    y = find("rmsnorm")({"X": x, "W": w, "params": params}, {"M": 3, "N": 50})["Y"]
    mean = np.zeros((3, 1))
    for column in x.astype(np.float64).T:
        mean = (mean + column[:, None] ** 2) * (1 + sign * 2.0**-24)
    mean = mean / 50 * (1 + sign * 2.5 * ULP) + float(F32(1e-6))
    made = x / np.sqrt(mean) * (1 - sign * 2 * ULP) * w.astype(np.float64)
    assert (np.abs(made - y.value) <= y.bound).all()
    assert (np.abs(made - y.value) > 0.3 * y.bound).all()

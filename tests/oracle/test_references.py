"""References against loops so plain that they need no proof, and their bounds against real float32 roundings."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracle.errors import UsageError
from oracle.references import find, gamma


@given(st.integers(1, 6), st.integers(1, 9), st.integers(1, 5), st.integers(0, 99))
def test_matmul_value_and_bound(m, k, n, seed):
    rng = np.random.default_rng(seed)
    x, w = rng.standard_normal((m, k)).astype(np.float32), rng.standard_normal((k, n)).astype(np.float32)
    y = find("matmul")({"X": x, "W": w}, {"M": m, "K": k, "N": n})["Y"]
    for i in range(m):
        for j in range(n):
            truth = sum(Fraction(float(x[i, p])) * Fraction(float(w[p, j])) for p in range(k))
            weight = sum(abs(Fraction(float(x[i, p])) * Fraction(float(w[p, j]))) for p in range(k))
            assert abs(Fraction(float(y.value[i, j])) - truth) <= weight * Fraction(k, 2**52)
            assert y.bound[i, j] == pytest.approx(float(weight) * gamma(k), rel=1e-6)
            rounded = np.float32(0)
            for p in range(k):
                rounded = np.float32(rounded + np.float32(x[i, p] * w[p, j]))
            assert abs(float(rounded) - float(truth)) <= y.bound[i, j]


def test_the_bound_notices_a_missing_product():
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((8, 768)).astype(np.float32), rng.standard_normal((768, 8)).astype(np.float32)
    y = find("matmul")({"X": x, "W": w}, {"M": 8, "K": 768, "N": 8})["Y"]
    short = x[:, :-1].astype(np.float64) @ w[:-1].astype(np.float64)
    assert (np.abs(short - y.value) > y.bound).mean() > 0.9


def test_an_unknown_reference_is_named():
    with pytest.raises(UsageError, match="no reference is named matmull; did you mean matmul"):
        find("matmull")

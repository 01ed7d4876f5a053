"""References against loops so plain that they need no proof, and their bounds against real float32 roundings."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.oracle.errors import UsageError
from bankshot.oracle.references import find, float32_error
from bankshot.oracle.references.float32_error import gamma


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


# Each reference of a product, as a formula over its arrays; silu and the rest are spelt out below.
PRODUCTS = {
    "product": ("C", lambda a: a["A"] @ a["B"]),
    "matmul_residual": ("Y", lambda a: a["X"] @ a["W"] + a["R"]),
    "matmul_residual_swiglu_a": ("Y", lambda a: mixed(a) @ a["W"] + a["R"]),
    "matmul_t": ("Y", lambda a: a["X"] @ a["W"].T),
    "matmul_t_acc": ("Y", lambda a: a["X"] @ a["W"].T + a["Y"]),
    "matmul_at": ("Y", lambda a: a["X"].T @ a["B"]),
    "matmul_at_acc": ("Y", lambda a: a["X"].T @ a["B"] + a["Y"]),
    "matmul_at_swiglu_a": ("Y", lambda a: mixed(a).T @ a["B"]),
    "matmul_at_acc_swiglu_a": ("Y", lambda a: mixed(a).T @ a["B"] + a["Y"]),
    "swiglu": ("H", lambda a: mixed(a)),
}


def mixed(arrays):
    return arrays["GATE"] / (1 + np.exp(-arrays["GATE"])) * arrays["UP"]


@pytest.mark.parametrize("name", PRODUCTS)
def test_float32_products_stay_within_their_bounds(name):
    """The formula in float64 is the value; the formula in float32, each operation rounded, is within the bound."""
    rng = np.random.default_rng(3)
    names = ("A", "B", "X", "W", "R", "Y", "GATE", "UP")
    arrays = {key: 3 * rng.standard_normal((9, 9)).astype(np.float32) for key in names}
    output, formula = PRODUCTS[name]
    found = find(name)(arrays, {})[output]
    np.testing.assert_allclose(found.value, formula({k: a.astype(np.float64) for k, a in arrays.items()}), rtol=1e-12)
    error = np.abs(formula(arrays).astype(np.float64) - found.value)
    assert formula(arrays).dtype == np.float32
    assert error.any()
    assert (error <= found.bound).all()
    assert np.median(found.bound / np.abs(found.value)) < 1e-4


@pytest.mark.parametrize("gate", [0.0, 1.0, -1.0, 20.0, -20.0, 80.0, -87.0])
def test_the_bound_of_silu_covers_all_errors_that_wgsl_allows(gate):
    """exp() moved by the ULP that WGSL allows it, and the quotient by 2.5 more, up and down."""
    up = np.float32(1.5)
    found = find("swiglu")({"GATE": np.float32([gate]), "UP": np.float32([up])}, {})["H"]
    for ways in (-1, 1):
        exact = np.exp(-gate)
        moved = exact + ways * (3 + 2 * abs(gate)) * np.spacing(np.float32(exact))
        quotient = gate / (1 + moved)
        worst = (quotient + ways * 2.5 * np.spacing(np.float32(quotient))) * up
        assert abs(worst - found.value[0]) <= found.bound[0]


def test_the_bound_detects_a_missing_product():
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal((8, 768)).astype(np.float32), rng.standard_normal((768, 8)).astype(np.float32)
    y = find("matmul")({"X": x, "W": w}, {"M": 8, "K": 768, "N": 8})["Y"]
    short = x[:, :-1].astype(np.float64) @ w[:-1].astype(np.float64)
    assert (np.abs(short - y.value) > y.bound).mean() > 0.9


def test_an_unknown_reference_is_named():
    with pytest.raises(UsageError, match="no reference is named matmull; did you mean matmul"):
        find("matmull")


def test_the_bound_of_a_sum_covers_a_large_addend():
    """The sum is rounded by as much as the addend is large, however small the products are."""
    x, w = np.full((1, 2), 2.0**-14, np.float32), np.full((2, 1), 2.0**-14, np.float32)
    residual = np.full((1, 1), 1000.0, np.float32)
    found = find("matmul_residual")({"X": x, "W": w, "R": residual}, {})["Y"]
    assert abs(float(np.float32(residual[0, 0] + (x @ w)[0, 0])) - found.value[0, 0]) <= found.bound[0, 0]
    assert found.bound[0, 0] == pytest.approx(gamma(3) * 1000.0, rel=1e-3)


@pytest.mark.parametrize("block", [1, 8, 9, 10, 26, 27, 28, 10_000])
def test_a_product_is_the_same_in_blocks_of_any_size(monkeypatch, block):
    """Of a matrix of 9 rows, 1, 2, 3 or all 5 columns are converted at once."""
    rng = np.random.default_rng(7)
    a, b = rng.integers(-9, 9, (4, 9)).astype(np.float32), rng.integers(-9, 9, (9, 5)).astype(np.float32)
    monkeypatch.setattr(float32_error, "_BLOCK", block)
    found = float32_error.sum_of_products(a, b, addend=np.full((4, 5), 2, np.float32), a_error=np.ones((4, 9)))
    np.testing.assert_array_equal(found.value, a @ b + 2)  # whole numbers: exact
    relative = gamma(10) + gamma(10, 2.0**-53)  # nine products and what is added
    weights, given = np.abs(a.astype(np.float64)) @ np.abs(b), np.abs(b.astype(np.float64)).sum(axis=0)
    errors = relative * (weights + 2) + (1 + relative) * given
    np.testing.assert_allclose(found.bound, errors, rtol=1e-12)

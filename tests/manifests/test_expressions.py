from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bankshot.oracle.errors import UsageError
from bankshot.oracle.manifests.dimension_arithmetic import evaluate, fraction, names_in


@given(st.integers(1, 10**30), st.integers(1, 10**6))
def test_ceil_is_exact_for_sizes_that_floats_cannot_hold(n, tile):
    assert evaluate(f"ceil(N / {tile})", {"N": n}) == -(-n // tile)


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 * M + 1", 15), ("-M", -7), ("M // 2", 3), ("M % 4", 3), ("max(M, 9)", 9), ("floor(M / 2)", 3), (12, 12)],
)
def test_arithmetic(text, value):
    assert evaluate(text, {"M": 7}) == value


def test_a_fraction_is_exact():
    assert fraction("ceil(K / 256) / 256", {"K": 1152}) == Fraction(5, 256)
    assert fraction(3, {}) == 3


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("M +", "not arithmetic"),
        ("K", "no dimension is named K; there are M"),
        ("M / 2", "not an integer"),
        ("M / 0", "divides by zero"),
        ("M ** 2", "are allowed"),
        ("__import__('os')", "are allowed"),
        ("M.real", "are allowed"),
        ("1.5", "are allowed"),
        ("True", "are allowed"),
        ("ceil()", "in `ceil\\(\\)`"),
    ],
)
def test_anything_else_is_rejected(text, message):
    with pytest.raises(UsageError, match=message):
        evaluate(text, {"M": 7})


@pytest.mark.parametrize(
    "text",
    ["M +", "M\0", "-" * 9_000 + "M"],
    ids=["half", "null", "too deep for the parser"],
)
def test_what_python_cannot_read_is_not_arithmetic(text):
    with pytest.raises(UsageError, match="is not arithmetic"):
        evaluate(text, {"M": 7})
    with pytest.raises(UsageError, match="is not arithmetic"):
        names_in(text)


def test_names_leave_functions_out():
    assert names_in("ceil(N / 64) * max(M, 1)") == {"N", "M"}

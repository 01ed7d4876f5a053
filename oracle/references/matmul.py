"""References of the matrix products in shaders/, forward and backward."""

from __future__ import annotations

from collections.abc import Mapping

from ..comparison.bits import Array
from .float32_error import silu_times, sum_of_products
from .reference_registry import Arrays, Expected, reference


@reference("matmul", "X W")
def matmul(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"])}


@reference("product", "A B", gives="C")
def product(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """C = A @ B."""
    return {"C": sum_of_products(arrays["A"], arrays["B"])}


@reference("matmul_residual", "X W R")
def matmul_residual(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W + R."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"], arrays["R"])}


@reference("matmul_residual_swiglu_a", "GATE UP W R")
def matmul_residual_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = (silu(GATE) * UP) @ W + R."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value, arrays["W"], arrays["R"], hidden.bound)}


@reference("swiglu", "GATE UP", gives="H")
def swiglu(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """H = silu(GATE) * UP."""
    return {"H": silu_times(arrays["GATE"], arrays["UP"])}


@reference("matmul_t", "X W")
def matmul_t(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W^T: the gradient of a linear layer's input, where X is that of its output."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"].T)}


@reference("matmul_t_acc", "X W Y")
def matmul_t_acc(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += X @ W^T."""
    return {"Y": sum_of_products(arrays["X"], arrays["W"].T, arrays["Y"])}


@reference("matmul_at", "X B")
def matmul_at(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X^T @ B: the gradient of a linear layer's weights, where B is that of its output."""
    return {"Y": sum_of_products(arrays["X"].T, arrays["B"])}


@reference("matmul_at_acc", "X B Y")
def matmul_at_acc(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += X^T @ B."""
    return {"Y": sum_of_products(arrays["X"].T, arrays["B"], arrays["Y"])}


@reference("matmul_at_swiglu_a", "GATE UP B")
def matmul_at_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = (silu(GATE) * UP)^T @ B."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value.T, arrays["B"], a_error=_bound(hidden).T)}


@reference("matmul_at_acc_swiglu_a", "GATE UP B Y")
def matmul_at_acc_swiglu_a(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y += (silu(GATE) * UP)^T @ B."""
    hidden = silu_times(arrays["GATE"], arrays["UP"])
    return {"Y": sum_of_products(hidden.value.T, arrays["B"], arrays["Y"], _bound(hidden).T)}


def _bound(expected: Expected) -> Array:
    assert expected.bound is not None
    return expected.bound

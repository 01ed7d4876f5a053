"""References of kernels with quantized weights, and of the other kernels of a language model.

Unpacked weights are exact; a kernel rounds when it converts them to f32, and when it sums.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..manifests.quantization import FORMATS
from .float32_error import F32_ROUNDOFF, F64_ROUNDOFF, gamma, silu_times, sum_of_products
from .reference_registry import Arrays, Expected, Reference, reference

ULP = 2 * F32_ROUNDOFF  # relative size of one unit in the last place, at most


def _matmul_t(name: str) -> Reference:
    """Y = X @ W^T, with W [N, K] packed as `name`.

    A weight is scale * q + offset, of which at most two roundings make an f32 (one, where the kernel lets the product
    stay exact, as it is in 24 bits), relative to both terms; then K products are summed, and kernels are free to sum
    those of scale and offset apart. So |error| <= gamma(K + 3) * |X| @ (|scale * q| + |offset|).
    """

    def compute(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
        parts = {part: arrays[part or "W"] for part in FORMATS[name].parts}
        weights = FORMATS[name].unpack(parts, dims["N"], dims["K"])
        x = arrays["X"].astype(np.float64)
        relative = gamma(dims["K"] + 3) + gamma(dims["K"], F64_ROUNDOFF)
        return {"Y": Expected(x @ weights.value.T, relative * (np.abs(x) @ weights.magnitude.T))}

    return compute


for _name in FORMATS:
    _parts = " ".join(part or "W" for part in FORMATS[_name].parts)
    _words = f"Y = X @ W^T, with W [N, K] packed as {_name}"
    reference(f"matmul_t_{_name}", f"X {_parts}", dims="N K", words=_words)(_matmul_t(_name))


@reference("dequant_q4_k", "W", dims="N K")
def dequant_q4_k(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = W in f16: a rounding to f32 and one to f16, which WGSL allows in either direction."""
    weights = FORMATS["q4_k"].unpack({"": arrays["W"]}, dims["N"], dims["K"])
    _, exponents = np.frexp(weights.value)
    spacing = np.ldexp(1.0, np.maximum(exponents - 11, -24))
    return {"Y": Expected(weights.value, spacing + 2 * F32_ROUNDOFF * weights.magnitude)}


@reference("silu", "X")
def silu(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X / (1 + exp(-X))."""
    return {"Y": silu_times(arrays["X"], np.ones((), np.float32))}


@reference("rmsnorm", "X W params", dims="N")
def rmsnorm(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X / sqrt(mean(X^2) + epsilon) * W, row by row.

    The sum of N squares is off by gamma(N), the division by 2.5 ULP, epsilon (positive) costs a rounding; the inverse
    square root halves what went into it and adds 2 ULP; two products. WGSL, section "Floating Point Accuracy".
    """
    x, w, n = arrays["X"].astype(np.float64), arrays["W"].astype(np.float64), dims["N"]
    mean = np.mean(x**2, axis=1, keepdims=True)
    value = x / np.sqrt(mean + float(arrays["params"]["epsilon"].item())) * w
    inside = gamma(n) + 2.5 * ULP + F32_ROUNDOFF
    relative = inside / 2 + 2 * ULP + 2 * F32_ROUNDOFF + gamma(n, F64_ROUNDOFF)
    return {"Y": Expected(value, relative / (1 - inside - relative) * np.abs(value))}


@reference("ffn_gate_up", "X W C")
def ffn_gate_up(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = X @ W and X @ C, side by side."""
    return {"Y": sum_of_products(arrays["X"], np.concatenate([arrays["W"], arrays["C"]], axis=1))}


@reference("ffn_down", "GATE UP W", "GATE_UP W")
def ffn_down(arrays: Arrays, dims: Mapping[str, int]) -> dict[str, Expected]:
    """Y = (silu(GATE) * UP) @ W, where GATE and UP are arrays, or the halves of GATE_UP."""
    both = arrays.get("GATE_UP")
    gate, up = (arrays["GATE"], arrays["UP"]) if both is None else np.split(both, 2, axis=1)
    hidden = silu_times(gate, up)
    return {"Y": sum_of_products(hidden.value, arrays["W"], a_error=hidden.bound)}

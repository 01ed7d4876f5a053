"""Whether outputs are wrong, in plain NumPy: no code of the judge decides what it should have found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

_GROSS = 0.05  # of its size, and of the largest, that an element is off


@dataclass(frozen=True)
class Output:
    """What a kernel wrote, and what the reference expects, as float64."""

    actual: NDArray[Any]
    expected: NDArray[np.float64]

    @cached_property
    def values(self) -> NDArray[np.float64]:
        return self.actual.astype(np.float64).reshape(self.expected.shape)

    @cached_property
    def error(self) -> NDArray[np.float64]:
        """How far off each element is; infinite where one of both is no number."""
        with np.errstate(invalid="ignore"):
            error = np.abs(self.values - self.expected)
        return np.where(np.isnan(error), np.inf, error)

    @cached_property
    def is_gross(self) -> bool:
        """Whether an element is off by more than rounding, and any sane limit, explain."""
        size = np.abs(self.expected)
        return bool((self.error > _GROSS * (size + size.max(initial=0.0)) + 1e-3).any())


def beyond(rule: str, limits: Mapping[str, float], output: Output) -> bool:
    """Whether a rule of a manifest, by its definition, rejects an output that is grossly wrong."""
    if not output.is_gross:
        return False
    error, size = output.error, np.abs(output.expected)
    if rule == "close" and limits:
        return bool((error > 1.01 * (limits["atol"] + limits["rtol"] * size)).any())
    if rule == "ulp" and output.actual.dtype.kind == "f":
        wider = np.maximum(size, np.where(np.isfinite(output.values), np.abs(output.values), 0.0))
        spacing = np.spacing(wider.astype(output.actual.dtype)).astype(np.float64)
        return bool((error > 2 * limits["max"] * spacing).any())
    if rule == "ulp":
        return bool((error > limits["max"]).any())
    if rule == "nmse":
        power = float((size**2).sum())
        return float((error**2).sum()) > 1.01 * limits.get("max", 5e-4) * power
    return True

"""The registry of scalar operations, and the decorators that fill it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One operation. `fn` takes and returns NumPy scalars: np.float32 for f32 and f16, np.int32, np.uint32, and np.uint32
    0 or 1 for bool; Python numbers for the abstract kinds af and ai. `flops` as commonly counted: fma is 2."""

    name: str
    fn: Callable[..., Any]
    args: tuple[str, ...]
    result: str
    flops: int

    def __call__(self, *args: Any) -> Any:
        with np.errstate(all="ignore"):
            return self.fn(*args)


OPS: dict[str, ScalarOp] = {}
HELPERS: list[Callable[..., Any]] = []


def op(signature: str, flops: int = 0, name: str | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the operation of its name: `@op("f32 f32 -> f32", flops=1)`."""
    left, _, result = signature.partition("->")

    def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
        label = name or fn.__name__
        assert label not in OPS, label
        OPS[label] = ScalarOp(label, fn, tuple(left.split()), result.strip(), flops)
        return fn

    return mark


def helper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that operations call, so that they can be compiled."""
    HELPERS.append(fn)
    return fn

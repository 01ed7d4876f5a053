"""Which operations no two implementations compute alike."""

from __future__ import annotations

from ..scalar import transcendental


def is_inexact_op(op: str) -> bool:
    """Whether implementations are sure to differ in an operation: it is computed in float64 here, as nowhere else.

    The specification leaves more open; but those that round to nearest agree on sums, products, quotients and roots.
    """
    return op.rpartition("_")[0] in (*transcendental.UNARY, *transcendental.BINARY)

"""The operations whose results differ between implementations."""

from __future__ import annotations

from ..scalar import transcendental


def is_inexact_op(op: str) -> bool:
    """Whether implementations certainly differ in an operation: Bankshot computes it in float64, which none of them do.

    The specification leaves more open, but implementations that round to nearest agree on sums, products, quotients and
    roots.
    """
    return op.rpartition("_")[0] in (*transcendental.UNARY, *transcendental.BINARY)

"""Rounding to f16, and sums that can be rounded once more without harm.

An f16 is kept as the float32 of the same value. What an f16 operation computes in float64 is rounded to f16 in one step.
"""

from __future__ import annotations

import numpy as np

from .define import helper

_EXPONENT = np.int64(0x7FF0000000000000)
_ONE = np.int64(1)


@helper
def round_f16(y):
    """The f16 nearest to a float64, ties to even, overflowing to infinity; as np.float32."""
    y = np.float64(y)
    power = np.int64(y.view(np.int64) & _EXPONENT).view(np.float64)
    # Adding 1.5 * 2^52 quanta and taking them away leaves a whole number of quanta, rounded to even.
    quantum = max(power * np.float64(2.0**-10), np.float64(2.0**-24))
    magic = quantum * np.float64(1.5 * 2.0**52)
    near = (y + magic) - magic
    near = near if np.abs(near) < np.float64(65520.0) else np.float64(np.inf)
    near = near if np.abs(y) < np.float64(np.inf) else y
    return np.float32(np.copysign(near, y))


@helper
def odd_sum(a, b):
    """a + b in float64 with an inexact result rounded to odd: rounding it again to fewer bits is as good as once.

    Boldo and Melquiond, "Emulation of a FMA and correctly rounded sums", 2008.
    """
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = np.float64(total).view(np.int64)
    away = np.int64(1) if (error > 0.0) == (total > 0.0) else np.int64(-1)
    inexact = error != 0.0 and np.abs(total) < np.float64(np.inf) and (bits & _ONE) == 0
    return np.int64(bits + (away if inexact else np.int64(0))).view(np.float64)

"""Error bounds of reference functions, counted by hand from what WGSL allows each operation."""

import math

import numpy as np
import pytest

from bankshot.oracle.references.float32_error import silu_times

ROUNDING = 2.0**-24


@pytest.mark.parametrize("gate", [-10.0, -1.0, 0.0, 1.0, 50.0])
@pytest.mark.parametrize("up", [1.0, -3.0, 1000.0])
def test_silu_is_bounded_by_the_roundings_of_its_operations(gate, up):
    """An ULP is two roundings at most: exp has 3 + 2 |x| ULP, of which the denominator takes a share; the sum and the
    product have a rounding each, and the division 2.5 ULP. Terms of second order are below 1e-5 of the bound."""
    share = math.exp(-gate) / (1 + math.exp(-gate))
    roundings = 2 * (3 + 2 * abs(gate)) * share + 1 + 2 * 2.5 + 1
    made = silu_times(np.float32([gate]), np.float32([up]))
    value = gate / (1 + math.exp(-gate)) * up
    assert made.value[0] == pytest.approx(value, rel=1e-14)
    smallest = 2.0**-126 * (1 + abs(up))  # subnormal numbers may become zero
    assert made.bound[0] == pytest.approx(roundings * ROUNDING * abs(value) + smallest, rel=1e-5)

"""The number that `init` invents for a scalar of a uniform buffer."""

from types import SimpleNamespace

import pytest

from bankshot.oracle.guesses import array_sizes
from bankshot.sim.wgsl import types as t


@pytest.mark.parametrize(
    ("scalar", "names", "value"), [(t.U32, {"key": "N"}, 40), (t.U32, {}, 0), (t.I32, {}, 0), (t.F32, {}, 0.5)]
)
def test_a_number_that_is_no_size_is_zero_and_a_factor_is_a_half(scalar, names, value):
    assert array_sizes._number(SimpleNamespace(names=names), "key", scalar, {"N": 40}) == value

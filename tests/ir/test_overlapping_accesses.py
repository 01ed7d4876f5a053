"""Which units of two accesses to one variable may be the same, by their parts of an element."""

from typing import Any, cast

import pytest

from bankshot.sim.analysis.influence import Influence
from bankshot.sim.ir.access import Access


def access(offset: int, units: int, stride: int, unit: int = 4) -> Access:
    return Access(cast(Any, "v"), "storage", unit, units, offset, stride, None)


@pytest.mark.parametrize(
    ("mine", "number", "other", "wanted"),
    [
        (access(0, 4, 8), 3, access(3, 1, 8), True),  # the last component of a vector, in elements of 32 bytes
        (access(0, 4, 8), 2, access(3, 1, 8), False),
        (access(0, 4, 8), 0, access(0, 3, 8), True),
        (access(0, 4, 8), 3, access(0, 3, 8), False),
        (access(4, 4, 8), 0, access(0, 4, 8), False),
        (access(4, 4, 8), 0, access(3, 2, 8), True),
        (access(8, 1, 8), 0, access(0, 1, 8), True),  # a constant index moves by whole elements
        (access(0, 1, 4), 0, access(3, 1, 4), False),
        (access(3, 1, 4), 0, access(14, 2, 16, unit=1), True),  # from byte 12 to 16, and from 14 on
        (access(3, 1, 4), 0, access(10, 2, 16, unit=1), False),
        (access(0, 1, 4), 0, access(4, 1, 8), True),  # elements of other sizes
        (access(0, 1, 4), 0, access(2, 1, 2), True),  # the second element of these is the first of those
        (access(0, 3, 3), 0, access(2, 1, 3), True),  # no power of two
        (access(0, 1, 0), 0, access(3, 1, 0), True),  # no index, or several
    ],
)
def test_units_overlap_where_they_may_be_the_same_bytes(mine: Access, number: int, other: Access, wanted: bool) -> None:
    assert mine.may_overlap(number, other) == wanted


def test_a_value_that_is_not_known_to_be_of_one_unit_may_come_from_anywhere() -> None:
    """Such as the result of an atomic operation, or a variable as a whole."""
    assert Influence().may_load("v", [access(3, 1, 4)])
    known = Influence(units={"value": (access(0, 1, 4), 0)})
    assert not known.may_load("value", [access(3, 1, 4)])

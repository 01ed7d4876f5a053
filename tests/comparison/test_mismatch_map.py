"""The picture of a differing output: patches, their counts and heats, against arrays that are drawn by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.mismatch_map import mismatch_map
from bankshot.oracle.comparison.rules import EXACT, Rule


def test_patches_are_powers_of_two_and_count_what_is_rejected() -> None:
    rejected = np.zeros((512, 768), bool)
    rejected[511, 767] = rejected[16, 15] = rejected[17, 15] = True
    picture = mismatch_map(rejected, rejected * 3.0, "ULP")
    assert (picture.shape, picture.step, picture.size) == ((512, 768), (16, 16), (32, 48))
    assert [(p.place, p.rows, p.columns, p.count, p.worst) for p in picture.patches] == [
        ((1, 0), (16, 32), (0, 16), 2, 3.0),
        ((31, 47), (496, 512), (752, 768), 1, 3.0),
    ]


@pytest.mark.parametrize(
    ("shape", "step"),
    [
        ((32, 64), (1, 1)),
        ((33, 65), (2, 2)),
        ((64, 128), (2, 2)),
        ((65, 129), (4, 4)),
        ((2, 16, 64), (1, 1)),  # its last axis across, all others down
        ((64,), (1, 1)),
        ((1, 1), (1, 1)),
    ],
)
def test_a_map_has_at_most_32_by_64_patches(shape, step) -> None:
    made = mismatch_map(np.ones(shape, bool), np.ones(shape), "ULP")
    assert made.step == step
    assert sum(patch.count for patch in made.patches) == np.prod(shape)


def test_heats_grow_by_factors_and_nan_is_none_of_them() -> None:
    measure = np.array([1.0, 9.9, 10.1, 999.0, 10_000.0, np.nan, np.inf, 0.5])
    rejected = np.array([True] * 7 + [False])
    picture = mismatch_map(rejected, measure, "ULP")
    assert [p.heat for p in picture.patches] == [1, 1, 2, 3, 4, 0, 0]
    np.testing.assert_allclose(picture.limits, [1, 10, 100, 1000])


def test_a_vector_is_one_row_cut_across() -> None:
    rejected = np.ones(6912, bool)
    picture = mismatch_map(rejected, np.ones(6912), "ULP")
    assert (picture.shape, picture.step, picture.size) == ((1, 6912), (1, 128), (1, 54))
    assert sum(p.count for p in picture.patches) == 6912
    assert {p.heat for p in picture.patches} == {1}


def test_a_comparison_draws_in_the_measure_of_its_rule() -> None:
    expected = np.ones((2, 3), np.float32)
    actual = expected.copy()
    actual[0, 1], actual[1, 2] = 1.5, np.nan
    bound = np.full((2, 3), 0.25)
    for rule, words, worst in ((Rule("bound"), "times the bound", 2.0), (EXACT, "ULP", 2.0**22)):
        picture = compare(actual, expected, rule, bound=bound if rule.name == "bound" else None).mismatch_map
        assert picture is not None
        assert picture.measure == words
        assert [(p.place, p.worst, p.heat) for p in picture.patches] == [((0, 1), worst, 1), ((1, 2), np.inf, 0)]
    assert compare(expected, expected).mismatch_map is None

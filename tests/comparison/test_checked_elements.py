"""Which elements a comparison checks: an element that a rule accepts whatever it holds shows nothing."""

from __future__ import annotations

import numpy as np
import pytest

from bankshot.oracle.comparison.checked_elements import unchecked_elements
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.counterexamples import doubled, own_sizes, scale_of
from bankshot.oracle.comparison.rules import PART, RULES, Pair, Rule

f32 = np.float32
NAN, OTHER_NAN = np.array([0x7FC00000, 0x7FC00001], np.uint32).view(f32)
ALL, NONE = [True] * 3, None


def unchecked(rule, expected, initial, actual=None, bound=None):
    pair = Pair(np.array(expected if actual is None else actual, f32), np.array(expected, f32), bound)
    found = unchecked_elements(pair, rule, None if initial is None else np.array(initial, f32))
    return found if found is None else found.tolist()


CLOSE, LOOSE = Rule("close"), Rule("close", {"rtol": 0.5, "atol": 0.5})


@pytest.mark.parametrize(
    ("rule", "expected", "initial", "elements"),
    [
        (CLOSE, [1, 2, 3], [0, 0, 0], NONE),
        (CLOSE, [1, 2, 3], None, NONE),
        (CLOSE, [1, 2, NAN], [0, 0, OTHER_NAN], [False, False, True]),  # any NaN is close to a NaN
        (CLOSE, [1, 2, NAN], [0, 0, NAN], NONE),  # kept bit for bit, which `kept_nan` checks
        (CLOSE, [1, 2, NAN], [0, NAN, 5], NONE),
        (Rule("exact"), [1, 2, NAN], [0, 0, OTHER_NAN], NONE),
        (LOOSE, [1, 2, 3], [0.5, 2, 3], [True, False, False]),  # it accepts the untouched buffer: one change is unseen
        (LOOSE, [1, 2, 3], [0, 2, 0], NONE),
        (Rule("close", {"rtol": 1.0, "atol": 0.0}), [2, 2, 3], None, ALL),
    ],
)
def test_an_element_is_unchecked_if_nothing_could_fail(rule, expected, initial, elements):
    assert unchecked(rule, expected, initial) == elements


def test_changes_that_a_loose_rule_does_not_see_are_unchecked_wherever_they_lie():
    expected, initial = np.ones(3 * PART, f32), np.ones(3 * PART, f32)
    initial[[7, PART + 7, -1]] = 0.75
    rule = Rule("close", {"rtol": 0.25, "atol": 0.25})
    found = unchecked_elements(Pair(expected, expected, None), rule, initial)
    assert np.flatnonzero(found).tolist() == [7, PART + 7, 3 * PART - 1]


def test_elements_beyond_the_first_part_are_judged_as_those_in_it():
    expected = np.ones(3 * PART, f32)
    bound = np.zeros(expected.size)
    bound[[PART - 1, PART, 3 * PART - 1]] = 1.0
    found = unchecked_elements(Pair(expected, expected, bound), Rule("bound"), None)
    assert np.flatnonzero(found).tolist() == [PART - 1, PART, 3 * PART - 1]


def test_nmse_sums_squares_over_all_parts():
    """The last element has nearly all of the power: alone it could fail, and all others together could not."""
    expected = np.full(2 * PART, 1e-3, f32)
    expected[-1] = 1e3
    found = unchecked_elements(Pair(expected, expected, None), Rule("nmse"), None)
    assert np.flatnonzero(~found).tolist() == [expected.size - 1]
    assert unchecked_elements(Pair(expected[:-1], expected[:-1], None), Rule("nmse"), None) is None


def test_nmse_takes_the_smallest_and_the_largest_numbers():
    expected = np.array([2.0**-1074, 2.0**500, np.finfo(np.float64).max])
    could = RULES["nmse"].could_fail(Pair(expected, expected, None), {"max": 0.5}, 2.0**-1074)
    assert could.shape == (3,)
    expected = np.array([2.0**-1074, 2.0**500])
    could = RULES["nmse"].could_fail(Pair(expected, expected, None), {"max": 0.5}, 2.0**-1074)
    assert could.tolist() == [False, True]


# ---- counterexamples -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "scale"),
    [
        ([0.0, 0.0, 0.0], 1.0),
        ([0.0, -8.0, 0.0], 8.0),
        ([1.0, -4.0, 1e30], 4.0),
        ([np.inf, np.nan, -np.inf, 3.0], 3.0),
        ([], 1.0),
    ],
)
def test_the_scale_is_the_median_size_of_what_is_finite_and_not_0(expected, scale):
    assert scale_of(np.array(expected)) == scale


def test_the_scale_of_many_elements_is_that_of_a_sample_of_all():
    few, many = 1 << 16, 3 << 16
    assert scale_of(np.repeat([1e-3, 8.0], [few, many])) == 8.0
    rare = np.zeros(few + many)
    rare[[5, few, -1]] = 2.0, 4.0, 16.0  # a sample may miss them all
    assert scale_of(rare) in (2.0, 3.0, 4.0, 9.0, 10.0, 16.0)
    assert scale_of(rare * 0) == 1.0


@pytest.mark.parametrize(
    ("dtype", "expected", "wrong"),
    [
        (np.float32, [0.25, -0.25, 3.0, -3.0, 0.0], [1.25, -1.25, 6.0, -6.0, 1.0]),
        (np.float32, [np.inf, -np.inf, np.nan], [0.0, 0.0, 0.0]),
        (np.float32, [3e38, -3e38], [1.5e38, -1.5e38]),
        (np.float16, [65504.0, 40000.0], [32752.0, 20000.0]),
        (np.int32, [7, -7, 0, 2**31 - 1, -(2**31)], [14, -14, 1, 0, 0]),
        (np.int32, [-(2**30), 2**30 - 1, 2**30], [-(2**31), 2**31 - 2, 0]),
        (np.uint32, [7, 0, 2**31 - 1, 2**31], [14, 1, 2**32 - 2, 0]),
        (np.uint8, [127, 128, 255], [254, 0, 0]),
    ],
)
def test_a_counterexample_is_doubled_or_what_the_type_can_hold(dtype, expected, wrong):
    made = doubled(np.array(expected), np.dtype(dtype), 1.0)
    assert made.dtype == dtype
    np.testing.assert_allclose(made.astype(np.float64), wrong, rtol=1e-3 if dtype == np.float16 else 1e-7)


def test_an_own_size_is_at_least_the_scale():
    assert own_sizes(np.array([0.5, -2.0, 0.0, -np.inf]), 1.0).tolist() == [1.0, 2.0, 1.0, np.inf]
    assert own_sizes(np.array([np.nan]), 1.0).tolist() == [np.inf]  # so that a rule without a bound accepts it


# ---- what a comparison says of it ------------------------------------------------------------------------


def test_a_comparison_counts_what_is_unchecked():
    ones = np.ones(4, f32)
    made = compare(ones, ones, Rule("bound"), bound=np.array([0.0, 1.0, np.inf, 0.5]), initial=np.zeros(4, f32))
    assert (made.unchecked.tolist(), made.unchecked_count, made.vacuous) == ([False, True, True, False], 2, False)
    assert made.without(np.array([True, False, False, True])).vacuous
    assert made.without(np.zeros(4, bool)).unchecked_count == 2
    plain = compare(ones, ones)
    assert (plain.unchecked, plain.unchecked_count, plain.without(np.zeros(4, bool))) == (None, 0, plain)
    assert plain.without(np.array([True, False, False, False])).unchecked_count == 1
    assert not compare(ones[:0], ones[:0]).vacuous


@pytest.mark.parametrize(
    ("initial", "changes"), [(None, True), ([0, 0], True), ([1, 2], False), ([1, 3], True), ([[1], [2]], False)]
)
def test_whether_a_change_is_expected(initial, changes):
    expected = np.array([1, 2], f32)
    made = compare(expected, expected, initial=None if initial is None else np.array(initial, f32))
    assert made.expects_change == changes

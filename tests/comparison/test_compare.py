"""The rules against values whose distance is known by hand."""

from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rich.console import Console

from bankshot.oracle.comparison.bits import as_array, ulp_distance
from bankshot.oracle.comparison.checked_elements import kept_nan
from bankshot.oracle.comparison.compare import compare
from bankshot.oracle.comparison.rules import DERIVED, EXACT, PART, RULES, Pair, Rule
from bankshot.oracle.errors import UsageError
from bankshot.oracle.judge.output_checks import OutputCheck
from bankshot.oracle.reports.check_text import show_output_check

f32 = np.float32


def step(x, count):
    for _ in range(abs(count)):
        x = np.nextafter(f32(x), f32(np.inf if count > 0 else -np.inf))
    return x


# Far enough from the infinities, where nextafter stays.
@given(hnp.from_dtype(np.dtype(f32), min_value=-(2.0**127), max_value=2.0**127), st.integers(-20, 20))
def test_ulp_counts_steps_of_nextafter(x, count):
    y = step(x, count)
    # -0.0 and 0.0 are one value to nextafter and to ulp_distance alike
    assert ulp_distance(np.array([x], f32), np.array([y], f32))[0] == abs(count)


def test_ulp_of_special_values():
    nan, inf, largest = f32("nan"), f32("inf"), np.finfo(f32).max
    a = np.array([0.0, nan, nan, largest, 1e-45, 1.0], f32)
    b = np.array([-0.0, nan, 1.0, inf, -1e-45, np.nextafter(f32(1), f32(2))], f32)
    assert ulp_distance(a, b).tolist() == [0, 0, np.iinfo(np.int64).max, 1, 2, 1]
    one_side = np.array([-0.0, 1.0], f32), np.array([0.0, nan], f32)
    for pair in (one_side, one_side[::-1]):
        assert ulp_distance(*pair).tolist() == [0, np.iinfo(np.int64).max]


@settings(deadline=None)
@given(hnp.arrays(np.uint16, 9), hnp.arrays(np.uint16, 9))
def test_ulp_counts_the_values_between(a, b):
    """Of f16, all of which can be listed."""
    values = np.unique(np.arange(1 << 16).astype(np.uint16).view(np.float16))
    values = values[~np.isnan(values)]  # sorted; both zeros are one
    a, b = (each.view(np.float16) for each in (a, b))
    numbers = ~(np.isnan(a) | np.isnan(b))
    apart = np.abs(np.searchsorted(values, a) - np.searchsorted(values, b))
    assert ulp_distance(a, b)[numbers].tolist() == apart[numbers].tolist()
    assert ulp_distance(a[numbers], b[numbers]).tolist() == apart[numbers].tolist()
    assert (
        ulp_distance(np.abs(a[numbers]), np.abs(b[numbers])).tolist()
        == np.abs(np.searchsorted(values, np.abs(a[numbers])) - np.searchsorted(values, np.abs(b[numbers]))).tolist()
    )


@pytest.mark.parametrize("rule", ["exact", "ulp", "close"])
def test_equal_bits_always_pass(rule):
    poisoned = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 3.0], f32)
    result = compare(poisoned, poisoned.copy(), Rule(rule))
    assert (result.ok, result.score, result.max_abs, result.max_ulp) == (True, 0.0, 0.0, 0)


def test_no_number_is_close_to_an_infinity():
    result = compare(np.array([5.0, np.inf, -np.inf], f32), np.full(3, np.inf), Rule("close"))
    assert (result.mismatches, result.score) == (2, np.inf)


@pytest.mark.parametrize(("rule", "unbounded"), [("bound", 2), ("derived", 2), ("close", 0), ("exact", 0)])
def test_only_rules_of_bounds_leave_elements_without_one(rule, unbounded):
    ones = np.ones(2, f32)
    result = compare(ones, ones, Rule(rule), bound=np.full(2, np.inf))
    assert (result.ok, result.unbounded, result.vacuous) == (True, unbounded, unbounded == 2)


def test_whole_numbers_are_shown_in_full():
    ours, theirs = np.array([4161221505], np.uint32), np.array([4161221506.0])
    (worst,) = compare(ours, theirs, EXACT).worst
    assert (worst.numbers, worst.is_float) == (("4161221505", "4161221506"), False)
    (worst,) = compare(np.array([0.1], f32), np.array([3.0], f32), EXACT).worst
    assert (worst.numbers, worst.is_float) == (("0.100000001", "3"), True)


@pytest.mark.parametrize(
    ("ours", "truth", "numbers", "bits", "ulp"),
    [
        (np.uint32(2), 2.9, ("2", "2.9"), ("0x00000002", "none"), 1),
        (np.uint32(5), 4.0, ("5", "4"), ("0x00000005", "0x00000004"), 1),
        (np.int32(-1), 4294967295.0, ("-1", "4294967295"), ("0xffffffff", "none"), 2**32),
        (np.uint8(0), -0.5, ("0", "-0.5"), ("0x00", "none"), 1),
        (np.int32(0), np.inf, ("0", "inf"), ("0x00000000", "none"), None),
        (np.uint16(7), np.nan, ("7", "nan"), ("0x0007", "none"), None),
        (f32(1.5), 1.0, ("1.5", "1"), ("0x3fc00000", "0x3f800000"), 2**22),
        (f32(np.nan), 1.0, ("nan", "1"), ("0x7fc00000", "0x3f800000"), None),
        (np.float16(-1.0), 1.0, ("-1", "1"), ("0xbc00", "0x3c00"), 2 * 0x3C00),
    ],
)
def test_a_difference_shows_both_values_and_their_bits(ours, truth, numbers, bits, ulp):
    made = compare(np.array([ours]), np.array([truth]))
    (worst,) = made.worst
    assert (worst.numbers, (worst.actual_bits, worst.expected_bits)) == (numbers, bits)
    assert (worst.ulp, made.max_ulp) == (ulp, ulp)


def test_whole_numbers_meet_the_truth_by_value():
    made = compare(np.array([3, 4], np.int32), np.array([3.0, 4.0]))
    assert (made.ok, made.bitwise, made.max_abs, made.max_ulp) == (True, False, 0.0, 0)
    assert compare(np.array([3.0], f32), np.array([3.0])).bitwise
    assert compare(np.array([3], np.int32), np.array([3], np.int32)).bitwise
    assert not compare(np.array([3.0], f32), np.array([3.0]), Rule("ulp")).bitwise


def test_the_largest_error_is_that_of_all_parts():
    ones, off = np.ones(3 * PART, f32), np.ones(3 * PART, f32)
    off[[3, PART + 5, -1]] = step(1, 2), step(1, 7), step(1, 4)
    for rule, mismatches, score in (("exact", 3, 3.0), ("ulp", 3, 7.0)):
        made = compare(off, ones, Rule(rule))
        assert (made.mismatches, made.score, made.max_ulp, made.max_abs) == (mismatches, score, 7, 7 * 2.0**-23)


PADDED = np.dtype({"names": ["a", "b"], "formats": ["f4", "u2"], "offsets": [0, 4], "itemsize": 8})
NESTED = np.dtype({"names": ["inner", "n"], "formats": [(PADDED, 2), "u4"], "offsets": [0, 20], "itemsize": 24})


def test_outputs_become_numbers_without_padding():
    assert as_array(b"\x01\xff").tolist() == [1, 255]
    plain = np.array([[1.5]], f32)
    assert as_array(plain) is plain
    raw = np.full(16, 0xEE, np.uint8)
    assert as_array(raw.view(PADDED)).tolist() == [0xEEEEEEEE, 0x0000EEEE] * 2
    assert as_array(np.full(24, 0xEE, np.uint8).view(NESTED)).tolist() == [
        *[0xEEEEEEEE, 0x0000EEEE] * 2,
        0,
        0xEEEEEEEE,
    ]
    halves = np.full(6, 0x11, np.uint8).view(np.dtype([("a", "u2"), ("b", "f2"), ("c", "u2")]))
    assert (as_array(halves).dtype, as_array(halves).tolist()) == (np.uint16, [0x1111] * 3)


def test_rounded_truth_still_has_an_error():
    truth = np.array([1.0 + 2.0**-30])
    result = compare(truth.astype(f32), truth)
    assert (result.ok, result.max_abs, result.max_ulp) == (True, 2.0**-30, 0)


def test_bounds_that_are_zero_infinite_or_unknown():
    off, none = np.array([1.0, 0.0], f32), np.zeros(2)
    for bound, ok, score in ((0.0, False, np.inf), (np.inf, True, 0.0), (np.nan, False, np.inf), (2.0, True, 0.5)):
        result = compare(off, none, Rule("bound"), bound=np.array([bound, 0.0]))
        assert (result.ok, result.score) == (ok, score)


def test_exact_compares_bits():
    a = np.array([0.0, np.nan, 1.0], f32)
    assert compare(a, a.copy()).ok
    other_nan = np.array([0x7FC00001], np.uint32).view(f32)
    assert not compare(other_nan, np.array([np.nan], f32)).ok
    result = compare(a, np.array([-0.0, np.nan, 1.0], f32))
    assert (result.ok, result.mismatches, result.share) == (False, 1, 1 / 3)
    assert (result.worst[0].index, result.worst[0].actual_bits, result.worst[0].expected_bits) == (
        (0,),
        "0x00000000",
        "0x80000000",
    )


def test_ulp_rule_at_its_limit():
    one = np.ones((2, 2), f32)
    off = one.copy()
    off[1, 0] = step(1, 2)
    assert compare(off, one, Rule("ulp", {"max": 2})).ok
    result = compare(off, one, Rule("ulp", {"max": 1}))
    assert (result.ok, result.max_ulp, result.worst[0].index, result.worst[0].ulp) == (False, 2, (1, 0), 2)


def test_close_defaults_to_the_dtype():
    expected = np.array([100.0], f32)
    assert compare(np.array([100.0001], f32), expected, Rule("close")).ok
    assert not compare(np.array([100.001], f32), expected, Rule("close")).ok
    assert compare(np.array([100.05], np.float16), expected.astype(np.float16), Rule("close")).ok
    with pytest.raises(UsageError, match="both rtol and atol"):
        compare(expected, expected, Rule("close", {"rtol": 1e-3}))


def test_integers_are_close_only_when_equal():
    assert not compare(np.array([3], np.int32), np.array([4], np.int32), Rule("close")).ok


def test_nmse_looks_at_the_whole_array():
    expected = np.array([3.0, 4.0])
    actual = np.array([3.0, 4.5], f32)
    result = compare(actual, expected, Rule("nmse", {"max": 0.01}))
    assert (result.ok, result.score) == (True, 0.01)
    assert not compare(actual, expected, Rule("nmse", {"max": 0.0099})).ok


@pytest.mark.parametrize(("ours", "score"), [(0.0, 0.0), (1e-30, np.inf), (np.nan, np.inf)])
def test_nmse_of_zeros_accepts_only_zeros(ours, score):
    result = compare(np.array([0.0, ours], f32), np.zeros(2), Rule("nmse", {"max": 1e300}))
    assert (result.ok, result.score) == (score == 0, score)


@pytest.mark.parametrize("most", [0.0, 1e-9, 1e-3, 0.3, 1.0, 2.0])
def test_nmse_checks_elements_that_are_rejected_with_all_smaller_ones(most):
    """An element counts if it and all of its power of two and below, each off by its own size, exceed the limit."""
    sizes = [2.0**n for n in (-40, -12, -3, -1, 0, 2, 11, 30)]
    expected = np.array([sign * size for size in sizes for sign in (1, -1.5)])
    for scale in (2.0**-40, 0.25, 3.0):
        off = np.maximum(np.abs(expected), scale)
        bands = np.floor(np.log2(off))
        could = [np.sum(off[bands <= band] ** 2) / np.sum(expected**2) > most for band in bands]
        pair = Pair(expected.astype(f32), expected, None)
        assert RULES["nmse"].could_fail(pair, {"max": most}, scale).tolist() == could


# By rule, limits and dtype: a number at its limit and one beyond, the number expected, and its bound at first.
# Without limits, as PyTorch documents `torch.testing.assert_close`: f16 1e-3 and 1e-5, f32 1.3e-6 and 1e-5.
AT_LIMIT = [
    ("ulp", {"max": 3}, f32, 1 + 3 * 2.0**-23, 1 + 4 * 2.0**-23, 1.0, None),
    ("ulp", {}, f32, 1.0, 1 + 2.0**-23, 1.0, None),
    ("close", {"rtol": 0.25, "atol": 0.5}, f32, -5.5, -5.5 - 2.0**-21, -4.0, None),
    ("close", {"rtol": 0.25, "atol": 0.5}, f32, -2.5, -2.5 + 2.0**-22, -4.0, None),
    ("close", {"rtol": 0.0, "atol": 0.0}, f32, 2.0, 2.0 + 2.0**-22, 2.0, None),
    ("close", {}, f32, 9.99e-6, 1.001e-5, 0.0, None),
    ("close", {}, f32, 1000 + 21 * 2.0**-14, 1000 + 22 * 2.0**-14, 1000.0, None),  # 0.00131 of it
    ("close", {}, np.float16, 167 * 2.0**-24, 168 * 2.0**-24, 0.0, None),
    ("close", {}, np.float16, 1 + 2.0**-10, 1 + 2.0**-9, 1.0, None),
    ("close", {}, np.float64, 1 + 1.99e-7, 1 + 2.01e-7, 1.0, None),
    ("close", {}, np.int32, 7, 8, 7, None),
    ("bound", {}, f32, 1.5, 1.5 + 2.0**-23, 1.0, 0.5),
    ("derived", {}, f32, 0.5, 0.5 - 2.0**-25, 1.0, 0.5),
    ("derived", {}, f32, 1.0, 1 + 2.0**-23, 1.0, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "limits", "dtype", "within", "beyond", "expected", "bound"), AT_LIMIT)
def test_a_rule_accepts_its_limit_and_nothing_beyond(rule, limits, dtype, within, beyond, expected, bound):
    expected, bound = np.array([expected], dtype), None if bound is None else np.array([bound])
    assert compare(np.array([within], dtype), expected, Rule(rule, limits), bound=bound).ok
    assert not compare(np.array([beyond], dtype), expected, Rule(rule, limits), bound=bound).ok


def test_an_element_is_checked_if_its_own_size_is_beyond_the_limit():
    """The size of a small element is the scale."""
    expected = np.array([2.0, -2.0, 0.5, 0.5, np.nan])
    pair = Pair(expected.astype(f32), expected, np.array([2.0, 1.99, 1.0, 0.99, 9.0]))
    for rule in ("bound", "derived"):
        assert RULES[rule].could_fail(pair, {}, 1.0).tolist() == [False, True, False, True, True]
    assert RULES["close"].could_fail(pair, {"rtol": 1.0, "atol": 0.0}, 1.0).tolist() == [False, False, True, True, True]
    assert RULES["close"].could_fail(pair, {"rtol": 0.0, "atol": 1.0}, 1.0).tolist() == [True, True, False, False, True]
    assert RULES["exact"].could_fail(pair, {}, 1.0).all()


def test_bound_is_per_element():
    expected, bound = np.array([1.0, 1.0]), np.array([0.5, 0.25])
    assert compare(np.array([1.5, 1.25], f32), expected, Rule("bound"), bound=bound).ok
    result = compare(np.array([1.5, 1.5], f32), expected, Rule("bound"), bound=bound)
    assert (result.mismatches, result.score, result.worst[0].index) == (1, 2.0, (1,))
    with pytest.raises(UsageError, match="needs a reference"):
        compare(np.ones(1, f32), np.ones(1), Rule("bound"))


@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("bound", "derived")])
def test_a_nan_never_passes_for_a_number(rule):
    assert not compare(np.array([np.nan, 1.0], f32), np.ones(2, f32), Rule(rule)).ok
    assert not compare(np.array([1.0, 1.0], f32), np.array([np.nan, 1.0], f32), Rule(rule)).ok
    assert not compare(np.array([np.nan], f32), np.ones(1), Rule("bound"), bound=np.ones(1)).ok


@pytest.mark.parametrize("rule", [name for name in RULES if name not in ("bound", "derived")])
def test_equal_arrays_pass(rule):
    a = np.array([0.0, -1.5, np.inf], f32)
    assert compare(a, a.copy(), Rule(rule)).ok


def test_worst_first_with_owner():
    expected = np.zeros((3, 4), f32)
    actual = expected.copy()
    actual[0, 1], actual[2, 3], actual[1, 1] = 1.0, 8.0, 4.0
    result = compare(actual, expected, EXACT, owner=lambda index: f"lane {index[1]}", worst=2)
    assert [(d.index, d.owner) for d in result.worst] == [((2, 3), "lane 3"), ((1, 1), "lane 1")]
    assert result.mismatches == 3


def test_shapes_must_agree():
    with pytest.raises(UsageError, match=r"shapes differ: \[3\] against \[4\]"):
        compare(np.zeros(3, f32), np.zeros(4, f32))


def test_empty_arrays_agree():
    assert compare(np.zeros(0, f32), np.zeros(0, f32)).ok


def test_differences_are_shown_in_full_however_narrow_the_report_is():
    ours, theirs = np.full((1, 1, 30), -(2.0**-100), f32), np.full((1, 1, 30), 2.0**100, f32)
    bound = np.full((1, 1, 30), 1.2345e-9)
    result = compare(ours, theirs, DERIVED, bound=bound, owner=lambda index: "workgroup (10, 10, 0)")
    out = Console(file=StringIO(), width=60)
    show_output_check(out, OutputCheck("y", "reference mine.py:ref", result))
    rows = [line.split() for line in out.file.getvalue().splitlines() if "workgroup (10" in line]
    assert len(rows) == 5
    assert rows[0][:5] == ["[0,", "0,", "0]", "-7.88860905e-31", "1.2676506e+30"]
    assert out.width == 60


def test_a_nan_that_stays_keeps_its_bits():
    quiet, other = 0x7FC00000, 0x7FC00001

    def floats(*bits):
        return np.array(bits, np.uint32).view(np.float32)

    initial, expected = floats(quiet, quiet, 0, quiet, 0), floats(quiet, quiet, quiet, 0, 0)
    actual = floats(quiet, other, other, 0, 0)
    assert kept_nan(Pair(actual, expected, None), initial).tolist() == [False, True, False, False, False]
    assert kept_nan(Pair(actual, expected, None), floats(0, 0, 0, 0, 0)) is None
    assert kept_nan(Pair(actual, floats(0, 0, 0, 0, 0), None), initial) is None
    assert kept_nan(Pair(actual, expected, None), np.zeros(5, np.uint32)) is None
    # close takes any NaN for any other; element 1 is rejected for its bits, and element 3 for its value.
    made = compare(actual, floats(quiet, quiet, quiet, 0x3F800000, 0), Rule("close"), initial=initial)
    assert sorted(difference.index for difference in made.worst) == [(1,), (3,)]

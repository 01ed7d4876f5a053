"""Causes that show in the output alone: elements in other positions, factors, and bands. The outputs are made here."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.diagnosis.displaced_outputs import shifted, transposed, wrong_factor, wrong_stride
from bankshot.oracle.diagnosis.mismatch import Mismatch
from bankshot.oracle.diagnosis.other_shapes import _band, equal_dims, tail, unwritten


def mismatch(ours, expected, **given):
    """The mismatch of two arrays, bit for bit. `given`: sizes of dims, `unchanged`, and the places that were written"""
    ours, expected = np.array(ours, np.float32), np.array(expected, np.float32)
    wrong = ours != expected
    columns = expected.shape[-1]
    count = np.count_nonzero(wrong)
    return SimpleNamespace(
        ours=ours, expected=expected, wrong=wrong, matrix=(expected.size // columns, columns), var="y", same=None,
        wrong_elements="the element that differs" if count == 1 else f"the {count} elements that differ",
        equals_element=lambda source: ours.reshape(-1) == expected.reshape(-1)[source],
        case=SimpleNamespace(shape=SimpleNamespace(dims=given.get("dims", {}))),
        left_unchanged=given.get("unchanged", False),
        run=SimpleNamespace(writer=lambda var, place: "someone" if place in given.get("written", ()) else None),
    )  # fmt: skip


GRID = np.arange(1, 25).reshape(4, 6)
ROW = np.arange(1, 25)


def moved(by, fill=99):
    """The numbers of `ROW`, so many places later."""
    made = np.full(24, fill)
    made[max(by, 0) : 24 + min(by, 0)] = ROW[max(-by, 0) : 24 - max(by, 0)]
    return made


SHIFTS = {
    "an element later": (1, "23 of the 24 elements that differ are those expected an element before"),
    "an element earlier": (-1, "23 of the 24 elements that differ are those expected an element after"),
    "two later": (2, "22 of the 24 elements that differ are those expected 2 elements before"),
    "four earlier": (-4, "20 of the 24 elements that differ are those expected 4 elements after"),
    "five later": (5, None),
    "six later": (6, None),
}


@pytest.mark.parametrize("name", SHIFTS)
def test_a_shift_by_some_elements(name):
    by, words = SHIFTS[name]
    assert shifted(mismatch(moved(by), ROW)) == words


@pytest.mark.parametrize(
    ("size", "by", "words"),
    [
        (8, 4, "4 of the 8 elements that differ are those expected 4 elements before"),
        (8, -4, "4 of the 8 elements that differ are those expected 4 elements after"),
        (7, 4, None),
        (7, -4, None),
    ],
)
def test_half_of_the_elements_that_differ_must_be_of_another_place(size, by, words):
    """The first element is one of the others, too."""
    expected, ours = np.arange(1, size + 1), np.full(size, 99)
    ours[max(by, 0) : size + min(by, 0)] = expected[max(-by, 0) : size - max(by, 0)]
    assert shifted(mismatch(ours, expected)) == words


def test_a_shift_by_a_row():
    assert shifted(mismatch(moved(6).reshape(4, 6), GRID)) == (
        "18 of the 24 elements that differ are those expected a row before"
    )
    assert shifted(mismatch(moved(-6).reshape(4, 6), GRID)) == (
        "18 of the 24 elements that differ are those expected a row after"
    )


def test_nothing_is_shifted_where_most_of_the_elements_are_of_no_other_place():
    assert shifted(mismatch(ROW + 0.5, ROW)) is None
    half = np.where(np.arange(24) % 2 == 0, moved(1), 99)
    assert shifted(mismatch(half, ROW)) is None


def test_the_first_element_counts_where_it_has_moved():
    """Of [0, 1, 2, 3] only the last three places are known to hold shifted elements, the first of them element 0."""
    expected = np.array([5.0, 6.0, 7.0, 8.0])
    assert shifted(mismatch(np.array([9.0, 1.0, 6.0, 7.0]), expected)) is None  # two of the three
    assert shifted(mismatch(np.array([9.0, 5.0, 6.0, 7.0]), expected)) == (
        "3 of the 4 elements that differ are those expected an element before"
    )


def test_fewer_elements_than_a_shift_moves_them_by():
    assert shifted(mismatch(np.array([9.0, 9.0, 9.0]), np.array([5.0, 6.0, 7.0]))) is None


def test_a_transpose():
    made = GRID.T.reshape(4, 6)
    assert transposed(mismatch(made, GRID)) == (
        "22 of the 22 elements that differ are the transpose of the 4 x 6 matrix"
    )
    assert transposed(mismatch(GRID[::-1], GRID)) is None
    assert transposed(mismatch(ROW[::-1], ROW)) is None
    assert transposed(mismatch(ROW[::-1].reshape(24, 1), ROW.reshape(24, 1))) is None


def stored(stride, rows=4, columns=6):
    """The matrix as rows that are stored `stride` elements apart, each over the one before."""
    made = np.full(rows * columns, 99)
    for row in range(rows):
        part = made[row * stride : row * stride + columns]
        part[:] = GRID[row][: len(part)]
    return made.reshape(rows, columns)


def test_rows_that_are_stored_too_far_apart():
    apart = mismatch(stored(7), GRID, dims={"M": 4, "N": 6, "PITCH": 7, "Z": 0})
    found = wrong_stride(apart)
    assert found is not None
    assert found.endswith("those expected if rows are PITCH = 7 apart instead of 6")
    assert wrong_stride(mismatch(stored(7), GRID, dims={"N": 6, "Z": 0})) is None
    close = mismatch(stored(4), GRID, dims={"M": 4, "N": 6})
    assert str(wrong_stride(close)).endswith("those expected if rows are M = 4 apart instead of 6")


FACTORS = {
    "one factor": (GRID * 2.5, "all elements are the expected ones times one number, 2.5 for the first element"),
    "a negative one": (GRID * -1, "all elements are the expected ones times one number, -1 for the first element"),
    "zeros": (GRID * 0, "all elements are 0"),
    "each row": (GRID * [[2], [3], [4], [5]], "each row is the expected one times its own number, 2 for the first "
                                              "element"),
    "each column": (GRID * [3, 2, 2, 2, 2, 2], None),  # four elements of a column prove nothing
    "none": (GRID + [[0, 0, 0, 0, 0, 9]] * 4, None),
    "the same": (GRID, None),
    "each row, one of zeros": (GRID * [[2], [0], [4], [5]], "each row is the expected one times its own number, 2 for "
                                                            "the first element"),
    "infinite": (GRID * np.inf, None),
    "one infinite": (np.where(GRID == 3, np.inf, 2 * GRID), None),
    "one not a number": (np.where(GRID == 3, np.nan, 2 * GRID), None),
    "nearly": (GRID * 2 + [[0, 0, 0, 0, 0, 0.01]] + np.zeros((4, 1)),
               "all elements are the expected ones times one number, 2.00042 for the first element"),
}  # fmt: skip


@pytest.mark.parametrize("name", FACTORS)
def test_a_common_factor(name):
    ours, words = FACTORS[name]
    assert wrong_factor(mismatch(ours, GRID)) == words


@pytest.mark.parametrize("rows", [[0], [2], [0, 1, 2, 3]])
def test_zeros_are_expected_to_have_no_factor(rows):
    expected = GRID.copy()
    expected[rows] = 0
    ours = expected * [[2], [3], [4], [5]]
    assert wrong_factor(mismatch(ours, expected)) is None or not ours.any()


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_no_factor_gives_what_is_not_finite(value):
    expected = np.where(GRID == 3, value, GRID)
    assert wrong_factor(mismatch(0 * GRID, expected)) is None
    assert wrong_factor(mismatch(2 * GRID, expected)) is None
    assert wrong_factor(mismatch(0 * GRID, GRID)) == "all elements are 0"


def test_a_factor_of_each_column():
    tall = np.arange(1, 19).reshape(6, 3)
    words = "each column is the expected one times its own number, 3 for the first element"
    assert wrong_factor(mismatch(tall * [3, 5, 7], tall)) == words


def band(rows=4, columns=16, **wrong):
    expected = np.arange(1.0, 1 + rows * columns).reshape(rows, columns)
    ours = expected.copy()
    ours[wrong.get("at", slice(0, 0))] = 0
    return mismatch(ours, expected, **wrong)


BANDS = {
    "the last column": (np.s_[:, -1], "all of the 4 elements that differ lie in the last column"),
    "three columns": (np.s_[1:3, -3:], "all of the 6 elements that differ lie in the last 3 columns"),
    "the last element": (np.s_[-1, -1], "all of the element that differs lie in the last column"),
    "the first column": (np.s_[:, 0], None),
    "most of the columns": (np.s_[:, 1:], None),
}


@pytest.mark.parametrize("name", BANDS)
def test_a_band_at_the_edge(name):
    at, words = BANDS[name]
    assert _band(band(at=at)) == words


def test_a_band_of_rows():
    assert _band(band(16, 4, at=np.s_[-1:, :])) == "all of the 4 elements that differ lie in the last row"
    assert _band(band(16, 4, at=np.s_[-2:, :])) == "all of the 8 elements that differ lie in the last 2 rows"


def test_elements_that_were_not_written():
    at = np.s_[:, -1]
    last = "all of the 4 elements that differ lie in the last column"
    assert unwritten(band(at=at)) is None
    assert unwritten(band(at=at, unchanged=True)) == (
        f"the 4 elements that differ are unchanged by the run; no invocation wrote them; {last}"
    )
    assert unwritten(band(at=at, unchanged=True, written=(15,))) == (
        f"the 4 elements that differ are unchanged by the run; {last}"
    )
    assert unwritten(band(at=np.s_[:, :9], unchanged=True)) == (
        "the 36 elements that differ are unchanged by the run; no invocation wrote them"
    )


def sized(agrees, at=np.s_[:, -1], n=16, **dims):
    """A mismatch whose kernel agrees with its reference at the sizes that `agrees` accepts."""
    made = band(at=at, dims={"N": n, **dims})
    made.case.kernel = SimpleNamespace(dispatch=("ceil(N / 8)",), bindings=(SimpleNamespace(shape=("N", "M")),))
    made.agrees_at = agrees
    return made


def test_a_tail():
    """Whole tiles are of 64 or of 256."""
    last = "all of the 4 elements that differ lie in the last column"
    asked = []
    assert tail(sized(lambda dims: asked.append(dims), n=13, M=100, OTHER=3)) is None  # wherever the elements lie
    # Neither an array nor the grid depends on OTHER; both steps are tried for each of the others.
    assert [(dims["N"], dims["M"], dims["OTHER"]) for dims in asked] == [
        (64, 100, 3), (256, 100, 3), (13, 128, 3), (13, 256, 3)
    ]  # fmt: skip
    words = "with N = 64 instead of 13, all elements agree"
    assert tail(sized(lambda dims: dims["N"] == 64, n=13)) == f"{words}; {last}"
    assert tail(sized(lambda dims: dims["N"] == 64, np.s_[:, :9], n=13)) == words
    assert tail(sized(lambda dims: dims["N"] == 64, n=64)) is None  # has no tail
    # Where M is as large as N would be, the next multiple is tried: equal sizes hide other faults.
    found = tail(sized(lambda dims: dims["N"] % 64 == 0, n=13, M=64))
    assert found.startswith("with N = 128 instead of 13, ")


def test_dims_that_are_equal():
    assert equal_dims(sized(lambda dims: dims["N"] == dims["M"], n=16, M=8)) == (
        "with M = 16, like N, instead of 8, all elements agree"
    )
    assert equal_dims(sized(lambda dims: dims["N"] == dims["M"], n=4, M=8)) == (
        "with N = 8, like M, instead of 4, all elements agree"
    )
    assert equal_dims(sized(lambda dims: False, n=4, M=8)) is None
    assert equal_dims(sized(lambda dims: True, n=8, M=8)) is None


def test_a_factor_of_elements_some_of_which_are_zero():
    expected = np.arange(24).reshape(4, 6)
    assert wrong_factor(mismatch(expected * 2, expected)) == (
        "all elements are the expected ones times one number, 2 for the first element"
    )


@pytest.mark.parametrize(
    ("size", "wrong", "agree", "differ"),
    [
        (1, 1, "the only element agrees", "the element that differs"),
        (2, 1, "all 2 elements agree", "the element that differs"),
        (2, 2, "all 2 elements agree", "the 2 elements that differ"),
        (4096, 1024, "all 4,096 elements agree", "the 1,024 elements that differ"),
    ],
)
def test_elements_are_counted_in_words(size, wrong, agree, differ):
    found = SimpleNamespace(expected=np.zeros(size), wrong=np.arange(size) < wrong)
    assert Mismatch.all_elements_agree.fget(found) == agree
    assert Mismatch.wrong_elements.fget(found) == differ


def test_elements_that_do_not_differ_are_no_sign_of_a_shift():
    expected = np.full(24, 7)
    ours = np.where(np.arange(24) % 12 == 5, 99, expected)
    assert shifted(mismatch(ours, expected)) is None

"""Causes found by calling the reference with other inputs. The outputs are made here, by numbers that tell which input
each element comes from."""

from types import SimpleNamespace

import numpy as np
import pytest

from bankshot.oracle.diagnosis.mismatch import Mismatch
from bankshot.oracle.diagnosis.reference_variants import (
    left_out,
    one_off,
    other_stride,
    short_index,
    unread,
    wrong_sign,
)
from bankshot.oracle.references import Expected

A = np.float32(2) ** np.arange(24, dtype=np.float32).reshape(4, 6)  # no two sums of elements are equal
ROW, COLUMN = np.indices(A.shape)
PLACE = 6 * ROW + COLUMN  # the place of each element


class Made(Mismatch):
    """A mismatch whose kernel is a function of the arrays."""

    def rerun_output(self, case=None, module=None, **options):
        return self.run.kernel(case.arrays)


def case_of(arrays, dims):
    def changed(other):
        return case_of({**arrays, **other}, dims)

    kernel = SimpleNamespace(reference="r.py:f", bindings=())
    return SimpleNamespace(arrays=arrays, shape=SimpleNamespace(dims=dims), kernel=kernel, with_arrays=changed)


def mismatch(ours, reference, dims=None, **arrays):
    """The mismatch of `ours`, an array or a function of the arrays, with what `reference` gives for them."""
    kernel = ours if callable(ours) else lambda arrays: ours
    made = np.asarray(kernel(arrays), np.float32)
    case = case_of({"y": np.full(made.shape, -7, np.float32), **arrays}, dims or {})
    run = SimpleNamespace(outputs={"y": made}, kernel=lambda arrays: np.asarray(kernel(arrays), np.float32))

    def expected(arrays, dims):
        return {"y": Expected(np.asarray(reference(arrays), np.float64))}

    return Made(case, run, "y", np.asarray(reference(arrays), np.float64), reference=expected, truth=True)


def of_a(arrays):
    return arrays["a"]


def at(place):
    """The elements of A at these flat indices, those before and after it being its first and last."""
    return A.reshape(-1)[np.clip(place, 0, 23)]


# What the kernel reads instead of A; the detector, and its words.
MISPLACED = {
    "the transpose": (at(COLUMN * 4 + ROW), other_stride, "a read as its transpose"),
    "rows too close": (at(ROW * 5 + COLUMN), other_stride, "the rows of a read K = 5 apart instead of 6"),
    "rows too far apart": (at(ROW * 7 + COLUMN), other_stride, "the rows of a read L = 7 apart instead of 6"),
    "rows of no dim": (at(ROW * 8 + COLUMN), other_stride, None),
    "as they should be": (at(PLACE) * 2, other_stride, None),
    "the element after": (at(PLACE + 1), one_off, "a read 1 element further"),
    "the element before": (at(PLACE - 1), one_off, "a read 1 element back"),
    "the next pair": (at(np.where(PLACE < 22, PLACE + 2, PLACE)), one_off, "a read 2 elements further"),
    "the pair before": (at(np.where(PLACE > 1, PLACE - 2, PLACE)), one_off, "a read 2 elements back"),
    "the next four": (at(np.where(PLACE < 20, PLACE + 4, PLACE)), one_off, "a read 4 elements further"),
    "the four before": (at(np.where(PLACE > 3, PLACE - 4, PLACE)), one_off, "a read 4 elements back"),
    "the third after": (at(PLACE + 3), one_off, None),
}


@pytest.mark.parametrize("name", MISPLACED)
def test_elements_read_at_another_place(name):
    ours, detect, words = MISPLACED[name]
    m = mismatch(ours, of_a, {"K": 5, "N": 6, "L": 7}, a=A)
    assert detect(m) == (words and f"{m.wrong_elements} are what reference r.py:f gives with {words}")


@pytest.mark.parametrize("shape", [(24,), (1, 24), (24, 1), (2, 3, 4)])
def test_only_a_matrix_has_rows(shape):
    assert other_stride(mismatch(A.reshape(shape)[::-1], of_a, {"K": 5}, a=A.reshape(shape))) is None


@pytest.mark.parametrize(("size", "bits"), [(257, 8), (300, 8), (256, None), ((1 << 16) + 300, 16), (1 << 16, None)])
def test_an_index_that_overflows(size, bits):
    a = np.arange(1, size + 1, dtype=np.float32)
    ours = a[np.arange(size) % (1 << (bits or 4))]
    m = mismatch(ours, of_a, a=a)
    words = f"{m.wrong_elements} are what reference r.py:f gives with a read at indices of {bits} bits"
    assert short_index(m) == (words if bits else None)


def both(arrays):
    return arrays["a"] + 3 * arrays["b"] + 0.5


B = A[::-1] + 1
SIGNS = {
    "of the result": (-(A + 3 * B + 0.5), "minus what reference r.py:f gives"),
    "of an input": (-A + 3 * B + 0.5, "what reference r.py:f gives for -a"),
    "of the other": (A - 3 * B + 0.5, "what reference r.py:f gives for -b"),
    "none": (A + 2 * B, None),
}


@pytest.mark.parametrize("name", SIGNS)
def test_a_sign(name):
    ours, words = SIGNS[name]
    assert wrong_sign(mismatch(ours, both, a=A, b=B)) == (words and f"the 24 elements that differ are {words}")


def test_a_sign_of_the_result_and_of_an_input():
    m = mismatch(-(A * -A * A + B), lambda arrays: arrays["a"] ** 3 + arrays["b"], a=A, b=B)
    assert wrong_sign(m).endswith(" are minus what reference r.py:f gives for -a")


# The columns of A that each sum of a row keeps.
SUMS = {
    "without the last element along axis 1 of a": [0, 1, 2, 3, 4],
    "without the last 2 elements along axis 1 of a": [0, 1, 2, 3],
    "without the last 4 elements along axis 1 of a": [0, 1],
    "without the first element along axis 1 of a": [1, 2, 3, 4, 5],
    "without the first 2 elements along axis 1 of a": [2, 3, 4, 5],
    "with only the last 2 elements along axis 1 of a": [4, 5],
    "with only the last element along axis 1 of a": [5],
    "without one in 2 along axis 1 of a": [0, 2, 4],
    "without one in 4 along axis 1 of a": [0, 1, 2, 4, 5],
    None: [0, 2, 3, 5],
}


@pytest.mark.parametrize("words", SUMS)
def test_terms_of_a_sum_that_are_left_out(words):
    ours = A[:, SUMS[words]].sum(1)
    found = left_out(mismatch(ours, lambda arrays: arrays["a"].sum(1), a=A))
    assert found == (words and f"the 4 elements that differ are what reference r.py:f gives {words}")


def test_zeros_leave_nothing_in():
    """That is a factor of 0, which says more."""
    square = A.reshape(-1)[:16].reshape(2, 8)
    assert left_out(mismatch(np.zeros(2), lambda arrays: arrays["a"].sum(1), a=square)) is None


def test_rows_that_are_left_out():
    m = mismatch(A[:2].sum(0), lambda arrays: arrays["a"].sum(0), a=A)
    assert left_out(m).endswith(" gives without the last 2 elements along axis 0 of a")


def test_an_input_that_only_the_reference_reads():
    words = "the 24 elements that differ stay as they are when b changes"
    assert unread(mismatch(lambda arrays: arrays["a"], both, a=A, b=B)) == words
    assert unread(mismatch(lambda arrays: 3 * arrays["b"], both, a=A, b=B)).endswith("when a changes")
    assert unread(mismatch(lambda arrays: arrays["a"] + arrays["b"], both, a=A, b=B)) is None
    # An input that the reference does not read either.
    assert unread(mismatch(lambda arrays: arrays["a"], lambda arrays: 2 * arrays["a"], a=A, b=B)) is None


def test_an_input_that_the_wrong_elements_do_not_need():
    """The reference reads b for the first row only, which is right."""
    top = ROW == 0

    def reference(arrays):
        return arrays["a"] + np.where(top, arrays["b"], 0)

    sevens = unread(mismatch(lambda arrays: np.where(top, reference(arrays), 7), reference, a=A, b=B))
    assert sevens == "the 18 elements that differ stay as they are when a changes"
    found = unread(mismatch(lambda arrays: np.where(top, reference(arrays), 2 * arrays["a"]), reference, a=A, b=B))
    assert found is None


def test_an_output_that_is_not_written_reads_nothing():
    assert unread(mismatch(np.full(A.shape, -7), both, a=A, b=B)) is None


def test_a_member_that_only_the_reference_reads():
    pairs = np.zeros(4, [("gain", np.float32), ("bias", np.float32), ("kind", np.uint32)])
    pairs["gain"], pairs["bias"] = [1, 2, 3, 4], 5

    def reference(arrays):
        return arrays["p"]["gain"] + arrays["p"]["bias"]

    found = unread(mismatch(lambda arrays: arrays["p"]["gain"], reference, p=pairs))
    assert found == "the 4 elements that differ stay as they are when p.bias changes"


def test_structs_read_at_another_place():
    pairs = np.zeros(4, [("gain", np.float32), ("bias", np.float32)])
    pairs["gain"], pairs["bias"] = [1, 2, 3, 4], [50, 70, 90, 20]
    m = mismatch([72, 93, 24, 24], lambda arrays: arrays["p"]["gain"] + arrays["p"]["bias"], p=pairs)
    assert one_off(m).endswith(" gives with p read 1 element further")

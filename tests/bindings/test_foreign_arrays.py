"""Which of the ways to read an array of another library is taken, and what is no array."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import bankshot
from bankshot.sim.bindings.foreign_arrays import as_numpy

Y = bankshot.check(
    "@group(0) @binding(0) var<storage> y: array<u32>; @compute @workgroup_size(1) fn main() { _ = &y; }"
)
X = np.arange(4, dtype=np.uint32)


class Array:
    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return X


class Dlpack:
    def __dlpack__(self, **options: Any) -> Any:
        return X.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return X.__dlpack_device__()


class Both(Array):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("only by way of __array__")


@pytest.mark.parametrize("value", [Array(), Dlpack(), Both(), array.array("I", X.tolist())])
def test_an_array_is_read_by_what_it_has(value: Any) -> None:
    found = as_numpy(Y.globals[0], value)
    assert isinstance(found, np.ndarray)
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize(
    "value",
    [X, np.float32(2), b"1234", bytearray(4), memoryview(b"12"), True, 3, 1.5, [1, 2], (1, 2), object(), "text"],
)
def test_what_is_known_or_no_array_stays_as_it_is(value: Any) -> None:
    assert as_numpy(Y.globals[0], value) is value

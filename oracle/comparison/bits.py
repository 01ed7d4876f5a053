"""Bit patterns of arrays, and distances in units in the last place (ULP)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ...sim.bindings.binding import Output

Array = NDArray[Any]
Mask = NDArray[np.bool_]

NO_ULP = int(np.iinfo(np.int64).max)  # the distance between a NaN and a number


def as_array(output: Output) -> Array:
    """Return an output as an array of numbers: bytes become u8, structs words, where padding is 0."""
    array = as_given(output)
    if array.dtype.names is None:
        return array
    return _without_padding(array).ravel().view(np.uint16 if array.dtype.itemsize % 4 else np.uint32)


def as_given(output: Output) -> Array:
    """Return an output as an array; bytes become u8."""
    return np.frombuffer(output, np.uint8) if isinstance(output, bytes) else output


def _without_padding(array: Array) -> Array:
    """Return a copy of structs with zeros between the members, which are all that NumPy copies."""
    made = np.zeros(array.shape, array.dtype)
    made[...] = array
    return made


def bits_of(array: Array) -> NDArray[np.unsignedinteger[Any]]:
    """View an array as unsigned integers of the same width."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def ulp_distance(a: Array, b: Array) -> NDArray[np.int64]:
    """Count the representable values between elements of one dtype: 0 between two NaNs, `NO_ULP` between a NaN and a
    number. For integers the distance is |a - b|."""
    if a.dtype.kind != "f":
        return np.abs(a.astype(np.int64) - b.astype(np.int64))
    if (near := _distance_of_bits(bits_of(a), bits_of(b), np.finfo(a.dtype))) is not None:
        return near
    distance = np.abs(_rank(a) - _rank(b))
    nan_a, nan_b = np.isnan(a), np.isnan(b)
    if not nan_a.any() and not nan_b.any():
        return distance
    return np.where(nan_a & nan_b, 0, np.where(nan_a | nan_b, NO_ULP, distance))


def _distance_of_bits(a: Array, b: Array, of: np.finfo[Any]) -> NDArray[np.int64] | None:
    """Subtract the bits, which is the distance where all signs agree and there is no NaN; else None."""
    sign = a.dtype.type(1 << (of.bits - 1))
    infinite = bits_of(np.array(np.inf, of.dtype))[()]
    if ((a ^ b) & sign).any() or max(((each & ~sign).max(initial=0)) for each in (a, b)) > infinite:
        return None
    return np.where(a > b, a - b, b - a).astype(np.int64)


def _rank(array: Array) -> NDArray[np.int64]:
    """Number floats from zero in steps of one ULP, negative ones downwards; both zeros are 0."""
    width = 8 * array.dtype.itemsize
    rank = bits_of(array).view(f"i{array.dtype.itemsize}").astype(np.int64)
    # The bits of a negative float are its magnitude above the least integer.
    return np.subtract(-(1 << (width - 1)), rank, out=rank, where=rank < 0)

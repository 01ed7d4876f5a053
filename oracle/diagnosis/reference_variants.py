"""Causes found with the reference: called with changed arrays, it returns what the kernel computed.

Each cause is a series of changes to the arrays, each with a description; the first one that explains the wrong elements
is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from ...sim.bindings.binding import is_array
from ..comparison.bits import Array
from ..manifests.inputs import PACKED
from ..manifests.quantization import MISREAD
from ..references import Arrays, Expected, Reference, registered
from .mismatch import Mismatch

Change = tuple[str, str, Array]  # description, name of the array to change, its new contents


def _reason(changes: Callable[[Mismatch], Iterator[Change]]) -> Callable[[Mismatch], str | None]:
    """Make a test that reports the first change with which the reference gives what the kernel computed."""

    def look(m: Mismatch) -> str | None:
        for words, name, array in changes(m):
            truth = m.reference_output({name: array})
            if truth is not None and m.explained(truth.value, truth.bound):
                return f"{m.wrong_elements} are what reference {m.case.kernel.reference} gives {words}"
        return None

    return look


def _numbers(m: Mismatch) -> Iterator[tuple[str, Array]]:
    """Yield the arrays of floating point numbers, by name."""
    for name, array in m.case.arrays.items():
        if is_array(array) and array.dtype.kind == "f" and array.size and not np.isnan(array).all():
            yield name, array


# ---- omitted terms ------------------------------------------------------------------------------------


def unread(m: Mismatch) -> str | None:
    """Detect an input that the reference reads and the kernel does not."""
    usual = m.reference_output({})
    if usual is None or m.left_unchanged:
        return None
    for words, name, array in _disturbed(m):
        truth = m.reference_output({name: array})
        if truth is None or not (truth.value != usual.value)[m.wrong].any():
            continue
        values = m.rerun_output(case=m.case.with_arrays({name: array}))
        if not m.count_changed(values):
            return f"{m.wrong_elements} stay as they are when {words} changes"
    return None


def _disturbed(m: Mismatch) -> Iterator[Change]:
    """Yield changes of every floating point input, and of every floating point member of a struct."""
    for name, array in _numbers(m):
        yield name, name, (array + 1).astype(array.dtype)
    for name, array in m.case.arrays.items():
        for member in getattr(getattr(array, "dtype", None), "names", None) or ():
            if array[member].dtype.kind == "f":
                changed = array.copy()
                changed[member] += 1
                yield f"{name}.{member}", name, changed


def _left_out(m: Mismatch) -> Iterator[Change]:
    """Yield inputs with zeros along an axis: at its end, at its beginning, at every nth index, or except at its end."""
    for name, array in _numbers(m):
        for axis, size in enumerate(array.shape):
            at: Array = np.arange(int(size))
            for count in _powers(size):
                some = "element" if count == 1 else f"{count} elements"
                zeroed: dict[str, Array] = {
                    f"without the last {some}": at >= size - count,
                    f"without the first {some}": at < count,
                    f"with only the last {some}": at < size - count,
                    **({f"without one in {count}": at % count == count - 1} if count > 1 else {}),
                }
                for words, chosen in zeroed.items():
                    yield f"{words} along axis {axis} of {name}", name, _zeroed(array, axis, chosen)


def _powers(size: int) -> list[int]:
    return [1 << n for n in range(size.bit_length()) if 1 << n < size]


def _zeroed(array: Array, axis: int, chosen: Array) -> Array:
    shape = [1] * array.ndim
    shape[axis] = -1
    return np.where(chosen.reshape(shape), np.zeros((), array.dtype), array)


left_out = _reason(_left_out)


def wrong_sign(m: Mismatch) -> str | None:
    """Detect a wrong sign of the output, of an input, or of both."""
    for name, array in [("", None), *_numbers(m)]:
        truth = m.reference_output({name: -array} if array is not None else {})
        for sign, words in ((1, ""), (-1, "minus ")):
            if truth is not None and m.explained(sign * truth.value, truth.bound):
                what = f" for -{name}" if name else ""
                return f"{m.wrong_elements} are {words}what reference {m.case.kernel.reference} gives{what}"
    return None


# ---- misplaced reads ----------------------------------------------------------------------------------


def _moved(array: Array, place: Array) -> Array:
    """Return the elements at these flat indices, which are clamped to the array."""
    flat = array.ravel()
    return flat[np.clip(place, 0, flat.size - 1)].reshape(array.shape)


def _indexed(m: Mismatch) -> Iterator[tuple[str, Array]]:
    """Yield the arrays with more than one element, by name."""
    for name, array in m.case.arrays.items():
        if is_array(array) and array.size > 1:
            yield name, array


def _one_off(m: Mismatch) -> Iterator[Change]:
    for name, array in _indexed(m):
        at = np.arange(array.size)
        for width in (1, 2, 4):  # elements of what is indexed: a scalar, or a vector
            last = array.size // width - 1
            for by in (1, -1):
                where = f"{width} {'element' if width == 1 else 'elements'} {'further' if by > 0 else 'back'}"
                place = np.clip(at // width + by, 0, last) * width + at % width
                yield f"with {name} read {where}", name, _moved(array, place)


one_off = _reason(_one_off)


def _other_stride(m: Mismatch) -> Iterator[Change]:
    for name, array in _indexed(m):
        if array.ndim != 2 or min(array.shape) == 1:
            continue
        row, column = np.divmod(np.arange(array.size), array.shape[1])
        yield f"with {name} read as its transpose", name, _moved(array, column * array.shape[0] + row)
        for dim, stride in m.case.shape.dims.items():
            if stride != array.shape[1]:
                words = f"with the rows of {name} read {dim} = {stride} apart instead of {array.shape[1]}"
                yield words, name, _moved(array, row * stride + column)


other_stride = _reason(_other_stride)


def _short_index(m: Mismatch) -> Iterator[Change]:
    for name, array in _indexed(m):
        for bits in (8, 16):
            if array.size > 1 << bits:
                words = f"with {name} read at indices of {bits} bits"
                yield words, name, _moved(array, np.arange(array.size) % (1 << bits))


short_index = _reason(_short_index)


def _misread(m: Mismatch) -> Iterator[Change]:
    for binding in m.case.kernel.bindings:
        format_, part = PACKED.get(binding.init or "", ("", ""))
        for words, change in MISREAD.get(format_, {}).items() if not part else ():
            yield f"with {words} of {binding.name}", binding.name, change(m.case.arrays[binding.name])


misread = _reason(_misread)


# ---- another kernel ------------------------------------------------------------------------------------


def wrong_kernel(m: Mismatch) -> str | None:
    """Detect that the kernel computes another registered reference."""
    for name, reference in registered().items():
        if name == m.case.kernel.reference:
            continue
        m.time_limit.check()
        truth = _tried(reference, m.case.arrays, m.case.shape.dims).get(m.output)
        if truth is not None and m.explained(truth.value, truth.bound):
            return f"{m.wrong_elements} are what reference {name} gives"
    return None


def _tried(reference: Reference, arrays: Arrays, dims: Mapping[str, int]) -> Mapping[str, Expected]:
    """Call a reference with arrays that it may not accept; empty where it fails."""
    try:
        return reference(arrays, dims)
    except Exception:  # a reference for other arrays can fail in any way
        return {}

"""Differences between the contents of a binding after two runs, by kind of element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import types as t
from ...sim.wgsl.texel_formats import format_of
from ..comparison.bits import bits_of, ulp_distance
from ..guesses.invented_inputs import COUNTER, HALF, SINGLE, STEP, WHOLE


@frozen
class Difference:
    """The elements of one kind (`code`) in one binding that differ.

    `count` of `elements` differ, the first at byte `first`, with the values `ours` and `theirs`. `error` is the largest
    error divided by the largest magnitude, or a number of steps for normalized formats.
    """

    binding: str
    code: int
    count: int
    elements: int
    first: int
    ours: Any
    theirs: Any
    error: float
    ulp: int

    def __str__(self) -> str:
        how = f", up to {self.ulp} ULP, {self.error:.2g} of the largest" if self.code in (SINGLE, HALF) else ""
        return (
            f"{self.binding}: {self.count} of {self.elements}{how}; "
            f"at byte {self.first} {self.ours:.9g} here, {self.theirs:.9g} there"
        )


Array = NDArray[Any]
Codes = NDArray[np.uint8]
Mask = NDArray[np.bool_]

_DTYPES = {WHOLE: np.uint32, COUNTER: np.uint32, SINGLE: np.float32, HALF: np.float16}


def differences(binding: str, codes: Codes, ours: Array, theirs: Array) -> list[Difference]:
    """Compare two outputs. Returns one record for each kind of element with differences.

    Any NaN equals any other, and padding is ignored. `codes`: see `invented_inputs.layout`.
    """
    found: list[Difference] = []
    for code, chosen, a, b, differ in _kinds(codes, ours, theirs):
        if differ.any():
            places = 2 * np.flatnonzero(chosen)[:: a.itemsize // 2]
            found.append(_difference(binding, code, places, a, b, differ))
    return found


def differing(codes: Codes, ours: Array, theirs: Array) -> Mask:
    """Tell for each 32-bit word of a buffer whether it differs, as `differences` does."""
    halves = np.zeros(codes.size, bool)
    for _, chosen, a, _, differ in _kinds(codes, ours, theirs):
        halves[chosen] = np.repeat(differ, a.itemsize // 2)
    return halves[::2] | halves[1::2]


def errors(codes: Codes, ours: Array, theirs: Array) -> NDArray[np.float64]:
    """Return how far each 32-bit word of a buffer is off: 0 where it is equal, infinite where one side is NaN."""
    halves = np.zeros(codes.size)
    for _, chosen, a, b, differ in _kinds(codes, ours, theirs):
        halves[chosen] = np.repeat(_errors(a, b, differ), a.itemsize // 2)
    return halves.reshape(-1, 2).max(axis=1)


def _kinds(codes: Codes, ours: Array, theirs: Array) -> Iterator[tuple[int, Mask, Array, Array, Mask]]:
    """Yield each kind of element: its code, a mask of its 16-bit halves, the values of both sides, and which differ."""
    for code, dtype in _DTYPES.items():
        chosen = codes == code
        a, b = (x.view(np.uint16)[chosen].view(dtype) for x in (ours, theirs))
        differ = bits_of(a) != bits_of(b)
        if dtype in (np.float32, np.float16):
            differ &= ~(np.isnan(a) & np.isnan(b))
        yield code, chosen, a, b, differ


def texels(binding: str, type_: t.Texture, ours: Array, theirs: Array) -> list[Difference]:
    """Compare two outputs of a storage texture as `differences` does. Errors of normalized formats are in steps."""
    assert type_.format is not None
    format_ = format_of(type_.format)
    stepped = format_.number in ("unorm", "snorm") and not format_.packed
    code = STEP if stepped else {"f4": SINGLE, "f2": HALF}.get(ours.dtype.str[1:], WHOLE)
    a, b = ours.ravel(), theirs.ravel()
    differ = differing_texels(a, b)
    places = np.arange(a.size) * a.itemsize
    return [_difference(binding, code, places, a, b, differ)] if differ.any() else []


def holds_floats(texture: t.Texture) -> bool:
    """Tell whether the texels of a storage texture are floats, as those of normalized formats are."""
    return not str(texture.format).rstrip("0123456789").endswith("int")


def differing_texels(ours: Array, theirs: Array) -> Mask:
    """Tell for each channel of a storage texture, in one axis, whether it differs."""
    a, b = ours.ravel(), theirs.ravel()
    return (bits_of(a) != bits_of(b)) & ~(np.isnan(a) & np.isnan(b))


def texel_errors(ours: Array, theirs: Array) -> NDArray[np.float64]:
    """Return how far each channel of a storage texture is off, as `errors` does."""
    return _errors(ours.ravel(), theirs.ravel(), differing_texels(ours, theirs))


def _errors(ours: Array, theirs: Array, differ: Mask) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        error = np.abs(ours.astype(np.float64) - theirs.astype(np.float64))
    return np.where(differ, np.where(np.isnan(error), np.inf, error), 0.0)


def _difference(binding: str, code: int, places: NDArray[np.intp], a: Array, b: Array, differ: Mask) -> Difference:
    """Describe the elements that differ. `places`: the offset of each element in bytes."""
    at = int(np.flatnonzero(differ)[0])
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(wide_b)
    largest = 1.0 if code == STEP else np.abs(wide_b[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(wide_a - wide_b)[differ]
    error = np.where(np.isfinite(error), error, np.inf)  # one side alone is infinite or NaN
    return Difference(
        binding,
        code,
        int(differ.sum()),
        len(a),
        int(places[at]),
        a[at],
        b[at],
        float(error.max() / largest) if largest else float(error.max()),
        int(ulp_distance(a[differ], b[differ]).max()),
    )

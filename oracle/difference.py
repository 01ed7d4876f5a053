"""Where what a binding holds after two runs is not the same, by kind of element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .compare import bits_of, ulp_distance
from .invented import COUNTER, HALF, SINGLE, WHOLE


@dataclass(frozen=True, slots=True)
class Difference:
    """Elements of one binding, all of a kind (`code`), that are not the same. `error`: largest / largest magnitude."""

    binding: str
    code: int
    count: int
    elements: int
    first: int  # byte
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


_DTYPES = {WHOLE: np.uint32, COUNTER: np.uint32, SINGLE: np.float32, HALF: np.float16}


def differences(binding: str, codes: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> list[Difference]:
    """Where two outputs differ, one record for each kind of element. Any NaN equals any other; padding is nothing."""
    found = []
    for code, dtype in _DTYPES.items():
        chosen = codes == code
        a, b = (x.view(np.uint16)[chosen].view(dtype) for x in (ours, theirs))
        differ = bits_of(a) != bits_of(b)
        if dtype in (np.float32, np.float16):
            differ &= ~(np.isnan(a) & np.isnan(b))
        if differ.any():
            found.append(_difference(binding, code, np.flatnonzero(chosen), a, b, differ))
    return found


def _difference(
    binding: str, code: int, halves: np.ndarray, a: np.ndarray, b: np.ndarray, differ: np.ndarray
) -> Difference:
    at = int(np.flatnonzero(differ)[0])
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    finite = np.isfinite(wide_b)
    largest = np.abs(wide_b[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        error = np.abs(wide_a - wide_b)[differ]
    error = np.where(np.isfinite(error), error, np.inf)  # an infinity or a NaN on one side only
    return Difference(
        binding,
        code,
        int(differ.sum()),
        len(a),
        int(halves[at * (a.itemsize // 2)]) * 2,
        a[at],
        b[at],
        float(error.max() / largest) if largest else float(error.max()),
        int(ulp_distance(a[differ], b[differ]).max()),
    )

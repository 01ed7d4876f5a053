"""One binding of a launch, as it was given and as bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..wgsl import types as t
from ..wgsl.typed import Variable

Key = str | tuple[int, int]
Output = NDArray[Any] | bytes  # what a writable binding holds after a run, in the form in which it was given
DTYPES = {"f32": "<f4", "i32": "<i4", "u32": "<u4", "f16": "<f2"}


class Bits(np.ndarray):
    """An array whose floats may also go in, and come out, as the bits of whole numbers of that width: WGSL has no float
    atomics, so that sums are kept in atomic<u32>. A view of any array: `array.view(Bits)`."""


@frozen
class Bound:
    """One binding: its variable, its store type, the key and value it was given as, and its bytes."""

    variable: Variable
    type: t.Type
    key: Key
    given: Any
    data: NDArray[np.uint8]

    @property
    def writable(self) -> bool:
        return self.variable.space == "storage" and self.variable.access in ("read_write", "write")

    def byte_of(self, element: int) -> int:
        """Where an element of what was given begins in the bytes; elements of bytes are bytes."""
        if isinstance(self.given, np.ndarray):
            return element * self.given.dtype.itemsize
        return element if isinstance(self.given, bytes | bytearray | memoryview) else element * 4

    def output(self, data: NDArray[np.uint8]) -> Any:
        """These bytes in the form in which the binding was given."""
        if isinstance(self.given, bytes | bytearray | memoryview):
            return data.tobytes()
        if isinstance(self.given, np.ndarray):
            return data.view(self.given.dtype).reshape(self.given.shape).copy()
        kinds = {t.KIND[s] for s in scalars(self.type)}
        return data.view(DTYPES[kinds.pop()] if len(kinds) == 1 else np.uint8).copy()


class Blank(Bound):
    """A buffer that holds nothing but zeros."""


def scalars(type_: t.Type) -> set[t.Scalar]:
    """The scalar types that a type in memory is made of."""
    match type_:
        case t.Scalar():
            return {type_}
        case t.Atomic(elem=elem) | t.Array(elem=elem) | t.Vec(elem=elem) | t.Mat(elem=elem):
            return scalars(elem)
        case t.Struct(members=members):
            return {s for m in members for s in scalars(m.type)}
        case _:
            return set()

"""One binding of a launch: the value that was given, and its bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard

import numpy as np
from numpy.typing import NDArray

from ..fast_dataclass import frozen
from ..wgsl import types as t
from ..wgsl.typed import Variable

if TYPE_CHECKING:
    from array import array

    from .samplers import Sampler

    class _Array(Protocol):
        """An array of another library, such as a tensor."""

        def __array__(self) -> NDArray[Any]: ...

    class _DLPack(Protocol):
        def __dlpack__(self, *, stream: Any = ...) -> Any: ...
        def __dlpack_device__(self) -> tuple[Any, Any]: ...

    # What can be bound: arrays, bytes, numbers, nested sequences, mappings of struct members or of a sampler's fields.
    _Foreign: TypeAlias = _Array | _DLPack | array[Any] | bytes | bytearray | memoryview
    _Plain: TypeAlias = NDArray[Any] | _Foreign | bool | int | float | np.generic | Sampler
    Value: TypeAlias = _Plain | Sequence["Value"] | Mapping[str, "Value | str | None"]
    Bindings: TypeAlias = Mapping[str, Value] | Mapping[tuple[int, int], Value] | Mapping["Key", Value]

Key: TypeAlias = str | tuple[int, int]
"""How a binding is named: by its variable, or by its group and binding."""

Output: TypeAlias = NDArray[Any] | bytes
"""What a writable binding holds after a run: bytes if bytes were given, else an array."""

DTYPES = {kind: np.dtype(name) for kind, name in {"f32": "<f4", "i32": "<i4", "u32": "<u4", "f16": "<f2"}.items()}


class Bits(np.ndarray[Any, np.dtype[Any]]):
    """An array whose floats may be passed and returned as integers of the same width that hold their bits.

    WGSL has no float atomics, so shaders accumulate floats in atomic<u32>. Make one with `array.view(Bits)`.
    """


def is_array(value: object) -> TypeGuard[NDArray[Any]]:
    """Whether a value is a NumPy array."""
    return isinstance(value, np.ndarray)


def is_bytes(value: object) -> TypeGuard[bytes | bytearray | memoryview[int]]:
    """Whether a value is bytes, or a view of bytes."""
    return isinstance(value, bytes | bytearray | memoryview)


def is_mapping(value: object) -> TypeGuard[Mapping[str, object]]:
    """Whether a value is a mapping."""
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeGuard[Sequence[object]]:
    """Whether a value is a list or a tuple."""
    return isinstance(value, list | tuple)


@frozen
class Bound:
    """A binding: its variable, its store type, the key and value that were given, and its bytes."""

    variable: Variable
    type: t.Type
    key: Key
    given: object
    data: NDArray[np.uint8]

    @property
    def writable(self) -> bool:
        """Whether the shader can store to it."""
        return self.variable.space == "storage" and self.variable.access in ("read_write", "write")

    def with_data(self, data: NDArray[np.uint8]) -> Bound:
        """Return the binding with other bytes: `replace` takes ten times as long."""
        made = object.__new__(type(self))
        made.__dict__ = {**vars(self), "data": data}
        return made

    def byte_of(self, element: int) -> int:
        """Return the byte at which an element of the given value begins; the elements of bytes are bytes."""
        if is_array(self.given):
            return element * self.given.dtype.itemsize
        return element if is_bytes(self.given) else element * 4

    def view(self, data: NDArray[np.uint8]) -> NDArray[Any]:
        """Return these bytes as elements of what was given, or of the type: a view where possible."""
        if is_bytes(self.given):
            return data
        if is_array(self.given):
            return data.view(self.given.dtype).reshape(self.given.shape)
        kinds = {t.KIND[s] for s in scalars(self.type)}
        return data.view(DTYPES[kinds.pop()] if len(kinds) == 1 else np.uint8)

    def output(self, data: NDArray[np.uint8]) -> Output:
        """Return a copy of these bytes in the form in which the binding was given."""
        return data.tobytes() if is_bytes(self.given) else self.view(data).copy()


class Blank(Bound):
    """A buffer of zeros, which need not be copied."""


@frozen
class Borrowed(Bound):
    """A large buffer that runs keep no copy of: its bytes are the caller's.

    `checksums`: of the parts of its bytes when the run returned; None before.
    """

    checksums: tuple[int, ...] | None = None


def scalars(type_: t.Type) -> set[t.Scalar]:
    """Return the scalar types that a type in memory consists of."""
    match type_:
        case t.Scalar():
            return {type_}
        case t.Atomic(elem=elem) | t.Array(elem=elem) | t.Vec(elem=elem) | t.Mat(elem=elem):
            return scalars(elem)
        case t.Struct(members=members):
            return {s for m in members for s in scalars(m.type)}
        case _:
            return set()

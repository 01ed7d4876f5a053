"""The scalars of a type, and the scalars and vectors that memory is accessed in."""

from __future__ import annotations

from collections.abc import Iterator

from ...sim.wgsl import types as t


def components(type_: t.Type) -> int:
    """Count the scalars of a scalar, vector or matrix."""
    match type_:
        case t.Vec(size=size):
            return size
        case t.Mat(cols=cols, rows=rows):
            return cols * rows
        case _:
            return 1


def element(type_: t.Type) -> str:
    """Return the name of a scalar's type, or of the scalars in a vector or matrix; empty for other types."""
    match type_:
        case t.Scalar(name=name):
            return name
        case t.Vec(elem=elem) | t.Mat(elem=elem) | t.Atomic(elem=elem):
            return elem.name
        case _:
            return ""


def pieces(type_: t.Type, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Iterate over the accesses that a value takes, one for each scalar or vector in it: offset and size in bytes."""
    match type_:
        case t.Mat(cols=cols, rows=rows, elem=elem):
            column = t.Vec(rows, elem)
            for number in range(cols):
                yield from pieces(column, offset + number * t.stride_of(type_))
        case t.Array(elem=elem, count=int(count)):
            for number in range(count):
                yield from pieces(elem, offset + number * t.stride_of(type_))
        case t.Struct(members=members):
            for member in members:
                yield from pieces(member.type, offset + member.offset)
        case _:
            yield offset, components(type_) * (2 if element(type_) == "f16" else 4)

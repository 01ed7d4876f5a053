"""Where a reference leads: a variable, and a byte offset in it as a WGSL expression."""

from __future__ import annotations

from ...sim.fast_dataclass import frozen
from ...sim.wgsl import typed
from ...sim.wgsl import types as t


@frozen
class AccessPath:
    """A reference: a module-scope variable, a constant offset in bytes, and run-time indices.

    `indices` has, for each, the name of the variable that keeps its value, and the stride in bytes.
    """

    variable: typed.Variable
    type: t.Type
    offset: int = 0
    indices: tuple[tuple[str, int], ...] = ()

    @property
    def address(self) -> str:
        """The byte offset from the start of the variable, as a WGSL expression."""
        return " + ".join([f"{self.offset}u", *(f"{stride}u * {name}" for name, stride in self.indices)])

    def member(self, index: int) -> AccessPath | None:
        """Return the path of a member of a struct, None if this is not one."""
        if not isinstance(self.type, t.Struct):
            return None
        member = self.type.members[index]
        return AccessPath(self.variable, member.type, self.offset + member.offset, self.indices)

    def element(self, index: int | str) -> AccessPath:
        """Return the path of an element: its number, or the name of the variable that keeps it."""
        type_, stride = _element_of(self.type)
        if isinstance(index, int):
            return AccessPath(self.variable, type_, self.offset + index * stride, self.indices)
        return AccessPath(self.variable, type_, self.offset, (*self.indices, (index, stride)))


def element_count(type_: t.Type) -> int:
    """Return the number of elements, columns or components, 0 for a runtime-sized array."""
    match type_:
        case t.Array(count=count):
            return count if isinstance(count, int) else 0
        case t.Mat(cols=cols):
            return cols
        case t.Vec(size=size):
            return size
        case _:
            raise AssertionError(f"{type_} has no elements")


def runtime_array(variable: typed.Variable) -> str:
    """Return the WGSL expression for the runtime-sized array in a variable: itself, or its last member."""
    if isinstance(variable.type, t.Struct):
        return f"{variable.name}.{variable.type.members[-1].name}"
    return variable.name


def _element_of(type_: t.Type) -> tuple[t.Type, int]:
    """Return the type of an element, column or component, and its stride in bytes."""
    match type_:
        case t.Array(elem=elem):
            return elem, t.stride_of(type_)
        case t.Mat(rows=rows, elem=elem):
            return t.Vec(rows, elem), t.stride_of(type_)
        case t.Vec(elem=elem):
            return elem, t.size_of(elem)
        case _:
            raise AssertionError(f"{type_} has no elements")

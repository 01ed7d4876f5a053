"""Memory views: a variable and a path into it.

A `View` represents a WGSL reference or pointer during lowering: its path is known, except for indices that are known
only at run time. Offsets into function and private variables count slots; all others count bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from ..fast_dataclass import frozen
from ..ir.ir import Block, Slot, Value
from ..wgsl import types as t
from ..wgsl.source import Span
from ..wgsl.typed import Variable


@frozen(slots=True)
class Step:
    """One index that is known only at run time. `count` None: the length of a runtime-sized array.

    `tail`: its byte offset and stride in the variable, where the type of the variable does not say them.
    """

    index: Value
    stride: int
    count: int | None
    span: Span
    of: str  # the source text of what is indexed
    tail: tuple[int, int] | None = None


@frozen
class View:
    """`type` is the store type at the end of the path, `offset` its constant part (slots or bytes)."""

    variable: Variable
    type: t.Type
    offset: int = 0
    steps: tuple[Step, ...] = ()
    block: Block | None = None  # of a function or private variable
    tail: tuple[int, int] | None = None  # of the runtime-sized array at the end of a view of a buffer
    vector: View | None = None  # of which it is a component

    @cached_property
    def slots(self) -> list[Slot] | None:
        """The scalars of a function or private variable that it consists of, where these are known."""
        block = self.block
        if block is None or self.steps or block.is_table:
            return None
        return block.slots[self.offset : self.offset + t.components(self.type)]

    def _size(self, type_: t.Type) -> int:
        return t.components(type_) if self.block else t.size_of(type_)

    def member(self, index: int) -> View:
        """Return the view of a struct's member."""
        assert isinstance(self.type, t.Struct)
        members = self.type.members
        before = sum(t.components(m.type) for m in members[:index])
        offset = before if self.block else members[index].offset
        return self._part(members[index].type, self.offset + offset, vector=self.vector)

    def element(self, index: Value, span: Span, of: str) -> View:
        """Return the view of an element, column or component. `of`: the source text of what is indexed."""
        elem, stride, count = self._elements
        # A runtime-sized array has at least one element, but where it is a view of a buffer, which may be too small.
        known = count or int(self.tail is None)
        if index.op == "const" and index.imm < known:
            return self._part(elem, self.offset + index.imm * stride, vector=self._as_vector())
        step = Step(index, stride, count, span, of, self.tail)
        return self._part(elem, self.offset, step, vector=self._as_vector())

    def _part(self, type_: t.Type, offset: int, *steps: Step, vector: View | None) -> View:
        return View(self.variable, type_, offset, (*self.steps, *steps), self.block, self.tail, vector)

    def _as_vector(self) -> View | None:
        return self if isinstance(self.type, t.Vec) else None

    def component(self, index: int) -> View:
        """Return the view of a vector's component."""
        elem, stride, _ = self._elements
        return self._part(elem, self.offset + index * stride, vector=self)

    @cached_property
    def _elements(self) -> tuple[t.Type, int, int | None]:
        match self.type:
            case t.Array(elem=elem, count=count):
                stride = t.components(elem) if self.block else t.stride_of(self.type)
                assert count is None or isinstance(count, int)
                return elem, stride, count
            case t.Vec(size=size, elem=elem):
                return elem, self._size(elem), size
            case t.Mat(cols=cols, rows=rows, elem=elem):
                column = t.Vec(rows, elem)
                return column, t.components(column) if self.block else t.stride_of(self.type), cols
            case _:
                raise AssertionError(f"no elements in {self.type}")


def leaves(type_: t.Type, offset: int = 0) -> Iterator[tuple[t.Scalar | t.Vec, int]]:
    """Iterate over the scalars and vectors that loads and stores of a type access, with their byte offsets."""
    match type_:
        case t.Scalar() | t.Vec():
            yield type_, offset
        case t.Mat(cols=cols, rows=rows, elem=elem):
            for column in range(cols):
                yield t.Vec(rows, elem), offset + column * t.stride_of(type_)
        case t.Array(elem=elem, count=int(count)):
            for i in range(count):
                yield from leaves(elem, offset + i * t.stride_of(type_))
        case t.Struct(members=members):
            for member in members:
                yield from leaves(member.type, offset + member.offset)
        case _:
            raise AssertionError(f"{type_} is not read as a value")

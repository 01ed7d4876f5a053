"""The machine's arrays as a type of Numba's: contiguous, an address and the lengths, and no index is negative.

Numba's own arrays are seven to nine numbers, all of which come along at each use, and an index of theirs may count from
the end. With these an access is a handful of LLVM's instructions. They have what the machine needs: items and rows; of
one dimension, slices and `view`; `size`, `dtype` and `len`.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate, bound_function
from numba.extending import infer_getattr, lower_builtin, lower_getattr, models, register_model, type_callable

_I64 = ir.IntType(64)


class Packed(types.Type):
    """An array of so many dimensions."""

    def __init__(self, dtype: Any, ndim: int) -> None:
        self.dtype, self.ndim = dtype, ndim
        super().__init__(f"packed({dtype}, {ndim})")


@register_model(Packed)
class _Model(models.StructModel):
    def __init__(self, manager: Any, kind: Packed) -> None:
        lengths = [(f"length{i}", types.int64) for i in range(kind.ndim)]
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), *lengths])


def _start(builder: Any, array: Any) -> Any:
    return builder.extract_value(array, 0)


def _length(builder: Any, array: Any, dimension: int) -> Any:
    return builder.extract_value(array, 1 + dimension)


def start_of(context: Any, builder: Any, kind: Packed, array: Any) -> Any:
    """The address of an array."""
    return _start(builder, array)


def length_of(context: Any, builder: Any, kind: Packed, array: Any, dimension: int) -> Any:
    return _length(builder, array, dimension)


def _made(context: Any, builder: Any, kind: Packed, start: Any, lengths: list[Any]) -> Any:
    """An array of these lengths, from an address on."""
    value = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for i, each in enumerate((start, *lengths)):
        value = builder.insert_value(value, each, i)
    return value


# ---- items, rows and slices --------------------------------------------------------------------------


def _indices(index: Any) -> tuple[Any, ...]:
    return tuple(getattr(index, "types", (index,)))


def _part(array: Packed, index: Any) -> Any:
    """The type of what an index picks; None where it is none."""
    if index == types.slice2_type and array.ndim == 1:
        return array
    count = len(_indices(index))
    if count > array.ndim or not all(isinstance(types.unliteral(each), types.Integer) for each in _indices(index)):
        return None
    return array.dtype if count == array.ndim else Packed(array.dtype, array.ndim - count)


@type_callable(operator.getitem)
def _type_getitem(context: Any) -> Any:
    def typed(array: Any, index: Any) -> Any:
        return _part(array, index) if isinstance(array, Packed) else None

    return typed


@type_callable(operator.setitem)
def _type_setitem(context: Any) -> Any:
    def typed(array: Any, index: Any, value: Any) -> Any:
        if isinstance(array, Packed) and _part(array, index) == array.dtype:
            return types.none(array, types.unliteral(index), array.dtype)
        return None

    return typed


def _place(context: Any, builder: Any, array_type: Packed, array: Any, index_type: Any, index: Any) -> Any:
    """Where an index leads to: of each dimension that it leaves out, to the first."""
    one = not isinstance(index_type, types.BaseTuple)
    given = [index] if one else cgutils.unpack_tuple(builder, index)
    at: Any = None
    for dimension in range(array_type.ndim):
        if at is not None:
            at = builder.mul(at, _length(builder, array, dimension))
        if dimension < len(given):
            here = context.cast(builder, given[dimension], _indices(index_type)[dimension], types.int64)
            if context.enable_boundscheck:
                _stop_outside(builder, here, _length(builder, array, dimension))
            at = here if at is None else builder.add(at, here)
    return builder.gep(_start(builder, array), [at])


def _stop_outside(builder: Any, index: Any, length: Any) -> None:
    """The process is at its end where an index is out of bounds: with NUMBA_BOUNDSCHECK=1, as Numba has it."""
    with builder.if_then(builder.icmp_unsigned(">=", index, length)):
        trap = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.trap")
        builder.call(trap, [])


@lower_builtin(operator.getitem, Packed, types.Integer)
@lower_builtin(operator.getitem, Packed, types.BaseTuple)
def _getitem(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    (kind, index_type), (array, index) = signature.args, values
    place = _place(context, builder, kind, array, index_type, index)
    if not isinstance(signature.return_type, Packed):
        return builder.load(place)
    rest = range(kind.ndim - signature.return_type.ndim, kind.ndim)
    return _made(context, builder, signature.return_type, place, [_length(builder, array, i) for i in rest])


@lower_builtin(operator.setitem, Packed, types.Any, types.Any)
def _setitem(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    (kind, index_type, _), (array, index, value) = signature.args, values
    builder.store(value, _place(context, builder, kind, array, index_type, index))
    return context.get_dummy_value()


@lower_builtin(operator.getitem, Packed, types.SliceType)
def _slice(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """As Python has it: no further than the array."""
    (kind, slice_type), (array, index) = signature.args, values
    bounds, length = context.make_helper(builder, slice_type, index), _length(builder, array, 0)

    def least(a: Any, b: Any) -> Any:
        return builder.select(builder.icmp_signed("<", a, b), a, b)

    first = least(bounds.start, length)
    many = builder.sub(least(bounds.stop, length), first)
    many = builder.select(builder.icmp_signed("<", many, _I64(0)), _I64(0), many)
    return _made(context, builder, kind, builder.gep(_start(builder, array), [first]), [many])


# ---- what an array is asked for ----------------------------------------------------------------------


@infer_getattr
class _Attributes(AttributeTemplate):
    key = Packed

    def resolve_size(self, array: Packed) -> Any:
        return types.int64

    def resolve_dtype(self, array: Packed) -> Any:
        return types.DType(array.dtype)

    @bound_function("packed.view")
    def resolve_view(self, array: Packed, args: Any, keywords: Any) -> Any:
        (kind,) = args
        return Packed(kind.dtype, 1)(kind) if array.ndim == 1 and isinstance(kind, types.NumberClass) else None


@lower_getattr(Packed, "size")
def _size(context: Any, builder: Any, kind: Packed, array: Any) -> Any:
    size = _length(builder, array, 0)
    for dimension in range(1, kind.ndim):
        size = builder.mul(size, _length(builder, array, dimension))
    return size


@lower_getattr(Packed, "dtype")
def _dtype(context: Any, builder: Any, kind: Packed, array: Any) -> Any:
    return context.get_dummy_value()


@type_callable(len)
def _type_len(context: Any) -> Any:
    return lambda array: types.int64 if isinstance(array, Packed) else None


@lower_builtin(len, Packed)
def _len(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    return _length(builder, values[0], 0)


@lower_builtin("packed.view", Packed, types.NumberClass)
def _view(context: Any, builder: Any, signature: Any, values: Any) -> Any:
    """View memory as items of another size."""
    array, (before, after) = values[0], (signature.args[0], signature.return_type)
    start = builder.bitcast(_start(builder, array), context.get_value_type(types.CPointer(after.dtype)))
    length = builder.mul(_length(builder, array, 0), _I64(before.dtype.bitwidth))
    return _made(context, builder, after, start, [builder.udiv(length, _I64(after.dtype.bitwidth))])

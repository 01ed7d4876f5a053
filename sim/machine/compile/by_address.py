"""Tuples of arrays, passed by address: as an argument of a call an array is several words, and a record of arrays a
hundred, which the caller puts on the stack each time. And numbers at an address."""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


def _lend(typingctx: Any, value: Any) -> Any:
    """The address of a copy of a tuple, which stays until the function that lends it returns: on the plain path an
    `@inlined` function is one that returns."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(cgutils.alloca_once_value(builder, args[0]), ir.IntType(64))

    return types.int64(value), codegen


lend: Any = intrinsic(_lend)


def borrower(kind: Any) -> Any:
    """A function that gives the tuple of this type at an address."""

    @intrinsic
    def borrowed(typingctx, address):  # type: ignore[no-untyped-def]
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = builder.inttoptr(args[0], context.get_value_type(kind).as_pointer())
            return _loaded(builder, pointer)

        return kind(types.int64), codegen

    return borrowed


def _loaded(builder: Any, pointer: Any) -> Any:
    """What a pointer points to, each number loaded alone, so that nothing is loaded that is not used."""
    kind = pointer.type.pointee
    if not isinstance(kind, ir.LiteralStructType | ir.ArrayType):
        return builder.load(pointer)
    value = ir.Constant(kind, ir.Undefined)
    for i in range(len(kind)):
        part = builder.gep(pointer, [ir.IntType(32)(0), ir.IntType(32)(i)])
        value = builder.insert_value(value, _loaded(builder, part), i)
    return value


def _word_at(typingctx: Any, address: Any) -> Any:
    """The word at an address, which need not be aligned."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = builder.load(builder.inttoptr(args[0], ir.IntType(32).as_pointer()))
        word.align = 1
        return word

    return types.uint32(types.int64), codegen


word_at: Any = intrinsic(_word_at)

"""The fast path: Numba's compiler with fewer passes, smaller arrays, and code that is optimized once.

It uses Numba's internals, which change from version to version: `paths` says for which versions this is.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit, types
from numba.core import cgutils

from . import inlining
from .by_address import borrower
from .numba_passes import Pipeline
from .packed_arrays import Packed, length_of, start_of

__all__ = ["array", "caller", "compiled", "inlined", "length_of", "object_code", "recorded", "start_of"]

# No reference counts: nothing here allocates, and counting at every view of a row took half of the time. No rewrites of
# array expressions: there are none. No wrappers: neither Python nor C calls it by one.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False, "no_rewrites": True}
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

array = Packed
recorded = borrower  # the headers that Python writes are the arrays themselves


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function of the machine into each function that calls it, or that calls the plain one."""
    made = inlining.COMPILED[function] = njit(pipeline_class=Pipeline, **_OPTIONS, **_NO_WRAPPERS)(function)
    return made


def inlined(function: Callable[..., Any]) -> Any:
    """Inline a function wherever it is called: Numba takes longer for one more function than for its lines."""
    return inlining.Piece(function)


def caller(symbol: str, signature: Any) -> Callable[..., Any]:
    """What writes a call of the function with this symbol, by Numba's calling convention."""

    def generate(context: Any, builder: Any, _: Any, values: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(signature.return_type, signature.args)
        callee = cgutils.get_or_insert_function(builder.module, kind, symbol)
        _, result = convention.call_function(builder, callee, signature.return_type, signature.args, values)
        return context.get_dummy_value() if signature.return_type == types.void else result

    return generate


def object_code(function: Callable[..., Any], signature: Any, symbol: str) -> bytes:
    """An object file of a function, by this symbol."""
    dispatcher = compiled(function)
    dispatcher.compile(signature)
    result = dispatcher.overloads[signature.args]
    return result.library.emit(result.fndesc.llvm_func_name, symbol)

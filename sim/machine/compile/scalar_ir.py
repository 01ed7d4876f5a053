"""The scalar operations as LLVM IR, straight from their text.

An operation is a plain function on NumPy scalars: arithmetic, conversions, choices, and calls of others like it. It is
run once with `Value`s for arguments, and what it computes of them is written down as it goes, by NumPy's own promotion
of types. What needs no argument is computed there and then. Only two things in its text are no calls that a `Value`
can answer, and so become such: a choice `a if c else b`, and the conversion `np.uint32(a)`. Numba compiles the same
functions to the same results, one by one, in eight times the time.
"""

from __future__ import annotations
import __future__

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

import numpy as np
from numba.np.numpy_support import from_dtype
from numba.np.ufunc_db import get_ufunc_info

from ...scalar.registry import ScalarOp

_KINDS = {"f32": np.float32, "f16": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}
DTYPES = {kind: np.dtype(number) for kind, number in _KINDS.items()}


def number_type(kind: str) -> Any:
    """Numba's type of the values of a kind."""
    return from_dtype(DTYPES[kind])


def emitted(context: Any, builder: Any, row: ScalarOp, operands: list[Any]) -> Any:
    """The result of an operation on operands in LLVM IR, each exactly of its kind, as is the result."""
    function = FASTER.get(row.name) or traced(row.fn)
    values = [Value(context, builder, DTYPES[k], v) for k, v in zip(row.args, operands, strict=True)]
    with np.errstate(all="ignore"):
        result = function(*values)
    if result.dtype != DTYPES[row.result]:
        raise TypeError(f"{row.name} returns {result.dtype}, not {DTYPES[row.result]}")
    return result.ir


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """What an operation works with where it runs: a value in LLVM IR, `ir`, of a NumPy type."""

    def __init__(self, context: Any, builder: Any, dtype: np.dtype[Any], ir: Any) -> None:
        self.context, self.builder, self.dtype, self.ir = context, builder, dtype, ir

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any) -> Value:
        """Every operator, and every function of NumPy's, comes here: Numba knows what each loop of it computes."""
        given = [each.dtype if isinstance(each, Value | np.generic) else type(each) for each in operands]
        *needed, made = ufunc.resolve_dtypes((*given, None))
        loop = f"{''.join(dtype.char for dtype in needed)}->{made.char}"
        values = [self.of(each, dtype).ir for each, dtype in zip(operands, needed, strict=True)]
        signature = from_dtype(made)(*(from_dtype(dtype) for dtype in needed))
        return self._made(made, get_ufunc_info(ufunc)[loop](self.context, self.builder, signature, values))

    def of(self, operand: Any, dtype: np.dtype[Any]) -> Value:
        """An operand, a `Value` or a number, as another type."""
        kind = from_dtype(dtype)
        if not isinstance(operand, Value):
            return self._made(dtype, self.context.get_constant(kind, dtype.type(operand).item()))
        return self._made(dtype, self.context.cast(self.builder, operand.ir, from_dtype(operand.dtype), kind))

    def view(self, number: type[np.generic]) -> Value:
        """The same bits as another type."""
        dtype: Any = np.dtype(number)
        return self._made(dtype, self.builder.bitcast(self.ir, self.context.get_value_type(from_dtype(dtype))))

    def chosen(self, if_true: Any, if_false: Any) -> Value:
        """One of two, both of which are computed: vectors have no branches."""
        dtype = np.result_type(*(each.dtype if isinstance(each, Value) else each for each in (if_true, if_false)))
        one, other = (self.of(each, dtype).ir for each in (if_true, if_false))
        return self._made(dtype, self.builder.select(self.ir, one, other))

    def _made(self, dtype: np.dtype[Any], ir: Any) -> Value:
        return Value(self.context, self.builder, dtype, ir)


# ---- what a text becomes -----------------------------------------------------------------------------------


class _Traceable(ast.NodeTransformer):
    """Choices and calls become calls of the two functions below."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._call("_chosen", node.test, node.body, node.orelse)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._call("_called", node.func, *node.args)

    def _call(self, name: str, *arguments: ast.expr) -> ast.AST:
        return ast.Call(ast.Name(name, ast.Load()), [self.visit(each) for each in arguments], [])


def _chosen(condition: Any, if_true: Any, if_false: Any) -> Any:
    if isinstance(condition, Value):
        return condition.chosen(if_true, if_false)
    return if_true if condition else if_false


def _called(function: Any, *arguments: Any) -> Any:
    first = arguments[0]
    if isinstance(function, type) and isinstance(first, Value):  # np.uint32(a)
        return first.of(first, np.dtype(function))
    return traced(function)(*arguments)


@cache
def traced(function: Any) -> Any:
    """A plain function that takes `Value`s; what is none, as NumPy's own functions, does so already."""
    if not isinstance(function, FunctionType):
        return function
    code = function.__code__
    module = ast.parse(textwrap.dedent(inspect.getsource(function)))
    definition = module.body[0]
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list.clear()  # by them it was entered into the table
    module = ast.increment_lineno(ast.fix_missing_locations(_Traceable().visit(module)), code.co_firstlineno - 1)
    enclosed = (cell.cell_contents for cell in function.__closure__ or ())
    names = {**function.__globals__, **dict(zip(code.co_freevars, enclosed, strict=True))}
    names |= {"_chosen": _chosen, "_called": _called}
    exec(compile(module, code.co_filename, "exec", flags=__future__.annotations.compiler_flag), names)
    return names[definition.name]


def _fused(a: Value, b: Value, c: Value) -> Value:
    """The hardware's fused multiply-add, vectorized; LLVM calls libm's where there is none."""
    return Value(a.context, a.builder, a.dtype, a.builder.fma(a.ir, b.ir, c.ir))


# The same function by a faster way; the tests hold each against the plain one.
FASTER: dict[str, Callable[..., Value]] = {"fma_f32": _fused}

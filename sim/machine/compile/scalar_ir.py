"""The scalar operations as LLVM IR, straight from their text.

An operation is a plain function on NumPy scalars: arithmetic, conversions, choices, and calls of others like it. It is
run once with `Value`s for arguments, and what it computes of them is written down as it goes, by NumPy's own promotion
of types. What needs no argument is computed there and then. Only two things in its text are no calls that a `Value`
can answer, and so become such: a choice `a if c else b`, and the conversion `np.uint32(a)`. Nothing here needs Numba:
Numba compiles the same functions to the same results, one by one, in eight times the time.
"""

# Numba and llvmlite have no types, so strict checks would find only unknowns.
# pyright: basic

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
from llvmlite import ir
from numba.core import cgutils

from ...scalar.registry import ScalarOp

_KINDS = {"f32": np.float32, "f16": np.float32, "i32": np.int32, "u32": np.uint32, "bool": np.uint32}
DTYPES = {kind: np.dtype(number) for kind, number in _KINDS.items()}


def emitted(builder: Any, row: ScalarOp, operands: list[Any]) -> Any:
    """The result of an operation on operands in LLVM IR, each exactly of its kind, as is the result."""
    function = FASTER.get(row.name) or traced(row.fn)
    values = [Value(builder, DTYPES[k], v) for k, v in zip(row.args, operands, strict=True)]
    with np.errstate(all="ignore"):
        result = function(*values)
    if result.dtype != DTYPES[row.result]:
        raise TypeError(f"{row.name} returns {result.dtype}, not {DTYPES[row.result]}")
    return result.ir


def llvm_type(dtype: np.dtype[Any]) -> Any:
    """LLVM's type of the numbers of a NumPy type."""
    if dtype.kind == "f":
        return ir.FloatType() if dtype.itemsize == 4 else ir.DoubleType()
    return ir.IntType(1 if dtype.kind == "b" else 8 * dtype.itemsize)


class Value(np.lib.mixins.NDArrayOperatorsMixin):
    """What an operation works with where it runs: a value in LLVM IR, `ir`, of a NumPy type."""

    def __init__(self, builder: Any, dtype: np.dtype[Any], ir: Any) -> None:
        self.builder, self.dtype, self.ir = builder, dtype, ir

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any) -> Value:
        """Every operator, and every function of NumPy's, comes here, and is written down by its row of the tables."""
        given = [each.dtype if isinstance(each, Value | np.generic) else type(each) for each in operands]
        *needed, made = ufunc.resolve_dtypes((*given, None))
        values = [self.of(each, dtype).ir for each, dtype in zip(operands, needed, strict=True)]
        rows = _OF_FLOATS if needed[0].kind == "f" else _OF_INTEGERS
        if ufunc.__name__ not in rows:
            raise TypeError(f"no instruction is known for {ufunc.__name__} of {needed[0]}")
        return self._made(made, rows[ufunc.__name__](self.builder, needed[0], *values))

    def of(self, operand: Any, dtype: np.dtype[Any]) -> Value:
        """An operand, a `Value` or a number, as another type."""
        kind = llvm_type(dtype)
        if not isinstance(operand, Value):
            return self._made(dtype, ir.Constant(kind, dtype.type(operand).item()))
        return self._made(dtype, _converted(self.builder, operand.ir, operand.dtype, dtype))

    def view(self, number: type[np.generic]) -> Value:
        """Reinterpret the bits as another type."""
        dtype: Any = np.dtype(number)
        return self._made(dtype, self.builder.bitcast(self.ir, llvm_type(dtype)))

    def chosen(self, if_true: Any, if_false: Any) -> Value:
        """One of two, both of which are computed: vectors have no branches."""
        dtype = np.result_type(*(each.dtype if isinstance(each, Value) else each for each in (if_true, if_false)))
        one, other = (self.of(each, dtype).ir for each in (if_true, if_false))
        return self._made(dtype, self.builder.select(self.ir, one, other))

    def _made(self, dtype: np.dtype[Any], ir: Any) -> Value:
        return Value(self.builder, dtype, ir)


def _converted(builder: Any, value: Any, before: np.dtype[Any], after: np.dtype[Any]) -> Any:
    """A number as one of another type, as C converts it."""
    kind, signed = llvm_type(after), before.kind == "i"
    if before == after:
        return value
    if before.kind == "f" and after.kind == "f":
        return builder.fpext(value, kind) if before.itemsize < after.itemsize else builder.fptrunc(value, kind)
    if before.kind == "f":
        return builder.fptosi(value, kind) if after.kind == "i" else builder.fptoui(value, kind)
    if after.kind == "f":
        return builder.sitofp(value, kind) if signed else builder.uitofp(value, kind)
    if kind.width <= value.type.width:
        return builder.trunc(value, kind) if kind.width < value.type.width else value
    return builder.sext(value, kind) if signed else builder.zext(value, kind)


# ---- instructions of NumPy's functions ---------------------------------------------------------------------

Row = Callable[..., Any]  # the instruction, of a builder, the type of the operands, and the operands


def _instruction(name: str) -> Row:
    return lambda builder, dtype, *values: getattr(builder, name)(*values)


def _compared(operator: str) -> Row:
    """A comparison. One with a NaN is false, but that it differs."""

    def row(builder: Any, dtype: np.dtype[Any], a: Any, b: Any) -> Any:
        if dtype.kind == "f":
            return (builder.fcmp_unordered if operator == "!=" else builder.fcmp_ordered)(operator, a, b)
        return (builder.icmp_signed if dtype.kind == "i" else builder.icmp_unsigned)(operator, a, b)

    return row


def _shifted_right(builder: Any, dtype: np.dtype[Any], value: Any, by: Any) -> Any:
    return builder.ashr(value, by) if dtype.kind == "i" else builder.lshr(value, by)


def _called(name: str) -> Row:
    """A function without side effects: one of LLVM's (`llvm.sqrt`), by the type of its operands, or of C's."""

    def row(builder: Any, dtype: np.dtype[Any], *values: Any) -> Any:
        kind = values[0].type
        suffix = f".f{8 * dtype.itemsize}" if name.startswith("llvm.") else ""
        function_type = ir.FunctionType(kind, [kind] * len(values))
        return builder.call(cgutils.insert_pure_function(builder.module, function_type, name + suffix), values)

    return row


def _scaled(factor: float) -> Row:
    return lambda builder, dtype, value: builder.fmul(value, ir.Constant(value.type, factor))


_COMPARISONS: dict[str, Row] = {
    **{"equal": _compared("=="), "not_equal": _compared("!="), "less": _compared("<"), "less_equal": _compared("<=")},
    **{"greater": _compared(">"), "greater_equal": _compared(">=")},
}
_OF_INTEGERS: dict[str, Row] = {
    **_COMPARISONS,
    **{"add": _instruction("add"), "subtract": _instruction("sub"), "multiply": _instruction("mul")},
    **{"bitwise_and": _instruction("and_"), "bitwise_or": _instruction("or_"), "bitwise_xor": _instruction("xor")},
    **{"invert": _instruction("not_"), "negative": _instruction("neg")},
    **{"left_shift": _instruction("shl"), "right_shift": _shifted_right},
}
_OF_FLOATS: dict[str, Row] = {
    **_COMPARISONS,
    **{"add": _instruction("fadd"), "subtract": _instruction("fsub"), "multiply": _instruction("fmul")},
    **{"divide": _instruction("fdiv"), "fmod": _instruction("frem")},
    **{"degrees": _scaled(180 / np.pi), "radians": _scaled(np.pi / 180)},
    **{name: _called(f"llvm.{name}") for name in ("ceil", "floor", "rint", "trunc", "sqrt")},
    **{name: _called(f"llvm.{name}") for name in ("cos", "exp", "exp2", "log", "log2", "sin")},
    **{name: _called(name) for name in ("cosh", "sinh", "tan", "tanh")},
    **{f"arc{name}": _called(f"a{name}") for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")},
    "power": _called("llvm.pow"),
}


# ---- what a text becomes -----------------------------------------------------------------------------------


class _Traceable(ast.NodeTransformer):
    """Choices and calls become calls of the two functions below."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        return self._call("_chosen", node.test, node.body, node.orelse)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return self._call("_applied", node.func, *node.args)

    def _call(self, name: str, *arguments: ast.expr) -> ast.AST:
        return ast.Call(ast.Name(name, ast.Load()), [self.visit(each) for each in arguments], [])


def _chosen(condition: Any, if_true: Any, if_false: Any) -> Any:
    if isinstance(condition, Value):
        return condition.chosen(if_true, if_false)
    return if_true if condition else if_false


def _applied(function: Any, *arguments: Any) -> Any:
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
    names |= {"_chosen": _chosen, "_applied": _applied}
    exec(compile(module, code.co_filename, "exec", flags=__future__.annotations.compiler_flag), names)
    return names[definition.name]


def _fused(a: Value, b: Value, c: Value) -> Value:
    """The hardware's fused multiply-add, vectorized; LLVM calls libm's where there is none."""
    return Value(a.builder, a.dtype, a.builder.fma(a.ir, b.ir, c.ir))


# The same function by a faster way; tests compare each with the plain one.
FASTER: dict[str, Callable[..., Value]] = {"fma_f32": _fused}

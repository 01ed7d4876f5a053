"""Arithmetic on dimensions, as in manifests: `ceil(N / 64)`, `2 * M * K`.

Exact: values are integers or fractions, never floats, so `ceil(N / 64)` is right for every N.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, TypeAlias

from ..errors import UsageError

Number: TypeAlias = int | Fraction


def _divide(dividend: Number, divisor: Number) -> Fraction:
    return Fraction(dividend) / divisor


def _floor_divide(dividend: Number, divisor: Number) -> int:
    return dividend // divisor


OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.FloorDiv: _floor_divide,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}

# ValueError: a null character. The last two: nested too deeply.
_UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ceil": math.ceil,
    "floor": math.floor,
    "min": min,
    "max": max,
    "abs": abs,
}


def evaluate(expression: str | int, names: Mapping[str, int]) -> int:
    """Evaluate an expression to an integer. Raises `UsageError` on anything but integer arithmetic.

    >>> evaluate("ceil(N / 64) + 1", {"N": 836})
    15
    """
    value = fraction(expression, names)
    if value != int(value):
        raise UsageError(f"`{expression}` is {value}, not an integer; use ceil() or floor()")
    return int(value)


def fraction(expression: str | int, names: Mapping[str, int]) -> Number:
    """Evaluate an expression that may have a fractional value. Raises `UsageError`.

    >>> fraction("ceil(K / 256) / 256", {"K": 1152})
    Fraction(5, 256)
    """
    if isinstance(expression, int):
        return expression
    try:
        return _value(ast.parse(expression, mode="eval").body, names)
    except _UNREADABLE:
        raise UsageError(f"`{expression}` is not arithmetic") from None
    except ZeroDivisionError:
        raise UsageError(f"`{expression}` divides by zero") from None
    except TypeError:
        raise UsageError(f"in `{expression}` a function has the wrong number of operands") from None
    except UsageError as error:
        raise UsageError(f"in `{expression}`: {error}") from None


def names_in(expression: str | int) -> set[str]:
    """The dimensions that `expression` names."""
    try:
        tree = ast.parse(str(expression), mode="eval")
    except _UNREADABLE:
        raise UsageError(f"`{expression}` is not arithmetic") from None
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - FUNCTIONS.keys()


def _value(node: ast.AST, names: Mapping[str, int]) -> Number:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            if name not in names:
                raise UsageError(f"no dimension is named {name}; there are {', '.join(names) or 'none'}")
            return names[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op=op, operand=operand) if type(op) in OPERATORS:
            return OPERATORS[type(op)](_value(operand, names))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return FUNCTIONS[name](*(_value(arg, names) for arg in args))
        case _:
            pass
    raise UsageError("only integers, dimensions, + - * / // %, ceil, floor, min, max and abs are allowed")

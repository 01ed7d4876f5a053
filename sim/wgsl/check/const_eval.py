"""Const-evaluation, with the same scalar operations that the machine runs.

A constant is plain Python, as in `typed`: bool, int, float, and tuples of them (a matrix is a tuple of columns).
Floats are exactly representable in their type: f32 is rounded by the operation, abstract-float is a double.
Spec: WGSL, "`const` Expressions", "Floating Point Conversion", and the error conditions of each builtin.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np

from ...scalar import OPS
from .. import types as t
from ..builtins import Builtin
from ..builtins.compositions import apply
from ..diagnostics import Crash, WgslError, fail
from ..source import Span
from .const_checks import CHECKS

Value = Any

INT_RANGE = {"i32": (-(2**31), 2**31 - 1), "u32": (0, 2**32 - 1), "ai": (-(2**63), 2**63 - 1)}
LARGEST = {"f16": 65504.0, "f32": float(np.finfo(np.float32).max), "af": float(np.finfo(np.float64).max)}

# The arguments of a scalar operation, by kind: f16 is an f32 that was rounded to f16.
_BOX: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float32,
    "i32": np.int32,
    "u32": np.uint32,
    "bool": np.uint32,
    "af": float,
    "ai": int,
}
_PLAIN: dict[str, Any] = {"f32": float, "f16": float, "i32": int, "u32": int, "bool": bool, "af": float, "ai": int}


# ---- values and their scalars --------------------------------------------------------------------------


def zero(type_: t.Type) -> Value:
    """Return the zero value of a constructible type."""
    if isinstance(type_, t.Scalar):
        return _PLAIN[t.KIND[type_]](0)
    if isinstance(type_, t.Array) and isinstance(type_.count, int):
        return (zero(type_.elem),) * type_.count
    return tuple(map(zero, t.children(type_)))


def flatten(value: Value) -> list[bool | int | float]:
    """List the scalars of a value, in the order of `types.flatten`."""
    if not isinstance(value, tuple):
        return [value]
    return [scalar for part in cast("tuple[Value, ...]", value) for scalar in flatten(part)]


def unflatten(scalars: Sequence[bool | int | float], type_: t.Type) -> Value:
    """Return the value of `type_` with these scalars."""
    return _take(iter(scalars), type_)


def _take(scalars: Iterator[bool | int | float], type_: t.Type) -> Value:
    if isinstance(type_, t.Scalar):
        return next(scalars)
    return tuple(_take(scalars, child) for child in t.children(type_))


def construct(type_: t.Type, arg_types: Sequence[t.Type], values: Sequence[Value]) -> Value:
    """Construct a value of `type_` from `values`, already converted to the parameters of its constructor.

    No values give the zero value; one scalar fills a vector; vectors and matrices are filled in order.
    """
    if not values:
        return zero(type_)
    if isinstance(type_, (t.Array, t.Struct)):
        return tuple(values)
    scalars = [scalar for value in values for scalar in flatten(value)]
    if len(scalars) == 1 and isinstance(type_, t.Vec):
        scalars *= type_.size
    return unflatten(scalars, type_)


# ---- conversions ---------------------------------------------------------------------------------------


def convert(value: Value, src: t.Type, dst: t.Type, span: Span | None, *, explicit: bool = False) -> Value:
    """Convert `value` to `dst`, component by component; `explicit`: the source spells the conversion, like `u32(x)`.

    Raises `WgslError` where the value does not fit: an abstract-int outside the range of an integer type, any number
    outside the finite range of a floating-point type. Floating point to integer clamps.
    """
    if src == dst:
        return value
    if not (isinstance(src, t.Scalar) and isinstance(dst, t.Scalar)):
        parts = zip(value, t.children(src), t.children(dst), strict=True)
        return tuple(convert(part, one, other, span, explicit=explicit) for part, one, other in parts)
    _check_fits(value, src, dst, span, explicit)
    if src == t.ABSTRACT_INT and dst in t.INTEGERS:
        return value
    made = _Numbers(f"conversion to {dst}", span)(f"convert_{t.KIND[src]}_{t.KIND[dst]}", value)
    if isinstance(made, WgslError):
        raise made
    return made


def _check_fits(value: Value, src: t.Scalar, dst: t.Scalar, span: Span | None, explicit: bool) -> None:
    kind = t.KIND[dst]
    if kind in LARGEST:
        fits = abs(value) <= LARGEST[kind]
    elif kind in INT_RANGE and src == t.ABSTRACT_INT:
        low, high = INT_RANGE[kind]
        fits = low <= value <= high
    else:
        fits = True
    if not fits:
        hint = None
        if not explicit and dst == t.I32 and 0 <= value <= INT_RANGE["u32"][1]:
            hint = f"{value}u is a u32"
        elif dst == t.U32 and value < 0:
            hint = "an i32 holds negative numbers"
        raise fail("value-out-of-range", f"{_shown(value)} does not fit in {dst}", span, hint=hint)


# ---- builtins ------------------------------------------------------------------------------------------


def evaluate(
    builtin: Builtin, arg_types: Sequence[t.Type], values: Sequence[Value], result: t.Type, span: Span | None
) -> Value:
    """Apply a builtin function or operator to constants, already converted to `arg_types`.

    Raises `WgslError` where the spec requires an error: see `CHECKS`; overflow of abstract-int; a result, or an
    intermediate result, that is infinite or NaN.
    """
    partial_check(builtin, arg_types, values, span)
    name = f"'{builtin.name.removeprefix('unary ')}'"
    numbers = _Numbers(name, span, _DOMAINS.get(builtin.name))
    scalars = apply(builtin, numbers, arg_types, [flatten(value) for value in values], result)
    for scalar in scalars:
        if isinstance(scalar, WgslError):
            raise scalar
    return unflatten(scalars, result)


def partial_check(
    builtin: Builtin, arg_types: Sequence[t.Type], values: Sequence[Value | None], span: Span | None
) -> None:
    """Raise `WgslError` where the known arguments (not None) are an error whatever the others are."""
    for check in CHECKS.get(builtin.name, ()):
        if any(values[i] is None for i in check.needs) or not check.applies(arg_types):
            continue
        columns = [flatten(values[i]) for i in check.needs]
        elem = t.KIND[t.element_of(arg_types[0])] if isinstance(arg_types[0], (t.Scalar, t.Vec, t.Mat)) else ""
        for i in range(max(map(len, columns))):
            problem = check.problem(elem, *(column[i if len(column) > 1 else 0] for column in columns))
            if problem:
                raise fail(check.code, problem, span, hint=check.hint)


_DOMAINS = {
    **dict.fromkeys(("log", "log2", "inverseSqrt"), "its argument must be greater than 0"),
    "sqrt": "its argument must be at least 0",
    **dict.fromkeys(("acos", "asin"), "its argument must be from -1 to 1"),
    "acosh": "its argument must be at least 1",
    "atanh": "its argument must be greater than -1 and less than 1",
    "normalize": "its argument must not be zero",
}


class _Numbers:
    """`Ops` on plain Python numbers. An infinity, NaN or overflow is a `WgslError`, returned instead of a number.

    So is what is computed from it, unless `select` drops it: a formula gives the operands of both its branches.
    """

    def __init__(self, what: str, span: Span | None, hint: str | None = None) -> None:
        self.what = what
        self.span = span
        self.hint = hint

    def const(self, kind: str, value: float, /) -> Value:
        return _PLAIN[kind](value)

    def __call__(self, op: str, /, *args: Value) -> Value:
        row = OPS.get(op)
        if row is None:
            raise Crash(f"there is no scalar operation '{op}'", self.span)
        if op.startswith("select_") and isinstance(args[2], bool):
            return args[1] if args[2] else args[0]
        for arg in args:
            if isinstance(arg, WgslError):
                return arg
        boxed = [_BOX[kind](arg) for kind, arg in zip(row.args, args, strict=True)]
        try:
            with np.errstate(all="ignore"):
                result = _PLAIN[row.result](row.fn(*boxed))
        except (OverflowError, ZeroDivisionError, ValueError):
            # Python's arithmetic raises where IEEE-754 has an infinity or a NaN.
            return self._error(row.result, args)
        if row.result in LARGEST and not math.isfinite(result):
            return self._error(row.result, args)
        if row.result == "ai" and not INT_RANGE["ai"][0] <= result <= INT_RANGE["ai"][1]:
            return self._error("ai", args)
        return result

    def _error(self, kind: str, args: Sequence[Value]) -> WgslError:
        wrong = "overflows abstract-int" if kind == "ai" else "is infinite or not a number"
        shown = ", ".join(map(_shown, args))
        return fail("const-overflow", f"the result of {self.what} {wrong} (of {shown})", self.span, hint=self.hint)


def _shown(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.9g}" if isinstance(value, float) else str(value)

"""The operators, in the form of the builtin functions. `&&` and `||` are not here, since they may not evaluate both
sides. Spec: WGSL, "Logical", "Arithmetic", "Comparison" and "Bit Expressions"."""

from __future__ import annotations

from .accuracy import CORRECT, DIVISION, Accuracy, inherits
from .row import Builtin

_ARITHMETIC, _BITS, _COMPARE = "arithmetic-expr", "bit-expr", "comparison-expr"
_MIXED = ("(vecN<S>, S) -> vecN<S>; S: anynum", "(S, vecN<S>) -> vecN<S>; S: anynum")
_NUMERIC = "(T, T) -> T; T: anynum | vecN<anynum>"
_NUMERIC_OR_MATRIX = "(T, T) -> T; T: anynum | vecN<anynum> | matCxR<anyfloat>"
_INTEGER = "(T, T) -> T; T: anyint | vecN<anyint>"
_INTEGER_OR_BOOL = "(T, T) -> T; T: anyint | vecN<anyint> | bool | vecN<bool>"
_SHIFT = ("(S, u32) -> S; S: anyint", "(vecN<S>, vecN<u32>) -> vecN<S>; S: anyint")
_PRODUCTS = (
    "(matCxR<S>, S) -> matCxR<S>; S: anyfloat",
    "(S, matCxR<S>) -> matCxR<S>; S: anyfloat",
    "(matCxR<S>, vecC<S>) -> vecR<S>; S: anyfloat",
    "(vecR<S>, matCxR<S>) -> vecC<S>; S: anyfloat",
    "(matKxR<S>, matCxK<S>) -> matCxR<S>; S: anyfloat",
)


def _compare(name: str, op: str, over: str) -> Builtin:
    signatures = (f"(S, S) -> bool; S: {over}", f"(vecN<S>, vecN<S>) -> vecN<bool>; S: {over}")
    return Builtin(name, signatures, _COMPARE, op=op, accuracy=CORRECT)


def _arithmetic(name: str, op: str, signatures: tuple[str, ...], accuracy: Accuracy) -> Builtin:
    return Builtin(name, signatures, _ARITHMETIC, op=op, accuracy=accuracy)


ROWS = (
    _arithmetic("+", "add", (_NUMERIC_OR_MATRIX, *_MIXED), CORRECT),
    _arithmetic("-", "sub", (_NUMERIC_OR_MATRIX, *_MIXED), CORRECT),
    # Of matrices: inherited from sums of products.
    Builtin("*", (_NUMERIC, *_MIXED, *_PRODUCTS), _ARITHMETIC, kind="compose", accuracy=CORRECT),
    _arithmetic("/", "div", (_NUMERIC, *_MIXED), DIVISION),
    _arithmetic("%", "rem", (_NUMERIC, *_MIXED), inherits("x - y * trunc(x / y)")),
    _arithmetic("unary -", "neg", ("(T) -> T; T: signed | vecN<signed>",), CORRECT),
    Builtin("!", ("(T) -> T; T: bool | vecN<bool>",), "logical-expr", op="lnot"),
    Builtin("~", ("(T) -> T; T: anyint | vecN<anyint>",), _BITS, op="not"),
    Builtin("&", (_INTEGER_OR_BOOL,), _BITS, op="and"),
    Builtin("|", (_INTEGER_OR_BOOL,), _BITS, op="or"),
    Builtin("^", (_INTEGER,), _BITS, op="xor"),
    Builtin("<<", _SHIFT, _BITS, op="shl"),
    Builtin(">>", _SHIFT, _BITS, op="shr"),
    _compare("==", "eq", "scalar"),
    _compare("!=", "ne", "scalar"),
    _compare("<", "lt", "anynum"),
    _compare("<=", "le", "anynum"),
    _compare(">", "gt", "anynum"),
    _compare(">=", "ge", "anynum"),
)

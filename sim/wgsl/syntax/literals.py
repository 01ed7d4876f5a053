"""Numeric literals: their kind, and their exact or correctly rounded value.

The lexer has validated the form; only the range is checked here. An `f` or `h` literal is rounded once, from the exact
number to the nearest, ties to even. A number above the largest of its type overflows, even where rounding would give
the largest: the spec lets an implementation round up, and browsers do. Spec: WGSL, "Numeric Literals", "Floating Point
Rounding and Overflow".
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

from ...fast_dataclass import frozen
from ..diagnostics import WgslError, fail
from ..source import Span


@frozen
class _IntKind:
    kind: str
    largest: int


@frozen
class _FloatKind:
    kind: str
    largest: float
    precision: int  # bits of the significand, including the implicit one
    least_exponent: int  # of the smallest subnormal


_INT_KINDS = {
    "": _IntKind("abstract-int", 2**63 - 1),
    "i": _IntKind("i32", 2**31 - 1),
    "u": _IntKind("u32", 2**32 - 1),
}
_FLOAT_KINDS = {
    "": _FloatKind("abstract-float", math.ldexp(2 - 2**-52, 1023), 53, -1074),
    "f": _FloatKind("f32", math.ldexp(2 - 2**-23, 127), 24, -149),
    "h": _FloatKind("f16", 65504.0, 11, -24),
}
# The most digits of an integer literal in range, without leading zeros (a hexadecimal one has fewer).
_MOST_DIGITS = 20


def read_number(text: str, span: Span) -> tuple[str, int | float]:
    """Return kind (`abstract-int`, `i32`, `u32`, `abstract-float`, `f32`, `f16`) and value of a numeric literal.

    Raises `WgslError`: `literal-out-of-range`, or `literal-not-exact` for a suffixed hexadecimal float that needs
    rounding.
    """
    is_hex = text[:2] in ("0x", "0X")
    if is_hex:
        is_float = "." in text or "p" in text or "P" in text
        suffix = text[-1] if text[-1] in ("iu" if not is_float else "fh") and _may_end_in_suffix(text) else ""
    else:
        suffix = text[-1] if text[-1] in "iufh" else ""
        is_float = suffix in ("f", "h") or not text.isalnum() or "e" in text or "E" in text
    digits = text[: len(text) - len(suffix)]
    if is_float:
        kind = _FLOAT_KINDS[suffix]
        return kind.kind, _read_hex_float(digits, kind, span) if is_hex else _read_decimal_float(digits, kind, span)
    return _read_int(digits, is_hex, _INT_KINDS[suffix], span)


def _may_end_in_suffix(text: str) -> bool:
    """Whether the last letter of a hexadecimal literal may be a suffix: an `f` without an exponent is a digit."""
    return text[-1] != "f" or "p" in text or "P" in text


def _read_int(digits: str, is_hex: bool, kind: _IntKind, span: Span) -> tuple[str, int]:
    significant = digits[2:].lstrip("0") if is_hex else digits
    if len(significant) <= _MOST_DIGITS:
        value = int(significant or "0", 16 if is_hex else 10)
        if value <= kind.largest:
            return kind.kind, value
    raise fail(
        "literal-out-of-range", f"integer literal does not fit {_named(kind.kind)}, at most {kind.largest}", span
    )


def _read_decimal_float(digits: str, kind: _FloatKind, span: Span) -> float:
    value = float(digits)
    if math.isinf(value):
        raise _overflow(kind, span)
    if value > kind.largest:
        raise _overflow(kind, span, rounds_down=_nearest(Fraction(value), kind) <= kind.largest)
    # A zero is a number far below the least subnormal; its exponent may be too long for exact arithmetic.
    if kind.kind == "abstract-float" or value == 0:
        return value
    return _nearest(Fraction(Decimal(digits)), kind)


def _read_hex_float(digits: str, kind: _FloatKind, span: Span) -> float:
    try:
        value = float.fromhex(digits)
    except OverflowError:
        raise _overflow(kind, span) from None
    if kind.kind == "abstract-float":
        return value
    significand, _, exponent = digits[2:].lower().partition("p")
    whole, _, fraction = significand.partition(".")
    scaled = int(whole + fraction, 16)
    # Where fromhex returns zero, the exponent may be huge: the literal is zero, or not exact.
    exact = Fraction(scaled) * Fraction(2) ** (int(exponent or "0") - 4 * len(fraction)) if value else Fraction(0)
    if exact > kind.largest:
        raise _overflow(kind, span)
    if (scaled and not value) or _nearest(exact, kind) != exact:
        raise fail("literal-not-exact", f"hexadecimal literal cannot be exactly represented in {kind.kind}", span)
    return value


def _nearest(exact: Fraction, kind: _FloatKind) -> float:
    """Round `exact` to the format, ties to even. The result always fits a float64 without further rounding."""
    exponent = max(math.frexp(float(exact))[1] - kind.precision, kind.least_exponent)
    return math.ldexp(float(round(exact / Fraction(2) ** exponent)), exponent)


def _overflow(kind: _FloatKind, span: Span, *, rounds_down: bool = False) -> WgslError:
    """Return the error of a literal that is too large; it has another code where the nearest number is the largest."""
    code = "literal-above-largest" if rounds_down else "literal-out-of-range"
    largest = {"f32": "3.4028234e38f", "f16": "65504h"}.get(kind.kind)
    message = f"literal is too large for {_named(kind.kind)}, at most {kind.largest!r}"
    return fail(code, message, span, hint=f"the largest {kind.kind} is {largest}" if largest else None)


def _named(kind: str) -> str:
    return {"abstract-int": "an abstract integer (64 bits)", "abstract-float": "an abstract float"}.get(kind, kind)

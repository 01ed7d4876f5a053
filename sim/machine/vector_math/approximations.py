"""What float64 functions give, nearly: without branches, tables or calls, so that they are computed by vectors.

`NEAR["exp"](m, x)` is within `OFF` of e^x, relatively. An operation whose meaning is a function of float64, rounded
once to its kind, needs no more, except where that much decides how it rounds: there its meaning itself is computed (see
`curves`). So nothing here changes a bit of any result. What these functions do not know is `UNSURE`, which decides.

The numbers are what `m` works with: vectors in LLVM IR, or NumPy arrays. It has `where`, `sqrt`, `trunc`, and `bits`
and `double`, which turn float64 into int64 and back. Operands are f32 in float64: zero, or normal numbers.
Series: Abramowitz and Stegun, "Handbook of Mathematical Functions", 4.1.27, 4.2.1, 4.3.65, 4.3.66, 4.4.42.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial, inf, log, nan, pi, sqrt, tan
from struct import pack, unpack
from typing import Any

OFF = 2.0**-36  # a series leaves out less than 2**-41, and no function here makes more than four times that of it
UNSURE = 1 + 2.0**-11 + 2.0**-24  # halfway between two f32; the nearest f32 is halfway between two f16

_SIGN, _MANTISSA = -(2**63), 2**52 - 1
_ONE = 1023 << 52  # 1.0, as bits
_WHOLE = 1.5 * 2.0**52  # a number of this size has no fraction: its last bits are an integer, in two's complement
_LN2, _LN2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first has 33 bits
_LARGE = 300.0  # its power of e is infinite in f32, that of its negative zero


def _series(x: Any, coefficients: Sequence[float]) -> Any:
    *before, total = coefficients
    for each in reversed(before):
        total = total * x + each
    return total


def _magnitude(m: Any, x: Any) -> Any:
    return m.double(m.bits(x) & ~_SIGN)


def _if_any(m: Any, x: Any) -> Any:
    """x where it is a number: a NaN may have come of infinities that cancel each other."""
    return m.where(x <= inf, x, UNSURE)


def _with_sign(m: Any, x: Any, of: Any) -> Any:
    """x >= 0 with the sign of another."""
    return m.double(m.bits(x) | (m.bits(of) & _SIGN))


# ---- powers --------------------------------------------------------------------------------------------------

_EXP = [1 / factorial(n + 1) for n in range(10)]


def _power_of_e(m: Any, x: Any) -> tuple[Any, Any]:
    """s and p of e^x = s + s * p: a power of two, and e^r - 1 of what is left, at most half of ln 2."""
    x = m.where(x > _LARGE, _LARGE, x)
    x = m.where(x < -_LARGE, -_LARGE, x)
    shifted = x * (1 / log(2)) + _WHOLE
    n = shifted - _WHOLE
    rest = (x - n * _LN2) - n * _LN2_REST
    return m.double((m.bits(shifted) << 52) + _ONE), rest * _series(rest, _EXP)


def exp(m: Any, x: Any) -> Any:
    scale, part = _power_of_e(m, x)
    return scale + scale * part


def exp2(m: Any, x: Any) -> Any:
    return exp(m, x * log(2))


def _exp_less_one(m: Any, x: Any) -> Any:
    scale, part = _power_of_e(m, x)
    return (scale - 1.0) + scale * part


def sinh(m: Any, x: Any) -> Any:
    e = _exp_less_one(m, _magnitude(m, x))
    return _with_sign(m, 0.5 * (e + e / (e + 1.0)), x)


def cosh(m: Any, x: Any) -> Any:
    e = exp(m, x)
    return 0.5 * (e + 1.0 / e)


def tanh(m: Any, x: Any) -> Any:
    e = _exp_less_one(m, 2.0 * _magnitude(m, x))
    return _with_sign(m, e / (e + 2.0), x)


# ---- logarithms ----------------------------------------------------------------------------------------------

_LOG = [2 / (2 * n + 1) for n in range(9)]
(_ROOT,) = unpack("<q", pack("<d", sqrt(0.5)))
(_UNITS,) = unpack("<q", pack("<d", 2.0**52))  # with an integer for its last bits, it is 2**52 more than that


def _logarithm(m: Any, x: Any) -> tuple[Any, Any]:
    """n and ln f of x = 2^n * f, where f is from sqrt(1/2) to sqrt(2) and x is positive and finite."""
    bits = m.bits(x) - _ROOT + _ONE
    n = m.double((bits >> 52) | _UNITS) - (2.0**52 + 1023.0)
    f = m.double((bits & _MANTISSA) + _ROOT) - 1.0
    s = f / (f + 2.0)
    return n, s * _series(s * s, _LOG)


def _where_defined(m: Any, x: Any, value: Any) -> Any:
    """A logarithm of x where there is one."""
    return m.where(x < inf, m.where(x > 0.0, value, m.where(x < 0.0, nan, -inf)), x)


def log_(m: Any, x: Any) -> Any:
    n, part = _logarithm(m, x)
    return _where_defined(m, x, n * log(2) + part)


def log2(m: Any, x: Any) -> Any:
    n, part = _logarithm(m, x)
    return _where_defined(m, x, n + part * (1 / log(2)))


def power(m: Any, x: Any, y: Any) -> Any:
    return m.where(x < 0.0, nan, _if_any(m, exp2(m, y * log2(m, x))))


def _log_of_one_and(m: Any, x: Any) -> Any:
    """ln(1 + x) of x >= 0."""
    total = x + 1.0
    n, part = _logarithm(m, total)
    return n * log(2) + (part + (x - (total - 1.0)) / total)


def asinh(m: Any, x: Any) -> Any:
    a = _magnitude(m, x)
    value = _log_of_one_and(m, a + a * a / (m.sqrt(a * a + 1.0) + 1.0))
    return m.where(a < inf, _with_sign(m, value, x), UNSURE)


def acosh(m: Any, x: Any) -> Any:
    over = x - 1.0
    value = _log_of_one_and(m, over + m.sqrt(over * (over + 2.0)))
    return m.where(over < inf, m.where(over < 0.0, nan, value), UNSURE)


def atanh(m: Any, x: Any) -> Any:
    a = _magnitude(m, x)
    value = 0.5 * _log_of_one_and(m, 2.0 * a / (1.0 - a))
    return m.where(a < 1.0, _with_sign(m, value, x), m.where(a > 1.0, nan, UNSURE))


# ---- of angles -----------------------------------------------------------------------------------------------

_SIN = [(-1) ** n / factorial(2 * n + 1) for n in range(7)]
_COS = [(-1) ** n / factorial(2 * n) for n in range(8)]
# A quarter turn as a sum, the first two of 33 bits: so many quarters of them are exact up to the farthest angle.
_QUARTER = (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21)
_FARTHEST = 2.0**20


def _turned(m: Any, x: Any) -> tuple[Any, Any, Any]:
    """Quarter turns in x, as an integer in the last bits, and sine and cosine of what is left."""
    shifted = x * (2 / pi) + _WHOLE
    n = shifted - _WHOLE
    rest = ((x - n * _QUARTER[0]) - n * _QUARTER[1]) - n * _QUARTER[2]
    square = rest * rest
    return m.bits(shifted), rest * _series(square, _SIN), _series(square, _COS)


def _unless_far(m: Any, x: Any, value: Any) -> Any:
    return m.where(_magnitude(m, x) < _FARTHEST, value, UNSURE)


def _sine(m: Any, quarters: Any, sine: Any, cosine: Any) -> Any:
    """That of an angle so many quarter turns farther."""
    value = m.where((quarters & 1) == 0, sine, cosine)
    return m.double(m.bits(value) ^ ((quarters & 2) << 62))


def sin(m: Any, x: Any) -> Any:
    return _unless_far(m, x, _sine(m, *_turned(m, x)))


def cos(m: Any, x: Any) -> Any:
    quarters, sine, cosine = _turned(m, x)
    return _unless_far(m, x, _sine(m, quarters + 1, sine, cosine))


def tan_(m: Any, x: Any) -> Any:
    quarters, sine, cosine = _turned(m, x)
    even = (quarters & 1) == 0
    return _unless_far(m, x, m.where(even, sine, 0.0 - cosine) / m.where(even, cosine, sine))


# ---- angles --------------------------------------------------------------------------------------------------

_ATAN = [(-1) ** n / (2 * n + 1) for n in range(15)]


def _angle(m: Any, y: Any, x: Any) -> Any:
    """That of a point (x, y), turned by an eighth, and mirrored, until its tangent is that of a sixteenth at most."""
    high, wide = _magnitude(m, y), _magnitude(m, x)
    steep = high > wide
    less, more = m.where(steep, wide, high), m.where(steep, high, wide)
    far = less > tan(pi / 8) * more
    ratio = m.where(far, less - more, less) / m.where(far, less + more, more)
    angle = ratio * _series(ratio * ratio, _ATAN)
    angle = m.where(far, angle + pi / 4, angle)
    angle = m.where(steep, pi / 2 - angle, angle)
    return _with_sign(m, m.where(x < 0.0, pi - angle, angle), y)


def atan2(m: Any, y: Any, x: Any) -> Any:
    return _if_any(m, _angle(m, y, x))


def atan(m: Any, x: Any) -> Any:
    return _angle(m, x, m.double((m.bits(x) & 0) | _ONE))


def asin(m: Any, x: Any) -> Any:
    return _angle(m, x, m.sqrt((1.0 - x) * (x + 1.0)))


def acos(m: Any, x: Any) -> Any:
    return _angle(m, m.sqrt((1.0 - x) * (x + 1.0)), x)


# ---- remainders ----------------------------------------------------------------------------------------------


def rem(m: Any, x: Any, y: Any) -> Any:
    """Exact: of two f32, a quotient this small is not rounded to, or past, an integer that it is not."""
    whole = m.trunc(x / y)
    left = _with_sign(m, _magnitude(m, x - whole * y), x)
    return m.where(_magnitude(m, whole) < 2.0**28, _if_any(m, left), UNSURE)


NEAR: dict[str, Callable[..., Any]] = {
    **{"acos": acos, "acosh": acosh, "asin": asin, "asinh": asinh, "atan": atan, "atan2": atan2, "atanh": atanh},
    **{"cos": cos, "cosh": cosh, "exp": exp, "exp2": exp2, "log": log_, "log2": log2, "pow": power, "rem": rem},
    **{"sin": sin, "sinh": sinh, "tan": tan_, "tanh": tanh},
}


def has_near(name: str) -> bool:
    """Whether an operation is computed by what it nearly gives."""
    stem, _, kind = name.rpartition("_")
    return stem in NEAR and kind in ("f32", "f16")

"""Floating point operations of each operator and builtin function, as the formulas of the WGSL spec have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...sim.wgsl import types as t
from .components import components, element

# One for each component of the result. A root, an exponential or a sine is one operation, whatever it takes.
_ONE = frozenset(
    [
        *("+", "-", "/", "%", "fract", "degrees", "radians", "pow", "sqrt", "inverseSqrt"),
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("exp", "exp2", "log", "log2"),
    ]
)


def _dot(n: int) -> int:
    return n + (n - 1)  # products, and their sum


def _length(n: int) -> int:
    return _dot(n) + 1 if n > 1 else 0  # sqrt(dot(v, v)); of a scalar, abs(v)


def _determinant(n: int) -> int:
    """Expand along the first row: n products with the determinants of minors, and their sum."""
    return 0 if n == 1 else n * (_determinant(n - 1) + 1) + (n - 1)


def product(left: t.Type, right: t.Type, result: t.Type) -> int:
    """Count the operations of `left * right`."""
    if isinstance(left, t.Mat) and isinstance(right, t.Vec | t.Mat):
        return components(result) * _dot(left.cols)
    if isinstance(left, t.Vec) and isinstance(right, t.Mat):
        return components(result) * _dot(left.size)
    return components(result)


# From the number of components of the first argument.
_COMPOSED: dict[str, Callable[[int], int]] = {
    "dot": _dot,
    "length": _length,
    "distance": lambda n: n + _length(n),  # length(a - b)
    "normalize": lambda n: _length(n) + n,  # v / length(v)
    "cross": lambda n: 3 * 3,  # three times a * b - c * d
    "faceForward": _dot,  # select(-x, x, dot(z, y) < 0)
    "reflect": lambda n: _dot(n) + 1 + 2 * n,  # x - (2 * dot(y, x)) * y
    # k = 1 - (e * e) * (1 - d * d), d = dot(y, x): d, four operations and 1 - …; x * e - (e * d + sqrt(k)) * y
    "refract": lambda n: _dot(n) + 5 + 3 + 3 * n,
    "smoothstep": lambda n: 7 * n,  # u = (x - low) / (high - low); u * u * (3 - 2 * u)
}


def flops(name: str, arguments: Sequence[t.Type], result: t.Type) -> int:
    """Count the floating point operations of one call of a builtin function or operator."""
    if not any(is_float(argument) for argument in arguments):
        return 0
    if name == "*":
        return product(arguments[0], arguments[1], result)
    if name == "fma":
        return 2 * components(result)
    if name == "mix":
        return 3 * components(result) + components(arguments[2])  # x * (1 - a) + y * a
    if name == "determinant":
        assert isinstance(arguments[0], t.Mat)
        return _determinant(arguments[0].cols)
    if name in _COMPOSED:
        return _COMPOSED[name](components(arguments[0]))
    return components(result) if name in _ONE else 0


def is_float(type_: t.Type) -> bool:
    return element(type_) in ("f32", "f16")

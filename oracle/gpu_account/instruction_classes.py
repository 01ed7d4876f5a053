"""The instructions of each operator and builtin function, by class, as profilers group them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...sim.wgsl import types as t
from .components import components, element
from .flops import product

_SPECIAL = frozenset(
    [
        *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "sin", "sinh", "tan", "tanh"),
        *("exp", "exp2", "log", "log2", "pow", "inverseSqrt", "sqrt"),
    ]
)
_ARITHMETIC = {"f32": "fp32", "f16": "fp16", "i32": "integer", "u32": "integer", "bool": "integer"}
_FREE = frozenset(("bitcast", "transpose", "arrayLength"))


def instructions(name: str, arguments: Sequence[t.Type], result: t.Type, fused: bool) -> Counter[str]:
    """Count the instructions of one call of a builtin without effects, by class. `fused`: fma() is one instruction."""
    if name in _FREE:
        return Counter()
    if name.startswith("pack"):
        return Counter({"conversion": 1})
    if name.startswith(("unpack", "quantizeToF16")):
        return Counter({"conversion": components(result)})
    if name in _SPECIAL:
        return Counter({"special": components(result)})
    plain, special = _composed(name, arguments, result, fused)
    counts = {_ARITHMETIC[element(arguments[0])]: plain, "special": special}
    return Counter({name: count for name, count in counts.items() if count})


def _composed(name: str, arguments: Sequence[t.Type], result: t.Type, fused: bool) -> tuple[int, int]:
    """Count the arithmetic instructions of a builtin, and the special ones among its parts."""
    n = components(arguments[0])
    dot = 2 * n - 1
    root = 1 if n > 1 else 0  # of a vector's length
    match name:
        case "*":
            return product(arguments[0], arguments[1], result), 0
        case "fma":
            return (1 if fused else 2) * n, 0
        case "all" | "any":
            return n - 1, 0
        case "dot":
            return dot, 0
        case "length":
            return dot, root  # of a scalar: abs
        case "distance":
            return n + dot, root
        case "normalize":
            return dot + n, root
        case "cross":
            return 9, 0
        case "faceForward":
            return dot + 1 + n + n, 0  # a comparison, -x, select
        case "reflect":
            return dot + 1 + 2 * n, 0
        case "refract":
            return dot + 5 + 1 + 2 + 3 * n + 1 + n, 1  # max(k, 0), e * d + sqrt(k), k < 0, select
        case "mix":
            return components(arguments[2]) + 3 * n, 0
        case "smoothstep":
            return 8 * n, 0
        case "determinant":
            return {4: 3, 9: 14, 16: 63}[n], 0
        case "frexp" | "modf":
            return 2 * n, 0
        case _:
            return components(result), 0

"""AbstractInt and AbstractFloat: Python integers and floats, for constant expressions alone.

Whoever calls these checks the range of what comes back. Spec: WGSL, "Abstract Numeric Types".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from .define import op


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _sign(a: Any) -> Any:
    return type(a)((a > 0) - (a < 0))


def _clamp(e: Any, low: Any, high: Any) -> Any:
    return min(max(e, low), high)


def _choose(if_false: Any, if_true: Any, condition: Any) -> Any:
    return if_true if condition else if_false


_INTEGER: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, operator.add),
    "sub": (2, operator.sub),
    "mul": (2, operator.mul),
    "div": (2, _truncated),
    "rem": (2, lambda a, b: a - b * _truncated(a, b)),
    "neg": (1, operator.neg),
    "abs": (1, abs),
    "sign": (1, _sign),
    "min": (2, min),
    "max": (2, max),
    "clamp": (3, _clamp),
    "and": (2, operator.and_),
    "or": (2, operator.or_),
    "xor": (2, operator.xor),
    "not": (1, operator.invert),
}

_FLOAT: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, operator.add),
    "sub": (2, operator.sub),
    "mul": (2, operator.mul),
    "div": (2, operator.truediv),
    "rem": (2, math.fmod),
    "neg": (1, operator.neg),
    "abs": (1, abs),
    "sign": (1, _sign),
    "min": (2, min),
    "max": (2, max),
    "clamp": (3, _clamp),
    "saturate": (1, lambda e: _clamp(e, 0.0, 1.0)),
    "step": (2, lambda edge, e: 1.0 if edge <= e else 0.0),
    "fma": (3, lambda a, b, c: a * b + c),
    "sqrt": (1, math.sqrt),
    "inverseSqrt": (1, lambda e: 1.0 / math.sqrt(e)),
    "ceil": (1, lambda e: float(math.ceil(e))),
    "floor": (1, lambda e: float(math.floor(e))),
    "trunc": (1, lambda e: float(math.trunc(e))),
    "round": (1, lambda e: float(round(e))),
    "fract": (1, lambda e: e - math.floor(e)),
    "modf_whole": (1, lambda e: float(math.trunc(e))),
    "modf_fract": (1, lambda e: e - math.trunc(e)),
    "frexp_fract": (1, lambda e: math.frexp(e)[0]),
    "degrees": (1, math.degrees),
    "radians": (1, math.radians),
    "atan2": (2, math.atan2),
    "pow": (2, math.pow),
    **{f.__name__: (1, f) for f in (math.acos, math.acosh, math.asin, math.asinh, math.atan, math.atanh, math.cos)},
    **{f.__name__: (1, f) for f in (math.cosh, math.exp, math.log, math.log2, math.sin, math.sinh, math.tan)},
    **{"tanh": (1, math.tanh), "exp2": (1, lambda e: math.pow(2.0, e))},
}

_COMPARE = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


def _register() -> None:
    for kind, table in (("ai", _INTEGER), ("af", _FLOAT)):
        for stem, (arity, fn) in table.items():
            op(f"{' '.join([kind] * arity)} -> {kind}", 0, f"{stem}_{kind}")(fn)
        for stem, fn in _COMPARE.items():
            op(f"{kind} {kind} -> bool", 0, f"{stem}_{kind}")(fn)
        op(f"{kind} {kind} bool -> {kind}", 0, f"select_{kind}")(_choose)
        op(f"{kind} -> bool", 0, f"convert_{kind}_bool")(bool)
    op("ai u32 -> ai", 0, "shl_ai")(lambda a, n: a << int(n))
    op("ai u32 -> ai", 0, "shr_ai")(lambda a, n: a >> int(n))
    op("af -> ai", 0, "frexp_exp_af")(lambda e: math.frexp(e)[1])
    op("af ai -> af", 0, "ldexp_af")(lambda e, n: math.ldexp(e, int(n)))
    op("ai -> af", 0, "convert_ai_af")(float)


def _to_concrete() -> None:
    """Conversions to concrete kinds; a float that is too large for an integer saturates."""
    import numpy as np

    from .rounding import round_f16

    for kind in ("ai", "af"):
        op(f"{kind} -> f32", 0, f"convert_{kind}_f32")(lambda e: np.float32(float(e)))
        op(f"{kind} -> f16", 0, f"convert_{kind}_f16")(lambda e: round_f16(np.float64(e)))
        op(f"{kind} -> i32", 0, f"convert_{kind}_i32")(lambda e: np.int32(_clamp(int(e), -(2**31), 2**31 - 1)))
        op(f"{kind} -> u32", 0, f"convert_{kind}_u32")(lambda e: np.uint32(_clamp(int(e), 0, 2**32 - 1)))


_register()
_to_concrete()

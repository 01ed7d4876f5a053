"""Errors that the spec requires for particular arguments of builtins, as soon as those arguments are known.

One row is one condition: the arguments that it needs, and what is wrong with their scalars. It applies to every
component once those arguments are constants, whether the others are or not. Spec: the description of each
builtin and operator ("it is a shader-creation error if …").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...fast_dataclass import frozen
from .. import types as t

_WIDTH = 32
_ABSTRACT_WIDTH = 64
_NAMES = {"ai": "abstract-int, which has 64 bits"}
_EXPONENT_BIAS = {"f16": 15, "f32": 127, "af": 1023}
_SIGNED_MIN = {"i32": -(2**31), "ai": -(2**63)}
_HALF_MAX = 65504.0


@frozen
class Check:
    """A condition: `problem(kind, *scalars)` says what is wrong with the scalars of the arguments `needs`, or None.

    `kind` is the scalar kind of the builtin's first argument ("" where it has none). `needs` may count from the end;
    `applies` decides by the arguments' types whether the overload has such arguments. `hint` says what to write.
    """

    code: str
    needs: tuple[int, ...]
    problem: Callable[..., str | None]
    applies: Callable[[Sequence[t.Type]], bool] = lambda types: True
    hint: str | None = None


def _zero_divisor(kind: str, divisor: float) -> str | None:
    return "division by zero" if kind in ("i32", "u32", "ai") and divisor == 0 else None


def _quotient(kind: str, dividend: float, divisor: float) -> str | None:
    if divisor == -1 and _SIGNED_MIN.get(kind) == dividend:
        return f"{dividend} divided by -1 overflows"
    return None


def _shift_amount(kind: str, amount: int) -> str | None:
    if kind == "ai" or amount < _WIDTH:
        return None
    return f"the shift amount must be less than {_WIDTH}, the width of {kind}, not {amount}"


def _abstract_shift_amount(kind: str, value: int, amount: int) -> str | None:
    if kind != "ai" or value == 0 or amount < _ABSTRACT_WIDTH:
        return None
    return f"the shift amount must be less than {_ABSTRACT_WIDTH}, the width of abstract-int, not {amount}"


def _shift_left(kind: str, value: int, amount: int) -> str | None:
    low, high = {"i32": (-(2**31), 2**31), "u32": (0, 2**32), "ai": (-(2**63), 2**63)}[kind]
    # Bounding `amount` first avoids huge numbers.
    if value == 0 or (amount < _ABSTRACT_WIDTH and low <= value << amount < high):
        return None
    return f"{value} << {amount} loses significant bits: the result must fit in {_NAMES.get(kind, kind)}"


def _clamp(kind: str, low: float, high: float) -> str | None:
    return f"the low bound {low} is greater than the high bound {high}" if low > high else None


def _edges(kind: str, edge0: float, edge1: float) -> str | None:
    return f"both edges are {edge0}" if edge0 == edge1 else None


def _bit_range(kind: str, offset: int, count: int) -> str | None:
    if offset + count <= _WIDTH:
        return None
    return f"offset {offset} and count {count} reach beyond the {_WIDTH} bits of {kind}"


def _exponent(kind: str, exponent: int) -> str | None:
    limit = _EXPONENT_BIAS[kind] + 1
    return f"the exponent {exponent} is greater than {limit}" if exponent > limit else None


def _half(kind: str, value: float) -> str | None:
    return f"{value:.9g} does not fit in f16" if abs(value) > _HALF_MAX else None


def _power(kind: str, base: float, exponent: float) -> str | None:
    return f"the base {base:.9g} is negative" if base < 0 else None


def _within(what: str, low: int, high: int) -> Callable[..., str | None]:
    """Return the problem of an argument outside [low, high]."""

    def problem(kind: str, value: int) -> str | None:
        return None if low <= value <= high else f"{what} {value} is not from {low} to {high}"

    return problem


def _picks_component(types: Sequence[t.Type]) -> bool:
    return types[0] in t.INTEGERS


def _has_offset(types: Sequence[t.Type]) -> bool:
    return isinstance(types[-1], t.Vec) and types[-1].elem == t.I32


_OUT = "argument-out-of-range"
_TOO_FAR = Check("shift-too-far", (1,), _shift_amount, hint=f"for the amount modulo {_WIDTH}, write & {_WIDTH - 1}u")
_ID, _DELTA, _MASK = _within("the id", 0, 127), _within("the delta", 0, 127), _within("the mask", 0, 127)
_OFFSET = Check(_OUT, (-1,), _within("the offset", -8, 7), _has_offset)
_WITH_OFFSET = (
    "textureGatherCompare",
    "textureSample",
    *(f"textureSample{how}" for how in ("Bias", "Compare", "CompareLevel", "Grad", "Level")),
)

CHECKS: Mapping[str, tuple[Check, ...]] = {
    "/": (Check("division-by-zero", (1,), _zero_divisor), Check("const-overflow", (0, 1), _quotient)),
    "%": (Check("division-by-zero", (1,), _zero_divisor), Check("const-overflow", (0, 1), _quotient)),
    "<<": (
        _TOO_FAR,
        Check("shift-too-far", (0, 1), _abstract_shift_amount, hint="a bit that leaves an abstract-int is an error"),
        Check("const-overflow", (0, 1), _shift_left, hint="mask the bits that leave first; a u32 has no sign bit"),
    ),
    ">>": (_TOO_FAR,),
    "clamp": (Check(_OUT, (1, 2), _clamp),),
    "smoothstep": (Check(_OUT, (0, 1), _edges),),
    "extractBits": (Check(_OUT, (1, 2), _bit_range),),
    "insertBits": (Check(_OUT, (2, 3), _bit_range),),
    "pow": (Check(_OUT, (0, 1), _power),),
    "ldexp": (Check(_OUT, (1,), _exponent),),
    "quantizeToF16": (Check("value-out-of-range", (0,), _half),),
    "pack2x16float": (Check("value-out-of-range", (0,), _half),),
    "subgroupBroadcast": (Check(_OUT, (1,), _ID),),
    "subgroupShuffle": (Check(_OUT, (1,), _ID),),
    "subgroupShuffleDown": (Check(_OUT, (1,), _DELTA),),
    "subgroupShuffleUp": (Check(_OUT, (1,), _DELTA),),
    "subgroupShuffleXor": (Check(_OUT, (1,), _MASK),),
    "quadBroadcast": (Check(_OUT, (1,), _within("the id", 0, 3)),),
    "textureGather": (Check(_OUT, (0,), _within("the component", 0, 3), _picks_component), _OFFSET),
    **dict.fromkeys(_WITH_OFFSET, (_OFFSET,)),
}

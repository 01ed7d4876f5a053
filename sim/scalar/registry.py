"""The table of scalar operations, and the two decorators that fill it.

An operation is a small plain Python function on NumPy scalars, run as it stands in constants, and written down as it
runs for the machine (see `translation`). Both follow NumPy's promotion of types, in which a number without a type takes
that of the other operand. An operation assigns names and returns a value: it has no loops and no other statements.
Choices are conditional expressions, both sides of which are computed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])
Plain = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """One operation. `args` and `result` are kinds; see the package's docstring for the value of each kind.

    `flops`: floating-point results that it rounds; a fused multiply-add counts 2, what is exact counts 0.
    """

    name: str
    fn: Plain
    args: tuple[str, ...]
    result: str
    flops: int = 0


OPS: dict[str, ScalarOp] = {}


def define(stem: str, fn: Plain, signature: str, kinds: str = "", flops: int = 0) -> None:
    """Enter `fn` once for each of `kinds`, which stands for T in `signature`: "T u32 -> T".

    The name is `{stem}_{kind}`; without kinds it is the stem. Two rows of one name are a mistake of ours.
    """
    for kind in kinds.split() or [""]:
        name = f"{stem}_{kind}" if kind else stem
        args, _, result = ([kind if k == "T" else k for k in part.split()] for part in signature.partition("->"))
        if name in OPS:
            raise ValueError(f"scalar operation {name} is defined twice")
        OPS[name] = ScalarOp(name, fn, tuple(args), result[0], flops)


def op(signature: str, kinds: str = "", flops: int = 0) -> Callable[[Function], Function]:
    """`define` as a decorator; the stem is the function's name less a trailing underscore (`and_`)."""

    def enter(fn: Function) -> Function:
        define(fn.__name__.removesuffix("_"), fn, signature, kinds, flops)
        return fn

    return enter

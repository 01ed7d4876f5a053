"""The table of scalar operations, and the two decorators that fill it.

An operation is a small plain Python function on NumPy scalars that Numba can compile as it stands. It has to give the
same bits in both worlds, whose typing rules differ, hence the habits of this package: results are cast back
(Numba widens uint32 + uint32 to uint64), literals next to floats are typed constants (Numba takes 1.0 for a float64),
and choices are conditional expressions, which LLVM turns into vector selects.
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
HELPERS: list[Plain] = []


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


def helper(fn: Function) -> Function:
    """A function that operations call, and that is to be compiled with them."""
    HELPERS.append(fn)
    return fn

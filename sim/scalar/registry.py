"""The table of scalar operations, with `define` and the decorator `op` that fill it.

An operation is a small plain Python function on NumPy scalars. Const-evaluation runs it as it is; the machine compiles
it. Both use NumPy's type promotion, in which a Python number takes the type of the other operand. The body
only assigns names and returns a value, without loops or other statements. Choices are conditional expressions, and the
machine computes both of their sides.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from ..fast_dataclass import frozen

Function = TypeVar("Function", bound=Callable[..., Any])
Plain = Callable[..., Any]


@frozen
class ScalarOp:
    """One operation. `args` and `result` are kinds; the package's docstring lists their values.

    `flops`: how many floating-point results it rounds. A fused multiply-add counts 2, an exact operation 0.
    """

    name: str
    fn: Plain
    args: tuple[str, ...]
    result: str
    flops: int = 0


OPS: dict[str, ScalarOp] = {}


def define(stem: str, fn: Plain, signature: str, kinds: str = "", flops: int = 0) -> None:
    """Add a row for `fn` for each of `kinds`, which replaces T in `signature`: "T u32 -> T".

    The name is `{stem}_{kind}`; without kinds it is the stem. Raises ValueError where the name is taken.
    """
    for kind in kinds.split() or [""]:
        name = f"{stem}_{kind}" if kind else stem
        args, _, result = ([kind if k == "T" else k for k in part.split()] for part in signature.partition("->"))
        if name in OPS:
            raise ValueError(f"scalar operation {name} is defined twice")
        OPS[name] = ScalarOp(name, fn, tuple(args), result[0], flops)


def op(signature: str, kinds: str = "", flops: int = 0) -> Callable[[Function], Function]:
    """Return `define` as a decorator; the stem is the function's name without a trailing underscore (`and_`)."""

    def add(fn: Function) -> Function:
        define(fn.__name__.removesuffix("_"), fn, signature, kinds, flops)
        return fn

    return add

"""The scalar operations for compiled functions: `jitted("add_f32")` is called by them, and becomes part of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import types
from numba.extending import intrinsic

from ...scalar.registry import OPS
from .scalar_ir import DTYPES, emitted


def number_type(kind: str) -> Any:
    """Numba's type of the values of a kind."""
    return getattr(types, DTYPES[kind].name)


@cache
def jitted(name: str) -> Any:
    """One operation of concrete kinds. Its arguments are converted to the types of their kinds."""
    row = OPS[name]
    kinds = [number_type(kind) for kind in row.args]

    def generate(context: Any, builder: Any, signature: Any, operands: Any) -> Any:
        return emitted(builder, row, operands)

    return called_as(row.fn, number_type(row.result)(*kinds), generate)


def called_as(function: Callable[..., Any], signature: Any, generate: Callable[..., Any]) -> Any:
    """What compiled functions call with the parameters of `function`: of this signature, with the code that `generate`
    writes."""

    def typed(typingctx: Any, *operands: Any) -> Any:
        return signature, generate

    own = inspect.signature(typed).parameters["typingctx"]
    typed.__dict__["__signature__"] = inspect.Signature([own, *inspect.signature(function).parameters.values()])
    return intrinsic(typed)

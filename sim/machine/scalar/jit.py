"""The scalar operations, compiled by Numba: `jitted("add_f32")` is callable from other jitted functions.

Nothing is compiled before it is called, and nothing is kept on disk: what is compiled here becomes part of the caller,
whose cache has to know about the sources of this package.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit, types
from numba.extending import intrinsic, register_jitable

from .emission import Pipeline
from .registry import HELPERS, OPS, ScalarOp

# Division by zero is IEEE-754's, not Python's.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "pipeline_class": Pipeline}
# Nobody calls these from Python or C; the wrappers that would allow it take a quarter of the time.
_NO_WRAPPERS: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}


def _fused_signature(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """The hardware's fused multiply-add, vectorized; LLVM calls libm's where there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


_fused: Any = intrinsic(_fused_signature)


def _fma(a: Any, b: Any, c: Any) -> Any:
    return _fused(a, b, c)


# The same function by a faster way; the tests hold each against the plain one.
FASTER: dict[str, Callable[..., Any]] = {"fma_f32": _fma}


def jitted(name: str) -> Any:
    """The dispatcher of one operation; operations that share their plain function share it."""
    return _dispatcher(FASTER.get(name, OPS[name].fn))


def compile_all() -> dict[str, Any]:
    """The dispatchers of all operations of concrete kinds, by name."""
    return {name: jitted(name) for name, row in OPS.items() if _is_concrete(row)}


def _is_concrete(row: ScalarOp) -> bool:
    return not {"af", "ai"} & {*row.args, row.result}


@cache
def _dispatcher(function: Callable[..., Any]) -> Any:
    _prepare()
    return njit(**_OPTIONS, **_NO_WRAPPERS)(function)


@cache
def _prepare() -> None:
    """Make known to Numba what operations call: helpers, and other operations."""
    for function in {*HELPERS, *(row.fn for row in OPS.values() if _is_concrete(row))}:
        register_jitable(**_OPTIONS)(function)

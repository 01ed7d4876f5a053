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

from .registry import HELPERS, OPS

# Division by zero is IEEE-754's, not Python's. Compiled code alone calls these, so the wrappers that Python would need
# are left out: with them, compiling takes three times as long.
_OPTIONS = {"error_model": "numpy"}
_BARE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "no_rewrites": True}


@intrinsic
def _fused(typingctx, a, b, c):  # type: ignore[no-untyped-def]
    """The hardware's fused multiply-add, vectorized; LLVM calls libm's where there is none."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float32(types.float32, types.float32, types.float32), generate


def _fma(a: Any, b: Any, c: Any) -> Any:
    return _fused(a, b, c)


# The same function by a faster way; the tests hold each against the plain one.
FASTER: dict[str, Callable[..., Any]] = {"fma_f32": _fma}


@cache
def _prepare() -> None:
    """Make known to Numba what operations call: helpers, and other operations."""
    for function in {*HELPERS, *(row.fn for row in OPS.values() if not _is_abstract(row.args))}:
        register_jitable(**_OPTIONS)(function)


def _is_abstract(args: tuple[str, ...]) -> bool:
    return bool({"af", "ai"} & {*args})


@cache
def jitted(name: str) -> Any:
    """The dispatcher of one operation; the same one every time."""
    _prepare()
    return njit(**_OPTIONS, **_BARE)(FASTER.get(name, OPS[name].fn))


def compile_all() -> dict[str, Any]:
    """The dispatchers of all operations of concrete kinds, by name."""
    return {name: jitted(name) for name, row in OPS.items() if not _is_abstract(row.args)}

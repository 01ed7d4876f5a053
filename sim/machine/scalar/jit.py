"""The compiled form of the scalar operations."""

from __future__ import annotations

from functools import cache
from typing import Any

from numba import njit, types
from numba.extending import intrinsic, register_jitable

from .define import HELPERS, OPS


@cache
def _helpers_known() -> None:
    """Let compiled operations call their helpers."""
    for function in dict.fromkeys(HELPERS):
        register_jitable(function)


@intrinsic
def _fused(typingctx, a, b, c):  # type: ignore[no-untyped-def]
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), codegen


def _fma_f32(a, b, c):  # type: ignore[no-untyped-def]
    return _fused(a, b, c)


# The processor's own fma, which rounds once as the plain form does, is an instruction and not twenty.
_FASTER = {"fma_f32": _fma_f32}


@cache
def jitted(name: str) -> Any:
    """The operation `name`, compiled for NumPy scalars of its kinds."""
    _helpers_known()
    return njit(error_model="numpy")(_FASTER.get(name, OPS[name].fn))


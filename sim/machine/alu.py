"""The arithmetic of the machine, by family: one function of all operations would take far longer to compile."""

from __future__ import annotations

from numba import types

from .jit import compiled
from .lanes import switch_of
from .opcodes import families, scalar_opcodes
from .scalar import OPS
from .scalar.jit import jitted

_CODES = scalar_opcodes()


def _switch(family: str):
    return switch_of([(_CODES[name], OPS[name], jitted(name)) for name in families()[family]])


_float, _half, _integer, _conversion = (_switch(f) for f in ("float", "half", "integer", "conversion"))


@compiled
def float_(regs, op, d, a, b, c, e, lanes):
    _float(regs, op, d, a, b, c, e, lanes)


@compiled
def half(regs, op, d, a, b, c, e, lanes):
    _half(regs, op, d, a, b, c, e, lanes)


@compiled
def integer(regs, op, d, a, b, c, e, lanes):
    _integer(regs, op, d, a, b, c, e, lanes)


@compiled
def conversion(regs, op, d, a, b, c, e, lanes):
    _conversion(regs, op, d, a, b, c, e, lanes)


FAMILIES = {"float": float_, "half": half, "integer": integer, "conversion": conversion}
_FIELD = types.int32
_SIGNATURE = (types.Array(types.uint32, 2, "C"), *(_FIELD,) * 6, types.int64)


def compile_families(*names: str) -> None:
    """Compile these families now, or find them on disk."""
    for name in names:
        FAMILIES[name].compile(_SIGNATURE)

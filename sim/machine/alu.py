"""Scalar operations on register rows, one function per family: a single function would take far longer to compile."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

from ..scalar import OPS
from .compile.units import part
from .kinds import FIELD, LONG
from .lanes import switch_of
from .opcodes import families, scalar_opcodes
from .vector_math.functions import curves_of

_CODES = scalar_opcodes()
_OPERATION = (LONG, LONG, *(FIELD,) * 6, LONG)  # address and pitch of registers, opcode, DEST, A, B, C, E, lanes


def _rows(family: str):
    return [(_CODES[name], OPS[name]) for name in families()[family]]


def _switch(family: str):
    return switch_of(_rows(family))


_float, _half, _integer, _conversion = (_switch(f) for f in ("float", "half", "integer", "conversion"))
_curve = curves_of(_rows("curve"))


@part(*_OPERATION)
def float_(start, pitch, op, d, a, b, c, e, lanes):
    _float(start, pitch, op, d, a, b, c, e, lanes)


@part(*_OPERATION)
def half(start, pitch, op, d, a, b, c, e, lanes):
    _half(start, pitch, op, d, a, b, c, e, lanes)


@part(*_OPERATION)
def integer(start, pitch, op, d, a, b, c, e, lanes):
    _integer(start, pitch, op, d, a, b, c, e, lanes)


@part(*_OPERATION)
def conversion(start, pitch, op, d, a, b, c, e, lanes):
    _conversion(start, pitch, op, d, a, b, c, e, lanes)


@part(*_OPERATION)
def curve(start, pitch, op, d, a, b, c, e, lanes):
    _curve(start, pitch, op, d, a, b, lanes)

"""The machine's arrays as Numba types, for the parts that are compiled on their own."""

from __future__ import annotations

from numba import types

from .compile.packed_arrays import Packed

FIELD, LONG, WORD = types.int32, types.int64, types.uint32
REGISTERS = Packed(types.uint32, 2)  # [register, lane]
INSTRUCTION = Packed(types.int32, 1)
WORDS = Packed(types.uint32, 1)
HALVES = Packed(types.uint16, 1)
NUMBERS = Packed(types.int64, 1)  # a row of a table, or `config`
TABLE = Packed(types.int64, 2)
PROGRAM = Packed(types.int32, 2)
FILES = Packed(types.uint32, 3)  # registers of each strand
CUBE = Packed(types.int64, 3)  # a table for each strand

"""The machine's arrays as Numba types, for the parts that are compiled on their own."""

from __future__ import annotations

from numba import types

FIELD, LONG, WORD = types.int32, types.int64, types.uint32
REGISTERS = types.Array(types.uint32, 2, "C")  # [register, lane]
INSTRUCTION = types.Array(types.int32, 1, "C")
WORDS = types.Array(types.uint32, 1, "C")
HALVES = types.Array(types.uint16, 1, "C")
NUMBERS = types.Array(types.int64, 1, "C")  # a row of a table, or `config`
TABLE = types.Array(types.int64, 2, "C")
PROGRAM = types.Array(types.int32, 2, "C")
FILES = types.Array(types.uint32, 3, "C")  # registers of each strand
CUBE = types.Array(types.int64, 3, "C")  # a table for each strand

"""The machine's arrays as Numba types, for the parts that are compiled on their own."""

from __future__ import annotations

import numpy as np
from numba import types

from .compile.units import array, kind_of
from .probe_arrays import make_probes

FIELD, LONG, WORD = types.int32, types.int64, types.uint32
REGISTERS = array(types.uint32, 2)  # [register, lane]
INSTRUCTION = array(types.int32, 1)
WORDS = array(types.uint32, 1)
HALVES = array(types.uint16, 1)
NUMBERS = array(types.int64, 1)  # a row of a table, or `config`
TABLE = array(types.int64, 2)
PROGRAM = array(types.int32, 2)
FILES = array(types.uint32, 3)  # registers of each strand
CUBE = array(types.int64, 3)  # a table for each strand

_NONE = np.zeros(1, np.int64)
PROBES = kind_of(make_probes(1, 1, 1, 1, _NONE, np.zeros(1, np.uint8), _NONE, 0, 0))

"""What the buffers of a program hold: bytes made from its declarations and its seed."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from bankshot.oracle.guesses import invented_inputs
from bankshot.sim.wgsl.typed import Pipeline

from .programs import Program

ELEMENTS = 37  # of `src`: no multiple of anything
_WHOLE = np.array([0, 1, 2, 3, 5, 31, 32, 255, 65535, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF], np.uint32)
_FLOATS = np.array([0.0, -0.0, 1.0, -1.0, 0.5, -2.0, 3.0, 0.1, -0.3, 7.5, 100.0, -1000.0, 1e-3], np.float32)
_WIDE = np.array([1e10, -1e-10, 16777217.0, 2147483648.0, 1e-30], np.float32)  # no f16


@dataclass(frozen=True, slots=True)
class Buffer:
    """`data` as bytes; `codes` say what each two bytes of it belong to, see `guesses.invented_inputs`."""

    data: NDArray[np.uint8]
    codes: NDArray[np.uint8]


def buffers(program: Program, pipeline: Pipeline) -> dict[str, Buffer]:
    """The contents of every binding, by name. An output has an element for each invocation."""
    invocations = prod(program.grid) * prod(pipeline.workgroup_size)
    made = {}
    for number, variable in enumerate(pipeline.globals):
        if variable.binding is None:
            continue
        writable = variable.access == "read_write"
        recipe = invented_inputs.Recipe("", (), 0, invocations if writable else ELEMENTS)
        codes = invented_inputs.layout(pipeline.store_types[variable], recipe)
        made[variable.name] = Buffer(_data(codes, np.random.default_rng((program.seed, number))), codes)
    return made


def _data(codes: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.uint8]:
    words, halves = len(codes) // 2, len(codes)
    small = rng.integers(0, 16, words, np.uint32)
    whole = np.where(rng.random(words) < 0.5, small, rng.choice(_WHOLE, words))
    quarters = rng.integers(-32, 32, halves).astype(np.float32) / 4
    floats = np.where(rng.random(halves) < 0.6, quarters, rng.choice(_FLOATS, halves))
    wide = np.where(rng.random(words) < 0.9, floats[:words], rng.choice(_WIDE, words))
    kinds = {
        invented_inputs.WHOLE: whole.view(np.uint16),
        invented_inputs.COUNTER: whole.view(np.uint16),
        invented_inputs.SINGLE: wide.astype(np.float32).view(np.uint16),
        invented_inputs.HALF: floats.astype(np.float16).view(np.uint16),
    }
    made = np.zeros(halves, np.uint16)
    for code, values in kinds.items():
        made[codes == code] = values[codes == code]
    return made.view(np.uint8)

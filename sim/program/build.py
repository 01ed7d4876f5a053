"""From a pipeline to a program, in one call."""

from __future__ import annotations

import numpy as np

from ..wgsl import types as t
from ..wgsl.typed import Pipeline
from .code import allocate
from .emit import Emitter
from .lower import lower
from .program import Program
from .uniform import analyse
from .uses import find_uses


def build(
    pipeline: Pipeline, *, fused: bool, probes: frozenset[str], together: int, trace: str | None = None
) -> Program:
    """Lower, analyse, emit and allocate.

    `together`: workgroups per batch; `fused`: fma rounds once; `trace`: a variable whose writes are noted.
    """
    lowered = lower(pipeline, fused=fused, trace=trace)
    uniformity = analyse(lowered.body, lowered.accesses, lowered.builder.slots, alone=together == 1)
    uses = find_uses(lowered.body, uniformity)
    emitter = Emitter(lowered.accesses, lowered.sites.rows, uniformity, uses, lowered.loop_spans, probes, together)
    emitter.program(lowered.body)
    code = emitter.code
    for position, label in code.jumps:
        code.instructions[position].a = label.position
    rows = allocate(code, len(emitter.inputs) + len(emitter.constants))
    offsets, size = _shared_offsets(pipeline)
    return Program(
        np.array([ins.encode() for ins in code.instructions], np.int32),
        rows,
        emitter.inputs,
        emitter.constants,
        lowered.accesses,
        lowered.sites.rows,
        emitter.runs,
        emitter.memory_probes,
        emitter.loops,
        [ins.site for ins in code.instructions],
        together,
        pipeline.workgroup_size,
        size,
        offsets,
        lowered.points,
    )


def _shared_offsets(pipeline: Pipeline) -> tuple[dict[str, int], int]:
    """Byte offset of each workgroup variable, each on 16 bytes, and the size of them all."""
    offsets: dict[str, int] = {}
    size = 0
    for variable in pipeline.globals:
        if variable.space == "workgroup":
            type_ = pipeline.store_types[variable]
            size = t.round_up(16, size)
            offsets[variable.name] = size
            size += t.size_of(type_)
    return offsets, t.round_up(16, size)

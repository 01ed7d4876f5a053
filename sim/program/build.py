"""From a pipeline to a program, in one call."""

from __future__ import annotations

import numpy as np

from ..wgsl import types as t
from ..wgsl.typed import Pipeline
from .code import allocate
from .contract import contract
from .emit import Emitter
from .lower import Lowered, lower
from .program import Program
from .rounding import Rounding
from .uniform import Uniformity, analyse
from .uses import Uses, find_uses


def build(
    pipeline: Pipeline, *, rounding: Rounding, probes: frozenset[str], together: int, trace: str | None = None
) -> Program:
    """Lower, analyse, emit and allocate. `together`: workgroups per batch; `trace`: a variable that is watched."""
    lowered = lower(pipeline, rounding, checks="bounds" in probes, inspects="nan" in probes, trace=trace)
    uniformity, uses = _analysed(lowered, together)
    if rounding.contracts:
        # What is traced is rounded as if it were not.
        unwatched = find_uses(lowered.body, uniformity, notes=False) if lowered.points else uses
        if contract(lowered.body, unwatched):
            uniformity, uses = _analysed(lowered, together)
    if "nan" in probes:
        for each in lowered.inspects:  # what nothing needs, or is part of something else now, is not looked at
            each.active = each.result in uses.count
        uniformity, uses = _analysed(lowered, together)
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
        emitter.watched,
        emitter.inspected,
        emitter.loops,
        [ins.site for ins in code.instructions],
        probes,
        together,
        pipeline.workgroup_size,
        size,
        offsets,
        dict(pipeline.store_types),
        lowered.points,
    )


def _analysed(lowered: Lowered, together: int) -> tuple[Uniformity, Uses]:
    uniformity = analyse(lowered.body, lowered.accesses, lowered.builder.slots, alone=together == 1)
    return uniformity, find_uses(lowered.body, uniformity)


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

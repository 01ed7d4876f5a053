"""The utilization of a dispatch, from slices of one workgroup of each class, or of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import prod

import numpy as np

from ..analysis.workgroup_equivalence import Unproven
from ..codegen.build import build_with_steps
from ..codegen.program import Program
from ..launch.tracing import Trace
from ..machine import layout as at
from ..models.occupancy import occupancy
from ..utilization.slices import Slice, slice_steps
from ..utilization.steps import Chunk, read_steps
from ..utilization.utilization import Utilization, utilization_of
from ..utilization.workgroup_memory import Memories
from ..wgsl import types as t
from .dispatch import Dispatch

MOST_NOTES = 1 << 22  # of a workgroup: about a second
ENOUGH_NOTES = 1 << 20  # of a sample
_NOTES_PER_STEP = 40  # that take as long as a step
MOST_WORKGROUPS = 8  # of a sample


def measure_utilization(
    dispatch: Dispatch, lanes: tuple[int, int], idle: Mapping[str, int], *, thorough: bool
) -> Utilization:
    """Slice workgroups of a dispatch, and compute its utilizations.

    `lanes`: issue slots of the dispatch, and those of active lanes. `idle`: idle lanes by cause. `thorough`: slice
    every class of workgroups, however much they execute.
    """
    count = prod(dispatch.grid)
    numbers, sizes, exact = _chosen(dispatch, thorough)
    program, chunks = build_with_steps(dispatch.pipeline, rounding=dispatch.rounding, policy=dispatch.how.policy)
    limit = MOST_NOTES << (4 if thorough else 0)
    slices: list[tuple[Slice, int]] = []
    missing, taken = "", 0
    for number, size in zip(numbers, sizes, strict=True):
        if taken > ENOUGH_NOTES and not thorough:
            exact = False
            break
        found, notes = _slice(dispatch, program, chunks, number, limit)
        taken += notes
        if isinstance(found, str):
            missing, exact = found, False
            break
        slices.append((found, size))
    pipeline = dispatch.pipeline
    fits = occupancy(dispatch.device, dispatch.lanes, pipeline.workgroup_bytes)
    known = "" if slices else missing
    return utilization_of(slices, lanes, idle, dispatch.device, fits, count, exact=exact, missing=known)


def _chosen(dispatch: Dispatch, thorough: bool) -> tuple[list[int], list[int], bool]:
    """Return the workgroups to slice, how many each stands for, and whether they are of all classes."""
    count = prod(dispatch.grid)
    try:
        classes = dispatch.classes(frozenset())
        numbers, sizes = classes.representatives.tolist(), classes.sizes.tolist()
        if len(numbers) <= MOST_WORKGROUPS or thorough:
            return numbers, sizes, True
    except Unproven:
        pass
    numbers = sorted({round(i) for i in np.linspace(0, count - 1, min(MOST_WORKGROUPS, count))})
    sizes = np.bincount(np.arange(count) * len(numbers) // count).tolist()
    return numbers, sizes, len(numbers) == count


def _slice(
    dispatch: Dispatch, program: Program, chunks: list[Chunk], number: int, limit: int
) -> tuple[Slice | str, int]:
    """Run a workgroup and slice it. Returns why not, if it cannot be, and how many notes it took."""
    width, height, _ = dispatch.grid
    place = (number % width, number // width % height, number // (width * height))
    how = replace(dispatch.how, trace=Trace("", place, None, limit), threads=1, chosen=np.array([number]))
    launch = dispatch.with_(how=how).launch(program, dispatch.bound)
    outcome = launch.run()
    if outcome.finished < 1:
        return "a workgroup does not end by itself", 0
    notes = int(outcome.trace[at.HEADER, at.RECORDED])
    if notes > limit:
        return f"a workgroup takes more than {limit:,} steps of its invocations", notes
    pipeline = dispatch.pipeline
    steps = list(read_steps(outcome.trace[1 : 1 + notes], chunks))
    contents = {each.variable.name: each.data for each in dispatch.bound if each.writable}
    sizes = {v.name: t.size_of(type_) for v, type_ in pipeline.store_types.items() if v.space == "workgroup"}
    memories = partial(Memories, steps, program.accesses, contents, sizes)
    sliced = slice_steps(steps, program.sites, memories, dispatch.lanes, dispatch.device.subgroup_size)
    return sliced, notes + _NOTES_PER_STEP * len(steps)

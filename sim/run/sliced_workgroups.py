"""The utilization of a dispatch, from slices of one workgroup of each class, or of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from .workgroup_coverage import Place

Classed = Sequence[tuple[Place, int]]

MOST_NOTES = 1 << 22  # of a workgroup: about a second
ENOUGH_NOTES = 1 << 20  # of a sample
_NOTES_PER_STEP = 40  # that take as long as a step
MOST_WORKGROUPS = 8  # of a sample


def measure_utilization(
    dispatch: Dispatch, classes: Classed, lanes: tuple[int, int], idle: Mapping[str, int]
) -> Utilization:
    """Slice workgroups of a dispatch, and compute its utilizations.

    `classes`: a workgroup of each class and how many it represents, if the run has found them. `lanes`: issue slots of
    the dispatch, and those of active lanes. `idle`: idle lanes by cause. A thorough dispatch slices every class of
    workgroups, however much they execute.
    """
    count, thorough = prod(dispatch.grid), dispatch.how.thorough
    chosen, exact = _chosen(dispatch, classes)
    program, chunks = build_with_steps(dispatch.pipeline, rounding=dispatch.rounding, policy=dispatch.how.policy)
    limit = MOST_NOTES << (4 if thorough else 0)
    slices: list[tuple[Slice, int]] = []
    missing, taken = "", 0
    for place, size in chosen:
        if taken > ENOUGH_NOTES and not thorough:
            exact = False
            break
        found, notes = _slice(dispatch, program, chunks, place, limit)
        taken += notes
        if isinstance(found, str):
            missing, exact = found, False
            break
        slices.append((found, size))
    pipeline = dispatch.pipeline
    fits = occupancy(dispatch.device, dispatch.lanes, pipeline.workgroup_bytes)
    known = "" if slices else missing
    return utilization_of(slices, lanes, idle, dispatch.device, fits, count, exact=exact, missing=known)


def _chosen(dispatch: Dispatch, classes: Classed) -> tuple[Classed, bool]:
    """Return the workgroups to slice, how many each stands for, and whether they are of all classes."""
    classes = classes or _classes(dispatch)
    if classes and (len(classes) <= MOST_WORKGROUPS or dispatch.how.thorough):
        return classes, True
    count = prod(dispatch.grid)
    numbers = sorted({round(i) for i in np.linspace(0, count - 1, min(MOST_WORKGROUPS, count))})
    sizes = np.bincount(np.arange(count) * len(numbers) // count).tolist()
    return [(dispatch.place(number), size) for number, size in zip(numbers, sizes, strict=True)], len(numbers) == count


def _classes(dispatch: Dispatch) -> Classed:
    """Return a workgroup of each class and how many it represents; none where that cannot be proven."""
    try:
        found = dispatch.classes(frozenset())
    except Unproven:
        return ()
    places = map(dispatch.place, found.representatives.tolist())
    return list(zip(places, found.sizes.tolist(), strict=True))


def _slice(
    dispatch: Dispatch, program: Program, chunks: list[Chunk], place: Place, limit: int
) -> tuple[Slice | str, int]:
    """Run a workgroup and slice it. Returns why not, if it cannot be, and how many notes it took."""
    chosen = np.array([dispatch.number(place)])
    how = replace(dispatch.how, trace=Trace("", place, None, limit), threads=1, chosen=chosen)
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

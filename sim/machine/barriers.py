"""Barriers: order memory in the shadows, and check that no lane of a workgroup is missing."""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import instruction as field
from . import layout as at
from .compile.units import compiled, inlined, part
from .kinds import FILES, INSTRUCTION, LONG, NUMBERS, PROGRAM, REGISTERS, TABLE
from .shadow import watch_barrier

_ABSENT_LANES = 1024  # that an event can name


@compiled
def record(events, kind, site, workgroup, lane, detail, epoch):
    """Record an event: the first of each kind and site with details, the others as a count.

    Returns the row of a first event, else 0.
    """
    place = 1
    recorded = events[at.HEADER, at.RECORDED]
    while place <= recorded and (events[place, at.KIND] != kind or events[place, at.SITE] != site):
        place += 1
    if place < len(events):
        row = events[place]
        row[at.TIMES] += 1
        if place <= recorded:
            return 0
        events[at.HEADER, at.RECORDED] = place
        row[at.KIND], row[at.SITE], row[at.EVENT_WORKGROUP], row[at.EVENT_LANE] = kind, site, workgroup, lane
        row[at.DETAIL], row[at.EPOCH] = detail, epoch
        return place
    return 0


@part(REGISTERS, INSTRUCTION, NUMBERS, LONG, LONG, LONG, TABLE)
def barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events):
    """Record an event for each workgroup of which some lanes, but not all, are at a barrier."""
    mask, site = row[field.MASK], row[field.SITE]
    size, step = config[at.LANES], config[at.LANE_PITCH]
    for w in range(workgroups_per_batch):
        first = w * config[at.GROUP_PITCH]
        active = 0
        absent = -1
        for lane in range(size):
            if regs[mask, first + lane * step] != 0:
                active += 1
            elif absent < 0:
                absent = lane
        if 0 < active < size:
            new = record(events, at.DIVERGED, site, workgroup + w, absent, size - active, epoch)
            for lane in range(min(size, _ABSENT_LANES) if new > 0 else 0):
                missing = np.int64(regs[mask, first + lane * step] == 0)
                events[new, at.ABSENT + lane // at.ABSENT_BITS] |= missing << (lane % at.ABSENT_BITS)


@inlined
def at_barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events, watch_at):
    """Run a barrier: order memory in the shadows, and check that no lane is missing."""
    if config[at.WATCHES] == 1:
        watch_barrier(regs, row, config, workgroup, workgroups_per_batch, watch_at)
    if row[field.MASK] >= 0:
        barrier(regs, row, config, workgroup, workgroups_per_batch, epoch, events)


@inlined
def is_there(configs, regs, progress, s, mask, lane):
    """Whether a lane of the workgroup of lockstep group `s` waits at the same barrier as that group."""
    first = configs[s, at.PLACE] * (len(progress) // configs[s, at.BESIDE])
    size = configs[first, at.LANES]
    group = first + lane // size
    waits = progress[group, at.STOPPED] == at.AT_BARRIER and progress[group, at.PC] == progress[s, at.PC]
    return waits and (mask < 0 or regs[group, mask, lane % size] != 0)


@part(PROGRAM, TABLE, FILES, TABLE, LONG, TABLE, LONG, LONG)
def meet(code, configs, regs, progress, s, events, workgroup, watch_at):
    """Run the barrier at which all lockstep groups of a workgroup wait that have not ended.

    `s` is a group of this workgroup, `workgroup` the first of the batch.
    """
    each = len(progress) // configs[s, at.BESIDE]
    last = (configs[s, at.PLACE] + 1) * each - 1
    while progress[s, at.STOPPED] != at.AT_BARRIER:
        s = last + 1 - each if s == last else s + 1
    row, config, number = code[progress[s, at.PC] - 1], configs[s], workgroup + configs[s, at.PLACE]
    mask, size, active, absent = row[field.MASK], config[at.WORKGROUP_LANES], 0, -1
    for lane in range(size):
        if is_there(configs, regs, progress, s, mask, lane):
            active += 1
        elif absent < 0:
            absent = lane
    if config[at.WATCHES] == 1:
        watch_barrier(regs[s], row, config, number, 1, watch_at)
    if 0 < active < size:
        passed = progress[s, at.BARRIERS_PASSED] - 1
        new = record(events, at.DIVERGED, row[field.SITE], number, absent, size - active, passed)
        for lane in range(min(size, _ABSENT_LANES) if new > 0 else 0):
            missing = np.int64(not is_there(configs, regs, progress, s, mask, lane))
            events[new, at.ABSENT + lane // at.ABSENT_BITS] |= missing << (lane % at.ABSENT_BITS)

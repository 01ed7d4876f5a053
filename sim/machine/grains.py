"""One grain of shadow memory: who stored to it, who loaded from it, and whether an access races with them.

Later runs use shadow memory again without clearing it. So clocks go on from run to run, and a stamp from before
this run stands for no access.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import compiled, inlined
from .probe_arrays import LANE_BITS, LANES, SLOT_BITS, SLOTS, SPAN

CLOCK_SHIFT = LANE_BITS + SLOT_BITS


@inlined
def begin_of(w):
    """Return the least stamp of this run."""
    return w.state[at.BEGUN] << CLOCK_SHIFT


@inlined
def stamp_of(w, slot, g, config):
    """Return the stamp of an access by the first lane of workgroup `g` in a row, now: add the lane."""
    return w.clocks[g + config[at.PLACE], at.CLOCK] << CLOCK_SHIFT | slot << LANE_BITS | config[at.LANE_OFFSET]


@inlined
def record_of(s, block):
    """Return where the record of a block is: those of all spans come first."""
    return len(s.starts[at.WRITER]) // (1 + SPAN) + block


@inlined
def same_invocation(one, group, other, other_group):
    return group == other_group and (one ^ other) & (LANES - 1) == 0


@inlined
def is_over(before, group_before, group, since, begin):
    """Whether an access is ordered before those of this workgroup: by a barrier, or because it is of an earlier run."""
    return before < begin or (group_before == group and before < since)


@inlined
def races_with(before, group_before, me, group, since, begin):
    """Whether an earlier access is by another invocation, and not over."""
    return not is_over(before, group_before, group, since, begin) and not same_invocation(
        before, group_before, me, group
    )


@inlined
def is_race(row, first, second, across):
    return row[at.RACE_FIRST] == first and row[at.RACE_SECOND] == second and row[at.RACE_ACROSS] == across


@compiled
def note_race(w, before, group_before, me, group, place, started, old, new, different, times):
    """Count a race between two accesses, with the details of the first occurrence. `times`: of so many lanes."""
    w.state[at.RACES_SEEN] += times
    races, mask, owner = w.races, SLOTS - 1, w.state[at.OWNER]
    first, second = (before >> LANE_BITS) & mask, (me >> LANE_BITS) & mask
    across = np.int64(group_before != group)
    i, known = w.kept[second, at.ROW_RACE], races[at.HEADER, at.RECORDED]  # most often its last race happens again
    if i > known or not is_race(races[i], first, second, across):
        i = 1
        while i <= known and not is_race(races[i], first, second, across):
            i += 1
        if i >= len(races):
            return
        w.kept[second, at.ROW_RACE] = i
    row = races[i]
    row[at.RACE_TIMES] += times
    row[at.RACE_DIFFERENT] += different * times
    if i <= known:
        return
    races[at.HEADER, at.RECORDED] = i
    row[at.RACE_FIRST], row[at.RACE_SECOND], row[at.RACE_ACROSS] = first, second, across
    row[at.RACE_PLACE] = np.int64(place)
    row[at.RACE_FIRST_WORKGROUP], row[at.RACE_FIRST_LANE] = group_before + owner, before & (LANES - 1)
    row[at.RACE_FIRST_CLOCK], row[at.RACE_FIRST_VALUE] = (before >> CLOCK_SHIFT) - started, old
    row[at.RACE_SECOND_WORKGROUP], row[at.RACE_SECOND_LANE] = group + owner, me & (LANES - 1)
    row[at.RACE_SECOND_CLOCK], row[at.RACE_SECOND_VALUE] = (me >> CLOCK_SHIFT) - started, new


@inlined
def read_grain(w, s, place, me, group, since, begin, started):
    """Examine the load of one grain."""
    before = s.stamps[at.WRITER, place]
    if races_with(before, s.words[at.WRITER, place], me, group, since, begin):
        value = np.int64(s.words[at.VALUE, place])
        note_race(w, before, np.int64(s.words[at.WRITER, place]), me, group, place, started, value, value, 1, 1)
    reader, reader_group = s.stamps[at.READER, place], s.words[at.READER, place]
    if is_over(reader, reader_group, group, since, begin):
        s.stamps[at.READER, place], s.words[at.READER, place] = me, group
    elif not same_invocation(reader, reader_group, me, group):
        other, other_group = s.stamps[at.OTHER, place], s.words[at.OTHER, place]
        if (
            is_over(other, other_group, group, since, begin)
            or (other_group == reader_group and group != reader_group)
            or same_invocation(other, other_group, reader, reader_group)
        ):
            s.stamps[at.OTHER, place], s.words[at.OTHER, place] = me, group


@inlined
def read_grain_again(w, s, place, me, group, since, begin, started, times, writes):
    """Examine the load of one grain by `times` more lanes of a row in which two have loaded it already.

    Two readers are recorded, which no more change, and so is any race with the writer. `writes`: whether the writer's
    invocation is one of them, if it is of this workgroup.
    """
    before, group_before = s.stamps[at.WRITER, place], np.int64(s.words[at.WRITER, place])
    times -= np.int64(group_before == group and writes)
    if times > 0 and not is_over(before, group_before, group, since, begin):
        value = np.int64(s.words[at.VALUE, place])
        note_race(w, before, group_before, me, group, place, started, value, value, 1, times)


@inlined
def write_grain(w, s, place, me, group, since, begin, started, old, new, own):
    """Examine the store to one grain. `old` is its value before; `own` says that workgroups do not share the memory."""
    newest = max(max(s.stamps[at.WRITER, place], s.stamps[at.READER, place]), s.stamps[at.OTHER, place])
    if newest >= (since if own else begin):
        for who in range(at.WRITER, at.VALUE):
            before, group_before = s.stamps[who, place], s.words[who, place]
            if races_with(before, group_before, me, group, since, begin):
                different = np.int64(old != new)
                note_race(w, before, np.int64(group_before), me, group, place, started, old, new, different, 1)
    s.stamps[at.WRITER, place], s.words[at.WRITER, place], s.words[at.VALUE, place] = me, group, np.uint32(new)

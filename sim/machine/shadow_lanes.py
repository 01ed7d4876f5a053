"""Examine an access to shadow memory lane by lane.

Lanes of a load that have the address of the lane before are examined together once two have been: a grain records two
readers, and the others can only repeat a race.
"""

# Numba infers the types of compiled functions, which have no annotations.
# pyright: basic

from __future__ import annotations

import numpy as np

from . import layout as at
from .compile.units import compiled, inlined
from .grains import CLOCK_SHIFT, begin_of, read_grain, read_grain_again, record_of, stamp_of, write_grain
from .probe_arrays import BLOCK, BLOCK_BITS, LANES

_READERS = 2  # lanes that a grain records


@inlined
def grains_of(s):
    """Return how many grains can have a record."""
    return np.uint64(len(s.stamps[at.WRITER]))


@compiled
def note_unwatched_store(w, s, grain):
    """Count a store to a grain without a record. Only a bit remembers it, so that stores of two threads are noticed."""
    w.races[at.HEADER, at.UNWATCHED] += 1
    record, begin = record_of(s, grain >> BLOCK_BITS), begin_of(w)
    if record < len(s.covers[at.WRITER]):
        if s.starts[at.WRITER, record] < begin:  # the bits are of an earlier run
            s.starts[at.WRITER, record], s.covers[at.WRITER, record] = begin, 0
        s.covers[at.WRITER, record] |= np.uint32(1 << (grain & (BLOCK - 1)))


@compiled
def read_lanes(w, s, slot, addresses, mask, masked, extra, config, workgroup, lanes):
    """Examine a load by `lanes` lanes, one by one."""
    row, size = w.table[slot], config[at.LANES]
    limit, factor, grains = np.uint32(row[at.WATCHED_LIMIT]), row[at.WATCHED_FACTOR], row[at.WATCHED_GRAINS]
    own, begin, recorded = row[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP, begin_of(w), grains_of(s)
    if own:
        w.state[at.READ_WINDOW] = w.state[at.WINDOW]
    for g in range((lanes + size - 1) // size):
        clocks = w.clocks[g + config[at.PLACE]]
        since = clocks[at.ORDERED_SINCE + row[at.WATCHED_MEMORY]] << CLOCK_SHIFT
        stamp = stamp_of(w, slot, g, config)
        group = np.int64(0) if own else workgroup + g
        w.state[at.OWNER] = workgroup + g if own else 0
        fresh = clocks[at.START] << CLOCK_SHIFT if row[at.WATCHED_UNWRITTEN] == 1 else np.int64(-1)
        base = row[at.WATCHED_BASE] + (g + config[at.PLACE]) * row[at.WATCHED_PITCH]
        lane, end, alike, last = 0, min(size, lanes - g * size), 0, np.uint32(0)
        while lane < end:
            address, active = np.uint32(addresses[g * size + lane] + extra), not masked or mask[g * size + lane] != 0
            lane += 1
            if address > limit or not active:
                continue
            first = base + np.int64(address) * factor
            unwritten = np.int64(-1)
            for grain in range(first, first + grains):
                place = np.uint64(grain)  # unsigned indices are cheaper
                if place >= recorded:
                    w.races[at.HEADER, at.UNWATCHED] += 1
                    continue
                if s.stamps[at.WRITER, place] < fresh and unwritten < 0:
                    unwritten = grain
                read_grain(w, s, place, stamp + lane - 1, group, since, begin, clocks[at.START])
            if unwritten >= 0:
                note_unwritten(w.unwritten[slot], config[at.LANE_OFFSET] + lane - 1, workgroup + g, unwritten)
            alike, last = alike + 1 if alike > 0 and address == last else 1, address
            if alike == _READERS and lane < end:
                here, active = addresses[g * size :], mask[g * size :]
                lane, more = read_alike(w, s, slot, first, here, active, masked, lane, end, g, group, since, config)
                if unwritten >= 0:
                    w.unwritten[slot, at.OUTSIDE] += more
                alike = 0


@compiled
def read_alike(w, s, slot, first, addresses, mask, masked, lane, end, g, group, since, config):
    """Examine the lanes from `lane` on that load from the same grain `first` as the lane before, all at once.

    Returns the next lane that does not, and how many do.
    """
    row, begin, recorded, start = w.table[slot], begin_of(w), grains_of(s), lane
    more, address = np.int64(0), addresses[lane - 1]
    while lane < end and (addresses[lane] == address or (masked and mask[lane] == 0)):
        more += np.int64(not masked or mask[lane] != 0)
        lane += 1
    if more == 0:
        return lane, more
    me, started = stamp_of(w, slot, g, config) + lane - 1, w.clocks[g + config[at.PLACE], at.START]
    for grain in range(first, first + row[at.WATCHED_GRAINS]):
        place = np.uint64(grain)
        if place >= recorded:
            w.races[at.HEADER, at.UNWATCHED] += more
            continue
        writer = (s.stamps[at.WRITER, place] & (LANES - 1)) - config[at.LANE_OFFSET]
        writes = start <= writer < lane and (not masked or mask[writer] != 0)
        read_grain_again(w, s, place, me, group, since, begin, started, more, writes)
    return lane, more


@inlined
def note_unwritten(found, lane, workgroup, place):
    if found[at.OUTSIDE] == 0 or workgroup < found[at.WORKGROUP]:
        found[at.LANE], found[at.WORKGROUP], found[at.ADDRESS] = lane, workgroup, place
    found[at.OUTSIDE] += 1


@compiled
def write_lanes(w, s, slot, memory, values, addresses, mask, masked, extra, unit, config, workgroup, lanes):
    """Examine a store of one unit by `lanes` lanes, one by one."""
    row, size = w.table[slot], config[at.LANES]
    limit, factor = np.uint32(row[at.WATCHED_LIMIT]), row[at.WATCHED_FACTOR]
    own, begin, recorded = row[at.WATCHED_MEMORY] == at.ORDERED_WORKGROUP, begin_of(w), grains_of(s)
    bits = 8 * row[at.WATCHED_GRAIN]
    kept = np.int64((1 << bits) - 1)
    for g in range((lanes + size - 1) // size):
        clocks = w.clocks[g + config[at.PLACE]]
        since = clocks[at.ORDERED_SINCE + row[at.WATCHED_MEMORY]] << CLOCK_SHIFT
        stamp = stamp_of(w, slot, g, config)
        group = np.int64(0) if own else workgroup + g
        w.state[at.OWNER] = workgroup + g if own else 0
        fresh = clocks[at.START] << CLOCK_SHIFT if own else begin
        base = row[at.WATCHED_BASE] + (g + config[at.PLACE]) * row[at.WATCHED_PITCH] + unit * factor
        for lane in range(min(size, lanes - g * size)):
            address = np.uint32(addresses[g * size + lane] + extra)
            if address > limit or (masked and mask[g * size + lane] == 0):
                continue
            first, word = base + np.int64(address) * factor, np.int64(values[g * size + lane])
            for i in range(factor):
                place = np.uint64(first + i)
                if place >= recorded:
                    note_unwatched_store(w, s, first + i)
                    continue
                if s.stamps[at.WRITER, place] >= fresh:
                    old = np.int64(s.words[at.VALUE, place])
                else:
                    bit = (first + i) * bits
                    old = (np.int64(memory[bit >> 5]) >> (bit & 31)) & kept
                new = (word >> (i * bits)) & kept
                write_grain(w, s, place, stamp + lane, group, since, begin, clocks[at.START], old, new, own)
